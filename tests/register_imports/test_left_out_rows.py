"""Rule `left-out-rows-keep-their-addresses`: what a file says is in use is handed out to nobody, whatever happens to its row."""

from typing import Any

import pytest

from pools.core.register_import import parsing
from pools.models import Block, Container, Pool, ReservedRange
from pools.register.allocator import window
from pools.register.imports import drafts
from tests import factories
from tests.register_imports import sources
from tests.register_imports.sources import BY, counts, rows_of, table

pytestmark = pytest.mark.django_db(transaction=True)

PREFIX = table(("prefix",), [("10.0.1.0/29",)])  # the hosts .1 to .6


def committed(*files: bytes, skipped: tuple[int, ...] = (), **options: Any) -> Any:
    draft = sources.draft(*files, **{"cluster": factories.cluster(), **options})
    if skipped:
        drafts.IMPORTS.skip_rows(draft.pk, skipped, skipped=True, author=BY)
    return sources.commit(draft, skip_bad=True)


def free(pool: str = "10.0.1.0-29") -> list[str]:
    """The addresses that the pool hands out until it is exhausted."""
    return sorted(cidr.removesuffix("/32") for cidr in factories.drain(Pool.objects.get(name=pool)))


LONG = "x" * 300
REFUSED = {
    "a field that is too long": ("address,tenant", f"10.0.1.2,{LONG}"),
    "an unknown cluster": ("address,cluster", "10.0.1.2,nowhere"),
    "leading zero": ("address,holder", "10.0.1.02,a"),
    "words in a cell": ("address,holder", "10.0.1.2 instead of 10.0.1.2,a"),
    "a range, of which the status is odd": ("start address,end address,tenant", f"10.0.1.2,10.0.1.2,{LONG}"),
}  # fmt: skip


@pytest.mark.parametrize(("header", "row"), REFUSED.values(), ids=REFUSED)
def test_a_refused_row(header: str, row: str) -> None:
    done = committed(PREFIX, f"{header}\n{row}\n".encode())
    assert counts(done) == {"new": 2, "invalid": 1}
    assert free() == ["10.0.1.1", "10.0.1.3", "10.0.1.4", "10.0.1.5", "10.0.1.6"]


def test_a_skipped_row_and_the_undo() -> None:
    rows = [("10.0.1.2", "two"), ("10.0.1.3", "three")]
    done = committed(PREFIX, table(("address", "holder"), rows), skipped=(2,))
    assert counts(done) == {"new": 3, "left_out": 1}
    assert ReservedRange.objects.get().reason == "in use, not imported: two"
    sources.undo(done)
    assert not ReservedRange.objects.exists()
    committed(PREFIX, table(("address", "holder"), rows), skipped=(2,))
    assert free() == ["10.0.1.1", "10.0.1.4", "10.0.1.5", "10.0.1.6"]


def test_the_range_can_be_skipped_too_and_is_not_corrected() -> None:
    cluster = factories.cluster()
    addresses = table(("address", "holder"), [("10.0.1.2", "two")])
    draft = sources.draft(PREFIX, addresses, cluster=cluster)
    drafts.IMPORTS.skip_rows(draft.pk, [2], skipped=True, author=BY)
    follows = rows_of(draft)[-1]
    assert (follows.target, follows.reasons[0]["code"]) == ("reserved", "left_out")
    drafts.IMPORTS.skip_rows(draft.pk, [follows.number], skipped=True, author=BY)
    drafts.IMPORTS.revalidate(draft.pk, author=BY)
    assert [row.status for row in rows_of(draft)] == ["new", "left_out", "left_out"]
    drafts.IMPORTS.skip_rows(draft.pk, [2], skipped=False, author=BY)
    assert [row.status for row in rows_of(draft)] == ["new", "new"]


