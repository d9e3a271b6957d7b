"""A prefix that NetBox adds in one that is a pool here divides it: the mirror follows, no block changes, the undo restores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pools.models import Block, Container, Pool
from pools.register.allocator import window
from pools.register.imports import drafts, exports
from tests import factories
from tests.register_imports import netbox_server, sources
from tests.register_imports.netbox_server import NetBox
from tests.register_imports.sources import BY, counts, rows_of, table
from tests.register_imports.test_divided_parts import reasons, register
from tests.register_imports.test_divided_prefixes import cidrs
from tests.register_imports.test_netbox_mirror import run, source
from tests.register_imports.test_netbox_odd_objects import exported

pytestmark = pytest.mark.django_db(transaction=True)

LEAF = "10.0.1.0-24"  # the pool


@pytest.fixture
def server(settings: Any) -> Iterator[NetBox]:
    settings.IPAM_ALLOW_LOOPBACK_NETBOX = True
    with netbox_server.serving() as netbox:
        netbox.prefix("10.0.1.0/24", description="Servers")
        netbox.address("10.0.1.5/24", dns_name="five.example")
        netbox.address("10.0.1.128/24", dns_name="middle.example")
        yield netbox


def state() -> dict[str, list[Any]]:
    fields = (
        "id",
        "name",
        "description",
        "allow_first_ip",
        "allow_last_ip",
        "cooldown_seconds",
        "labels",
    )
    return {**register(), "pools": list(Pool.objects.order_by("name").values_list(*fields))}


def containers() -> list[str]:
    return [str(row.cidr) for row in Container.objects.order_by("cidr")]


@pytest.mark.exhaustive
def test_a_child_without_addresses_becomes_a_pool(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    before = state()
    server.prefix("10.0.1.64/26", description="Lab")
    server.address("10.0.1.70/26", dns_name="lab.example")
    server.address("10.0.1.6/24", dns_name="six.example")
    draft = run(mirror, mirror=False)
    assert reasons(draft) == {
        ("10.0.1.0/24", "new", "part_divided"),
        ("10.0.1.64/26", "new", "part_divided"),
    }
    message = rows_of(draft)[0].reasons[0]["message"]
    pool = f"10.0.1.0/24 of the pool {Pool.objects.get(name=LEAF)}"
    assert message == f"divides the CIDR {pool}, and becomes a network container"
    assert state() == before
    drafts.IMPORTS.cancel(draft.pk, author=BY)
    second = run(mirror)
    assert containers() == ["10.0.1.0/24"]
    assert cidrs(LEAF) == ["10.0.1.0/26", "10.0.1.128/25"]
    assert cidrs("10.0.1.64-26") == ["10.0.1.64/26"]
    after = state()
    assert {*before["blocks"]} < {*after["blocks"]}
    assert {reason for _, _, reason, _ in after["ranges"]} == {
        "network address of 10.0.1.0/24",
        "broadcast address of 10.0.1.0/24",
    }
    # The first address of a smaller CIDR can be used: it is no network address.
    factories.take(Pool.objects.get(name=LEAF), factories.holder("vm-1"), cidr="10.0.1.63/32")
    third = run(mirror)
    assert set(counts(third)) == {"unchanged"}
    assert [row["status"] for row in exported(exports.prefixes_csv).values()] == ["active"] * 2
    assert {row["address"] for row in exported(exports.addresses_csv).values()} == {
        *("10.0.1.5/24", "10.0.1.6/24", "10.0.1.63/24", "10.0.1.70/26", "10.0.1.128/24")
    }
    drafts.IMPORTS.undo(third.pk, author=BY)
    window.release_blocks([Block.objects.get(holder_id="vm-1").pk])
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert state() == before
    assert counts(run(mirror))["new"] == counts(second)["new"]


@pytest.mark.exhaustive
def test_a_child_with_addresses_stays_in_the_pool_and_is_divided_again(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    history = []
    for prefix in ("10.0.1.0/25", "10.0.1.0/26", "10.0.1.0/28"):
        before = state()
        server.prefix(prefix)
        created = run(mirror)
        assert "conflict" not in counts(created)
        assert state()["blocks"] == before["blocks"]
        assert set(counts(run(mirror))) == {"unchanged"}
        history.append((created.pk, before))
    assert containers() == ["10.0.1.0/24", "10.0.1.0/25", "10.0.1.0/26"]
    assert cidrs(LEAF) == ["10.0.1.0/28", "10.0.1.128/25"]
    for pk, before in reversed(history):
        drafts.IMPORTS.undo(pk, author=BY)
        assert state() == before


@pytest.mark.exhaustive
def test_prefixes_of_several_levels_at_once(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    before = state()
    server.objects["prefixes"][0]["status"] = netbox_server.choice("container")
    server.prefix("10.0.1.0/25", "container")
    server.prefix("10.0.1.0/29")
    server.prefix("10.0.1.64/26")
    server.prefix("10.0.1.192/26", "container")
    second = run(mirror)
    assert "conflict" not in counts(second)
    assert containers() == ["10.0.1.0/24", "10.0.1.0/25", "10.0.1.192/26"]
    assert cidrs(LEAF) == ["10.0.1.0/29", "10.0.1.128/26"]
    assert state()["blocks"] == before["blocks"]
    assert set(counts(run(mirror))) == {"unchanged"}
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert state() == before


@pytest.mark.exhaustive
def test_a_pool_without_blocks_is_gone_and_comes_back_with_the_undo(server: NetBox) -> None:
    server.objects["ip-addresses"].clear()
    mirror = source(server)
    run(mirror)
    Pool.objects.filter(name=LEAF).update(labels={"team": "net"}, cooldown_seconds=7)
    before = state()
    child = server.prefix("10.0.1.64/26")
    second = run(mirror)
    assert list(Pool.objects.values_list("name", flat=True)) == ["10.0.1.64-26"]
    assert containers() == ["10.0.1.0/24"]
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert state() == before
    run(mirror)
    # When the child is gone, too, the prefix stays a container, and its addresses get parts of it.
    server.objects["prefixes"].remove(child)
    run(mirror)
    server.address("10.0.1.9/24", dns_name="nine.example")
    created = run(mirror)
    assert counts(created) == {"new": 3, "unchanged": 1}  # the part, its network address
    assert (containers(), cidrs(LEAF)) == (["10.0.1.0/24"], ["10.0.1.0/25"])
    assert counts(run(mirror)) == {"unchanged": 4}


def test_a_pool_becomes_a_container_by_its_status_alone(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    before = state()
    server.objects["prefixes"][0]["status"] = netbox_server.choice("container")
    second = run(mirror)
    assert "conflict" not in counts(second)
    assert cidrs(LEAF) == ["10.0.1.0/25", "10.0.1.128/25"]
    assert state()["blocks"] == before["blocks"]
    server.objects["prefixes"][0]["status"] = netbox_server.choice("active")
    assert counts(run(mirror))["changed"] == 1
    assert set(counts(run(mirror))) == {"unchanged"}


def test_prefixes_that_take_the_place_of_one(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    before = state()
    del server.objects["prefixes"][0]
    server.prefix("10.0.1.0/25")
    server.prefix("10.0.1.128/25")
    second = run(mirror)
    assert "conflict" not in counts(second)
    assert cidrs(LEAF) == ["10.0.1.0/25", "10.0.1.128/25"]
    assert containers() == []
    # The first address of the second prefix is its network address now: the block stays, withheld.
    rows = {row[:-1] for row in state()["blocks"]}
    assert rows == {row[:-1] for row in before["blocks"]}
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert state() == before


@pytest.mark.exhaustive
def test_a_part_is_taken_over_and_divided_in_one_run(server: NetBox) -> None:
    server.prefix("10.0.0.0/16", description="Campus")
    server.address("10.0.200.5/16", dns_name="part.example")
    mirror = source(server)
    run(mirror)
    before = state()
    server.prefix("10.0.200.0/24", description="Floor")
    server.prefix("10.0.200.64/26", description="Lab")
    second = run(mirror)
    assert "conflict" not in counts(second)
    assert containers() == ["10.0.0.0/16", "10.0.200.0/24"]
    assert cidrs("10.0.0.0-16") == ["10.0.200.0/26"]
    assert cidrs("10.0.200.64-26") == ["10.0.200.64/26"]
    assert state()["blocks"] == before["blocks"]
    assert exported(exports.addresses_csv)["10.0.200.5/24", ""]["dns_name"] == "part.example"
    assert set(counts(run(mirror))) == {"unchanged"}
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert state() == before


def test_a_file_with_the_child_alone_keeps_the_prefix_as_a_container() -> None:
    cluster = factories.cluster()
    parent = table(sources.IMPORT_PREFIX, [("10.0.1.0/24", "active", "", "", "", "Servers")])
    address = table(sources.IMPORT_ADDRESS, [("10.0.1.5/24", "active", "", "", "five.example")])
    drafts.IMPORTS.commit(sources.draft(parent, address, cluster=cluster).pk, author=BY)
    before = state()
    child = table(sources.IMPORT_PREFIX, [("10.0.1.64/26", "active")])
    more = sources.draft(child, cluster=cluster)
    drafts.IMPORTS.commit(more.pk, author=BY)
    assert Container.objects.get().description == "Servers"
    assert cidrs(LEAF) == ["10.0.1.0/26"]
    again = sources.draft(parent, address, child, cluster=cluster)
    assert set(counts(again)) == {"unchanged"}
    drafts.IMPORTS.undo(more.pk, author=BY)
    assert state() == before


def test_a_pool_that_no_import_has_brought_is_not_divided(server: NetBox) -> None:
    mirror = source(server)
    factories.pool("10.0.1.0/24", name="ours", within=mirror.cluster, category="vm", mask=32)
    server.prefix("10.0.1.64/26")
    created = run(mirror)
    assert ("10.0.1.64/26", "conflict", "cidr_overlap") in reasons(created)
    row = next(row for row in rows_of(created) if row.status == "conflict")
    assert "release what 10.0.1.0/24 holds and remove this CIDR" in row.reasons[0]["message"]
    assert cidrs("ours") == ["10.0.1.0/24"]
    assert Block.objects.filter(state="held").count() == 2


def test_a_pool_with_other_cidrs_is_not_divided() -> None:
    cluster = factories.cluster()
    both = table(("prefix", "pool name"), [("10.0.1.0/24", "both"), ("10.0.2.0/24", "both")])
    drafts.IMPORTS.commit(sources.draft(both, cluster=cluster).pk, author=BY)
    draft = sources.draft(table(("prefix",), [("10.0.1.64/26",)]), cluster=cluster)
    (row,) = rows_of(draft)
    assert (row.status, row.reasons[0]["code"]) == ("conflict", "cidr_overlap")
    assert "which has other CIDRs, too" in row.reasons[0]["message"]


@pytest.mark.exhaustive
def test_a_child_that_has_stayed_in_the_pool_goes_when_it_is_empty(server: NetBox) -> None:
    mirror = source(server, cooldown_seconds=0)
    run(mirror)
    child = server.prefix("10.0.1.0/26")
    run(mirror)
    server.objects["prefixes"].remove(child)
    stored = run(mirror)
    assert "released" not in counts(stored)
    assert Block.objects.get(holder_id="five.example").state == "held"
    assert cidrs(LEAF) == ["10.0.1.0/26", "10.0.1.128/25"]
    server.objects["ip-addresses"].pop(0)
    gone = run(mirror)
    assert counts(gone)["released"] == 2  # the address and the CIDR
    assert cidrs(LEAF) == ["10.0.1.128/25"]


def test_a_prefix_stays_a_pool_while_it_cannot_be_divided(server: NetBox) -> None:
    server.range("10.0.1.60/24", "10.0.1.69/24", "reserved")
    mirror = source(server)
    run(mirror)
    before = state()
    child = server.prefix("10.0.1.64/26")
    created = run(mirror)
    assert reasons(created) == {("10.0.1.64/26", "conflict", "part_in_use")}
    assert "divide the range at 10.0.1.63" in rows_of(created)[0].reasons[0]["message"]
    assert state() == before
    server.objects["prefixes"].remove(child)
    assert set(counts(run(mirror))) == {"unchanged"}
