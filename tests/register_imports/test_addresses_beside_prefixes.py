"""Addresses directly in a prefix that has other prefixes inside: a conflict, until a prefix has them."""

import pytest

from pools.core import errors
from pools.models import Block, Container, Pool, ReservedRange
from tests import factories
from tests.register_imports import sources
from tests.register_imports.netbox_server import NetBox
from tests.register_imports.sources import codes, exported, rows_of, table
from tests.register_imports.test_netbox_mirror import run, source

pytestmark = pytest.mark.django_db(transaction=True)

PREFIXES = [
    ("10.0.0.0/16", "active", "", "Acme", "", "Campus"),
    ("10.0.1.0/24", "active", "", "", "", "Servers"),
    ("10.0.2.0/23", "container", "", "", "", "Clients"),
]
ADDRESSES = [
    ("10.0.200.5/16", "active", "", "", "five.example", ""),
    ("10.0.3.1/23", "active", "", "", "client.example", ""),
    ("10.0.0.0/16", "active", "", "", "net.example", ""),
    ("10.0.255.255/16", "active", "", "", "all.example", ""),
    ("10.0.1.7/24", "active", "", "", "seven.example", ""),
]
SUBNET = ("10.0.200.0/24", "active", "", "", "", "Lab")


def files(*prefixes: tuple[str, ...]) -> tuple[bytes, bytes]:
    return (
        table(sources.IMPORT_PREFIX, [*PREFIXES, *prefixes]),
        table(sources.IMPORT_ADDRESS, ADDRESSES),
    )


def test_they_are_in_conflict_with_the_way_out_and_nobody_gets_them() -> None:
    cluster = factories.cluster()
    draft = sources.draft(*files(), cluster=cluster)
    assert codes(draft) == [
        (2, "conflict", "in_container"),
        (3, "conflict", "in_container"),
        (4, "invalid", "network_address"),
        (5, "invalid", "broadcast_address"),
    ]
    message = rows_of(draft)[3].reasons[0]["message"]
    assert "10.0.200.5 lies in the network container 10.0.0.0/16" in message
    assert "add the prefix of its subnet" in message
    with pytest.raises(errors.ImportHasBadRows):
        sources.commit(draft)
    sources.commit(draft, skip_bad=True)
    assert [pool.name for pool in Pool.objects.all()] == ["10.0.1.0-24"]
    assert [str(row) for row in Container.objects.order_by("cidr")] == [
        *("10.0.0.0/16", "10.0.2.0/23")
    ]
    assert not ReservedRange.objects.exists()
    sources.undo(draft)
    assert not any(model.objects.exists() for model in (Pool, Container, Block))


def test_a_prefix_that_has_them_brings_them_and_the_undo_takes_only_these_back() -> None:
    cluster = factories.cluster()
    first = sources.draft(*files(), cluster=cluster)
    sources.commit(first, skip_bad=True)
    second = sources.draft(*files(SUBNET), cluster=cluster)
    assert [row.status for row in rows_of(second)[3:5]] == ["new", "new"]
    sources.commit(second, skip_bad=True)
    block = Block.objects.get(holder_id="five.example")
    assert (str(block.cidr), block.pool.name) == ("10.0.200.5/32", "10.0.200.0-24")
    sources.undo(second)
    assert [pool.name for pool in Pool.objects.all()] == ["10.0.1.0-24"]
    assert [block.holder_id for block in Block.objects.filter(state="held")] == ["seven.example"]


def test_a_range_beside_prefixes_is_in_conflict_too() -> None:
    ranges = table(
        ("start_address", "end_address", "status"), [("10.0.100.10/16", "10.0.100.20/16", "active")]
    )
    draft = sources.draft(files()[0], ranges)
    assert codes(draft) == [(2, "conflict", "in_container")]


def test_a_prefix_that_gets_prefixes_inside_keeps_its_pool(server: NetBox) -> None:
    """Nobody gets an address twice: the pool of the first run has the address, and withholds the new prefix."""
    server.prefix("10.0.0.0/16")
    server.address("10.0.200.5/16", dns_name="five.example")
    mirror = source(server)
    run(mirror)
    server.prefix("10.0.1.0/24")
    second = run(mirror)
    assert [code for _, status, code in codes(second) if status == "conflict"] == ["cidr_overlap"]
    assert Block.objects.get(state="held").pool.name == "10.0.0.0-16"
    assert [row.span for row in ReservedRange.objects.all()] == ["10.0.1.0-10.0.1.255"]


def test_the_prefixes_go_back_to_netbox_as_they_came() -> None:
    draft = sources.draft(*files())
    sources.commit(draft, skip_bad=True)
    prefixes = exported("prefixes")
    statuses = [(row["prefix"], row["status"]) for row in prefixes]
    assert statuses == [(prefix, status) for prefix, status, *_ in PREFIXES]


def test_an_address_lies_in_the_prefix_of_the_cluster_of_its_site(server: NetBox) -> None:
    south = factories.cluster()
    server.prefix("10.0.0.0/16", site="South")
    server.prefix("10.0.1.0/24", site="South")
    server.address("10.0.200.5/16", dns_name="five.example")
    created = run(source(server, mapping={"site": {"South": south.pk}}))
    (row,) = [row for row in rows_of(created) if row.kind == "address"]
    assert (row.cluster_id, row.status) == (south.pk, "conflict")
