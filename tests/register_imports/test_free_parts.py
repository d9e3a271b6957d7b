"""Addresses directly in a prefix that has other prefixes inside: a pool has the parts of the prefix that hold them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest

from pools.core import errors
from pools.models import Block, Container, Pool, PoolCIDR, RegisterImport, ReservedRange
from pools.register import pools
from pools.register.allocator import window
from pools.register.checks import compare_free_space
from pools.register.imports import drafts, exports
from tests import factories, people
from tests.register_imports import netbox_server, sources
from tests.register_imports.netbox_server import NetBox
from tests.register_imports.sources import BY, codes, counts, rows_of, table
from tests.register_imports.test_netbox_mirror import confirm, held, run, source
from tests.register_imports.test_netbox_mirror_undo import state

pytestmark = pytest.mark.django_db(transaction=True)

PREFIXES = [
    ("10.0.0.0/16", "active", "", "Acme", "", "Campus"),
    ("10.0.1.0/24", "active", "", "", "", "Servers"),
    ("10.0.2.0/23", "container", "", "", "", "Clients"),
]
ADDRESSES = [
    ("10.0.200.5/16", "active", "", "", "five.example", ""),
    ("10.0.200.0/16", "active", "", "", "zero.example", ""),
    ("10.0.200.255/16", "active", "", "", "last.example", ""),
    ("10.0.0.9/16", "active", "", "", "nine.example", ""),
    ("10.0.1.7/24", "active", "", "", "seven.example", ""),
]
NUMBER = len(PREFIXES) + len(ADDRESSES)


def files(*more: tuple[str, ...]) -> tuple[bytes, bytes]:
    return table(sources.IMPORT_PREFIX, PREFIXES), table(
        sources.IMPORT_ADDRESS, [*ADDRESSES, *more]
    )


def cidrs(pool: str = "10.0.0.0-16") -> list[str]:
    return [str(row) for row in PoolCIDR.objects.filter(pool__name=pool).order_by("cidr")]


def committed(made: RegisterImport) -> RegisterImport:
    done = drafts.IMPORTS.commit(made.pk, author=BY)
    for cidr in PoolCIDR.objects.select_related("pool"):
        assert not any(compare_free_space(cidr).values()), cidr
    return done


@pytest.fixture
def server(settings: Any) -> Iterator[NetBox]:
    settings.IPAM_ALLOW_LOOPBACK_NETBOX = True
    with netbox_server.serving() as netbox:
        yield netbox


def test_a_pool_has_the_parts_that_hold_addresses() -> None:
    cluster = factories.cluster()
    draft = sources.draft(*files(), cluster=cluster)
    assert counts(draft) == {"new": NUMBER + 3}  # two parts, the network address
    parts = [row for row in rows_of(draft) if row.texts.get("part_of")]
    assert [(row.target, row.pool_name, str(row.cidr)) for row in parts] == [
        ("pool", "10.0.0.0-16", "10.0.0.0/24"),
        ("reserved", "10.0.0.0-16", "10.0.0.0/32"),
        ("pool", "10.0.0.0-16", "10.0.200.0/24"),
    ]
    assert parts[0].reasons[0]["code"] == "part"
    committed(draft)
    assert [str(row.cidr) for row in Container.objects.all()] == ["10.0.0.0/16", "10.0.2.0/23"]
    pool = Pool.objects.get(name="10.0.0.0-16")
    assert (pool.description, pool.allow_first_ip, pool.allow_last_ip) == ("Campus", True, True)
    assert cidrs() == ["10.0.0.0/24", "10.0.200.0/24"]
    assert Block.objects.filter(state="held", pool=pool).count() == 4
    reserved = ReservedRange.objects.get()
    assert (reserved.span, reserved.reason) == (
        "10.0.0.0-10.0.0.0", "network address of 10.0.0.0/16",
    )  # fmt: skip
    again = sources.draft(*files(), cluster=cluster)
    assert counts(again) == {"unchanged": NUMBER + 3}
    drafts.IMPORTS.undo(draft.pk, author=BY)
    assert [model.objects.count() for model in (Pool, Container, Block, ReservedRange)] == [0] * 4


def test_another_part_joins_the_pool_later_and_leaves_it_with_the_undo() -> None:
    cluster = factories.cluster()
    committed(sources.draft(*files(), cluster=cluster))
    more = files(("10.0.77.1/16", "active", "", "", "late.example", ""))
    second = committed(sources.draft(*more, cluster=cluster))
    assert counts(second) == {"new": 2, "unchanged": NUMBER + 3}
    assert Pool.objects.get(name="10.0.0.0-16").version == 2  # the ETag
    assert cidrs() == ["10.0.0.0/24", "10.0.77.0/24", "10.0.200.0/24"]
    assert sorted(PoolCIDR.objects.filter(pool__name="10.0.0.0-16").values_list("position", flat=True)) == [0, 1, 2]  # fmt: skip
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert cidrs() == ["10.0.0.0/24", "10.0.200.0/24"]
    assert Block.objects.filter(state="held").count() == len(ADDRESSES)


def test_a_pool_that_somebody_has_made_is_not_joined() -> None:
    cluster = factories.cluster()
    pool = factories.pool("172.16.0.0/24", name="10.0.0.0-16", within=cluster)
    draft = sources.draft(*files(), cluster=cluster)
    assert {code for _, status, code in codes(draft) if status == "conflict"} == {
        "already_exists",
        "part",
    }
    pools.delete(pool.pk, author=BY)
    assert counts(drafts.IMPORTS.revalidate(draft.pk, author=BY)) == {"new": NUMBER + 3}


def test_edges_of_the_prefix_and_addresses_of_containers_are_refused_with_the_way_out() -> None:
    more = (
        ("10.0.0.0/16", "active", "", "", "net.example", ""),
        ("10.0.255.255/16", "active", "", "", "all.example", ""),
        ("10.0.3.1/23", "active", "", "", "client.example", ""),
    )
    draft = sources.draft(*files(*more), cluster=factories.cluster())
    refused = [(row.texts["address"], why["code"]) for row in rows_of(draft)
               if row.status == "invalid" for why in row.reasons]  # fmt: skip
    assert refused == [
        ("10.0.0.0/16", "network_address"),
        ("10.0.255.255/16", "broadcast_address"),
        ("10.0.3.1/23", "in_container"),
    ]
    message = rows_of(draft)[NUMBER + 2].reasons[0]["message"]
    assert "network container 10.0.2.0/23" in message
    assert "give the container the status active" in message
    drafts.IMPORTS.correct_row(draft.pk, 3, {"status": "active"}, author=BY)
    draft.refresh_from_db()
    assert counts(draft)["invalid"] == 2  # without a prefix inside, it is a pool itself
    assert rows_of(draft)[2].target == "pool"


def test_ranges_get_a_part_that_has_them_whole() -> None:
    ranges = table(
        ("start_address", "end_address", "status"),
        [
            ("10.0.0.1/16", "10.0.0.9/16", "reserved"),
            ("10.0.100.10/16", "10.0.101.200/16", "active"),
            ("10.0.0.200/16", "10.0.4.9/16", "active"),
        ],
    )
    draft = sources.draft(*files(), ranges, cluster=factories.cluster())
    assert [code for _, status, code in codes(draft) if status == "invalid"] == [
        "range_outside_cidr"
    ]
    drafts.IMPORTS.commit(draft.pk, skip_bad=True, author=BY)
    assert cidrs() == ["10.0.0.0/24", "10.0.100.0/23", "10.0.200.0/24"]
    spans = [row.span for row in ReservedRange.objects.order_by("first")]
    assert spans == [
        *("10.0.0.0-10.0.0.0", "10.0.0.1-10.0.0.9"),
        *("10.0.0.200-10.0.0.255", "10.0.1.0-10.0.1.255"),  # what pools have of the third
        "10.0.100.10-10.0.101.200",
    ]


def test_corrections_make_parts_anew() -> None:
    draft = sources.draft(*files(), cluster=factories.cluster())
    number = len(PREFIXES) + 1
    drafts.IMPORTS.correct_row(draft.pk, number, {"address": "10.0.201.5"}, author=BY)
    draft.refresh_from_db()
    assert counts(draft) == {"new": NUMBER + 4}
    parts = [str(row.cidr) for row in rows_of(draft) if row.texts.get("part_of")]
    assert parts == ["10.0.0.0/24", "10.0.0.0/32", "10.0.200.0/24", "10.0.201.0/24"]
    drafts.IMPORTS.skip_rows(draft.pk, [number, number + 1, number + 2], skipped=True, author=BY)
    draft.refresh_from_db()
    assert (counts(draft), draft.rows_total) == ({"new": NUMBER - 1, "left_out": 3}, NUMBER + 2)
    part = rows_of(draft)[-2]
    assert str(part.cidr) == "10.0.0.0/24"
    with pytest.raises(errors.ImportState, match="follows from other rows"):
        drafts.IMPORTS.correct_row(draft.pk, part.number, {"prefix": "10.0.0.0/25"}, author=BY)
    page = people.browser().get(f"/admin/pools/import/{draft.pk}/change/").content.decode()
    assert "A free part of 10.0.0.0/16" in page
    drafts.IMPORTS.skip_rows(draft.pk, [part.number], skipped=True, author=BY)
    assert ("invalid", "pool_not_imported") in {(s, c) for _, s, c in codes(draft)}
    drafts.IMPORTS.revalidate(draft.pk, author=BY)
    assert rows_of(draft)[-2].skipped


def test_ipv6_and_small_gaps() -> None:
    prefixes = table(
        ("prefix",),
        [("2001:db8::/48",), ("2001:db8:0:1::/64",), ("10.9.0.0/28",), ("10.9.0.0/30",), ("10.9.0.8/29",),
         ("10.10.0.0/16",), ("10.10.0.128/25",)],
    )  # fmt: skip
    addresses = table(
        ("address", "dns name"),
        [("2001:db8:0:2::5", "a"), ("2001:db8::1", "b"), ("10.9.0.4", "c"), ("10.10.0.1", "d")],
    )
    cluster = factories.cluster()
    committed(sources.draft(prefixes, addresses, cluster=cluster))
    assert cidrs("2001-db8---48") == ["2001:db8::/64", "2001:db8:0:2::/64"]
    assert cidrs("10.9.0.0-28") == ["10.9.0.4/30"]
    assert cidrs("10.10.0.0-16") == ["10.10.0.0/25"]
    reasons = sorted(ReservedRange.objects.values_list("reason", flat=True))
    assert reasons == ["network address of 10.10.0.0/16", "subnet-router anycast address of 2001:db8::/48"]  # fmt: skip
    assert not set(counts(sources.draft(prefixes, addresses, cluster=cluster))) - {"unchanged"}


def test_all_addresses_of_a_divided_netbox_pool_can_be_used(server: NetBox) -> None:
    server.prefix("10.60.0.0/24", is_pool=True)
    server.prefix("10.60.0.64/26")
    server.address("10.60.0.0/24", dns_name="first.example")
    server.address("10.60.0.255/24", dns_name="last.example")
    created = run(source(server))
    assert counts(created) == {"new": 6}
    assert cidrs("10.60.0.0-24") == ["10.60.0.0/26", "10.60.0.128/25"]
    assert not ReservedRange.objects.exists()


def fill(server: NetBox) -> None:
    server.prefix("10.0.0.0/16", description="Campus")
    server.prefix("10.0.1.0/24")
    server.address("10.0.200.5/16", dns_name="five.example")
    server.address("10.0.0.9/16", dns_name="nine.example")


@pytest.mark.exhaustive
def test_a_mirror_follows_and_its_undo_restores(server: NetBox) -> None:
    fill(server)
    mirror = source(server, cooldown_seconds=0)
    assert counts(run(mirror)) == {"new": 7}
    assert counts(run(mirror)) == {"unchanged": 7}
    before = state()
    del server.objects["ip-addresses"][1]
    server.objects["prefixes"][0]["description"] = "Site"
    second = run(mirror)
    assert counts(second) == {"changed": 2, "unchanged": 2, "vanished": 2, "released": 1}
    assert counts(confirm(second)) == {"changed": 2, "unchanged": 2, "released": 3}
    assert cidrs() == ["10.0.200.0/24"]
    assert Pool.objects.get(name="10.0.0.0-16").description == "Site"
    assert held() == {"10.0.200.5/32": ("five.example", "")}
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert state() == before
    server.objects["ip-addresses"].clear()
    third = confirm(run(mirror))
    assert counts(third)["released"] == 5
    assert not Pool.objects.filter(name="10.0.0.0-16").exists()
    drafts.IMPORTS.undo(third.pk, author=BY)
    assert cidrs() == ["10.0.0.0/24", "10.0.200.0/24"]
    assert len(held()) == 2


def test_a_prefix_that_netbox_adds_takes_over_the_part(server: NetBox) -> None:
    fill(server)
    mirror = source(server)
    run(mirror)
    server.prefix("10.0.200.0/24", description="New floor")
    second = run(mirror)
    assert counts(second) == {"changed": 1, "unchanged": 6}
    prefixes = list(csv.DictReader(io.StringIO(exports.prefixes_csv(None).decode())))
    assert [row["prefix"] for row in prefixes] == ["10.0.0.0/16", "10.0.1.0/24", "10.0.200.0/24"]
    assert counts(run(mirror)) == {"unchanged": 7}


def test_it_goes_back_to_netbox_as_it_came() -> None:
    cluster = factories.cluster()
    committed(sources.draft(*files(), cluster=cluster))
    exported = [exports.prefixes_csv(None), exports.addresses_csv(None), exports.ranges_csv(None)]
    prefixes, addresses, ranges = (
        list(csv.DictReader(io.StringIO(text.decode()))) for text in exported
    )
    assert [(row["prefix"], row["status"]) for row in prefixes] == [
        (prefix, status) for prefix, status, *_ in sorted(PREFIXES)
    ]
    assert {row["address"] for row in addresses} == {address for address, *_ in ADDRESSES}
    assert ranges == []
    assert counts(sources.draft(*exported[:2], cluster=cluster)) == {"unchanged": NUMBER + 3}


def test_a_released_address_of_a_part_is_allocated_again() -> None:
    committed(sources.draft(*files(), cluster=factories.cluster(), cooldown_seconds=0))
    pool = Pool.objects.get(name="10.0.0.0-16")
    window.release_blocks([Block.objects.get(cidr="10.0.200.0/32").pk])
    taken = factories.take(pool, factories.holder("vm-1"), cidr="10.0.200.0/32")
    assert taken is not None


def test_an_address_lies_in_the_divided_prefix_of_the_cluster_of_its_site(server: NetBox) -> None:
    south = factories.cluster()
    server.prefix("10.0.0.0/16", site="South")
    server.prefix("10.0.1.0/24", site="South")
    server.address("10.0.200.5/16", dns_name="five.example")
    run(source(server, mapping={"site": {"South": south.pk}}))
    assert Block.objects.get(state="held").pool.cluster == south