@pytest.mark.parametrize("state", ["held", "cooling"])
def test_an_address_that_another_holder_has(state: str) -> None:
    cluster = factories.cluster()
    pool = factories.pool("10.0.1.0/29", name="ours", within=cluster, mask=32, cooldown=3600)
    block = factories.take(pool, factories.holder("other"), cidr="10.0.1.2/32")
    if state == "cooling":
        window.release_blocks([block["id"]])
    done = committed(table(("address", "holder"), [("10.0.1.2", "two")]), cluster=cluster)
    assert counts(done) == {"new": 1, "conflict": 1}
    assert Block.objects.get(cidr="10.0.1.2/32").withheld
    assert "10.0.1.2" not in free("ours")


def test_a_prefix_with_prefixes_that_are_left_out_stays_a_container() -> None:
    prefixes = table(
        ("prefix", "tenant"),
        [("10.0.0.0/16", ""), ("10.0.16.0/24", LONG), ("10.0.17.5/24", ""), ("10.0.18.0/24", "")],
    )
    addresses = table(("address", "holder"), [("10.0.16.1", "one"), ("10.0.3.1", "two")])
    done = committed(prefixes, addresses, skipped=(4,))
    codes = {row.number: row.reasons[0]["code"] for row in rows_of(done) if row.status == "invalid"}
    assert codes[5] == "pool_not_imported"
    assert [str(row.cidr) for row in Container.objects.all()] == ["10.0.0.0/16"]
    assert not Pool.objects.exists()
    assert counts(done) == {"new": 1, "invalid": 3, "conflict": 1, "left_out": 1}


def test_the_same_file_again_changes_nothing_and_a_corrected_one_is_imported() -> None:
    cluster = factories.cluster()
    bad = table(("address", "tenant", "holder"), [("10.0.1.2", LONG, "two")])
    committed(PREFIX, bad, cluster=cluster)
    assert counts(sources.draft(PREFIX, bad, cluster=cluster)) == {"unchanged": 2, "invalid": 1}
    good = table(("address", "tenant", "holder"), [("10.0.1.2", "Acme", "two")])
    committed(PREFIX, good, cluster=cluster)
    assert Block.objects.get(state="held").holder_id == "two"
    assert "10.0.1.2" not in free()


def test_what_is_free_or_no_host_can_have_is_not_withheld() -> None:
    rows = [("10.0.1.2", "free"), ("10.0.1.0", "active"), ("10.9.9.9", "active")]
    done = committed(PREFIX, table(("address", "status"), rows))
    assert counts(done) == {"new": 1, "invalid": 3}


SPANS = {
    "prefix with host bits": ("prefix", {"prefix": "10.0.17.5/24"}, ["10.0.17.0/24"]),
    "prefix and mask": ("prefix", {"prefix": "10.0.17.0", "mask": "255.255.255.0"}, ["10.0.17.0/24"]),
    "prefix and a wildcard": ("prefix", {"prefix": "10.0.17.0 0.0.0.255"}, ["10.0.17.0/24"]),
    "bullets": ("prefix", {"prefix": "●● 10.0.17.0/24"}, ["10.0.17.0/24"]),
    "two prefixes": ("prefix", {"prefix": "10.0.1.0/24, 10.0.3.0/24"}, ["10.0.1.0/24", "10.0.3.0/24"]),
    "addresses": ("address", {"address": "10.0.0.1/24 10.0.0.9 fd00::1"}, ["10.0.0.1/32", "10.0.0.9/32", "fd00::1/128"]),
    "a port": ("address", {"address": "10.0.0.1:8080"}, ["10.0.0.1/32"]),
    "half a range": ("range", {"first": "10.0.0.1", "last": "x"}, ["10.0.0.1/32"]),
    "a range backwards": ("range", {"first": "10.0.0.3", "last": "10.0.0.2"}, ["10.0.0.2/31"]),
    "none": ("address", {"address": "total: 3.5"}, []),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "texts", "networks"), SPANS.values(), ids=SPANS)
def test_addresses_of_a_row_that_cannot_be_parsed(
    kind: str, texts: dict[str, str], networks: list[str]
) -> None:
    found = parsing.find_spans(kind, texts)
    expected = [parsing.ip_network(text) for text in networks]
    assert found == [
        (net.version, int(net.network_address), int(net.broadcast_address)) for net in expected
    ]
