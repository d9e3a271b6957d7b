"""A prefix that a source adds inside a part of an earlier import divides the part; no block changes, and the undo restores it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pools.core import addresses, errors
from pools.models import (
    Block,
    Container,
    Pool,
    PoolCIDR,
    RegisterImport,
    RegisterRecord,
    ReservedRange,
)
from pools.register import pools
from pools.register.allocator import window
from pools.register.checks import compare_free_space
from pools.register.imports import drafts, exports
from tests import factories
from tests.register_imports import netbox_server, sources
from tests.register_imports.netbox_server import NetBox
from tests.register_imports.sources import BY, counts, rows_of, table
from tests.register_imports.test_divided_prefixes import cidrs
from tests.register_imports.test_netbox_mirror import run, source

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = "10.0.0.0-16"  # the pool


@pytest.fixture
def server(settings: Any) -> Iterator[NetBox]:
    settings.IPAM_ALLOW_LOOPBACK_NETBOX = True
    with netbox_server.serving() as netbox:
        netbox.prefix("10.0.0.0/16", description="Campus")
        netbox.prefix("10.0.1.0/24")
        netbox.address("10.0.200.5/16", dns_name="five.example")
        netbox.address("10.0.200.130/16", dns_name="last.example")
        netbox.address("10.0.0.9/16", dns_name="nine.example")
        yield netbox


def register() -> dict[str, list[Any]]:
    """The register as it is compared before an import and after its undo; blocks with their ids."""
    records = RegisterRecord.objects.order_by("target", "first", "last")
    for cidr in PoolCIDR.objects.select_related("pool"):
        assert not any(compare_free_space(cidr).values()), cidr
    return {
        "blocks": list(
            Block.objects.filter(state="held").order_by("cidr").values_list("id", "cidr", "pool__name", "holder_id", "allocated_at", "withheld")
        ),
        "cidrs": list(PoolCIDR.objects.order_by("cidr").values_list("cidr", "pool__name", "position", "tags", "owner", "custom_fields")),
        "ranges": list(ReservedRange.objects.order_by("first").values_list("first", "last", "reason", "pool__name")),
        "containers": list(Container.objects.order_by("cidr").values_list("cidr", "description")),
        "records": list(records.values_list("target", "first", "last", "details", "source_id")),
    }  # fmt: skip


def reasons(made: Any) -> set[tuple[str, str, str]]:
    return {(str(row.cidr), row.status, why["code"]) for row in rows_of(made) for why in row.reasons if why["code"] != "part"}  # fmt: skip


@pytest.mark.exhaustive
def test_an_empty_prefix_becomes_a_pool_and_the_part_keeps_the_rest(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    before = register()
    server.prefix("10.0.200.64/26", description="Lab")
    server.address("10.0.200.70/26", dns_name="lab.example")
    server.address("10.0.200.131/16", dns_name="new.example")
    second = run(mirror)
    assert reasons(second) == {("10.0.200.64/26", "new", "part_divided")}
    assert cidrs("10.0.200.64-26") == ["10.0.200.64/26"]
    lab = Pool.objects.get(name="10.0.200.64-26")
    assert (lab.description, lab.allow_first_ip) == ("Lab", False)
    assert cidrs(PARTS) == ["10.0.0.0/24", "10.0.200.0/26", "10.0.200.128/25"]
    after = register()
    assert {*before["blocks"]} < {*after["blocks"]}  # the same rows, with the same times
    assert Block.objects.get(holder_id="lab.example").pool == lab
    assert Block.objects.get(holder_id="new.example").pool.name == PARTS
    third = run(mirror)
    assert set(counts(third)) == {"unchanged"}
    assert register() == after
    drafts.IMPORTS.undo(third.pk, author=BY)
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert register() == before
    assert Block.objects.get(cidr="10.0.200.131/32").state == "cooling"
    assert counts(run(mirror))["new"] == counts(second)["new"]


@pytest.mark.exhaustive
def test_a_prefix_with_addresses_stays_in_the_pool_of_the_part(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    before = register()
    server.prefix("10.0.200.0/26", description="Floor 2")
    second = run(mirror)
    (row,) = (row for row in rows_of(second) if str(row.cidr) == "10.0.200.0/26")
    assert (row.status, row.reasons[0]["message"]) == (
        "new",
        "divides the part 10.0.200.0/24 of the pool " + str(Pool.objects.get(name=PARTS))
        + ", and becomes a CIDR of this pool, which has addresses there",
    )  # fmt: skip
    assert cidrs(PARTS) == ["10.0.0.0/24", "10.0.200.0/26", "10.0.200.128/25"]
    assert register()["blocks"] == before["blocks"]
    reserved = {reason for _, _, reason, _ in register()["ranges"]}
    assert {"network address of 10.0.200.0/26", "broadcast address of 10.0.200.0/26"} < reserved
    assert "10.0.200.63" not in exports.ranges_csv(None).decode()  # nothing that NetBox had
    assert set(counts(run(mirror))) == {"unchanged"}
    taken = factories.take(
        Pool.objects.get(name=PARTS), factories.holder("vm-1"), cidr="10.0.200.6/32"
    )
    assert taken is not None
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert cidrs(PARTS) == ["10.0.0.0/24", "10.0.200.0/24"]
    assert Block.objects.get(holder_id="vm-1").state == "held"  # kept, in the part again


@pytest.mark.exhaustive
def test_several_prefixes_at_once_with_ranges_and_what_users_hold(server: NetBox) -> None:
    server.range("10.0.200.20/16", "10.0.200.29/16", "reserved")
    mirror = source(server)
    run(mirror)
    pool = Pool.objects.get(name=PARTS)
    factories.take(pool, factories.holder("vm-1"), cidr="10.0.200.77/32")
    part = PoolCIDR.objects.get(cidr="10.0.200.0/24")
    span = addresses.AddressRange.from_network(addresses.parse_cidr("10.0.200.224/28"))
    pools.reserve(part.pk, span, author=BY, reason="ours")
    before = register()
    server.prefix("10.0.200.16/28")  # has the range
    server.prefix("10.0.200.192/27", "container")
    server.prefix("10.0.200.200/29")
    server.prefix("10.0.0.0/29")  # has the reserved network address of the /16
    second = run(mirror)
    assert cidrs(PARTS) == [
        *("10.0.0.8/29", "10.0.200.0/28", "10.0.200.16/28", "10.0.200.64/26"),
        *("10.0.200.128/26", "10.0.200.224/27"),
    ]
    assert register()["blocks"] == before["blocks"]
    assert ("10.0.200.20", "10.0.200.29") in {(str(a), str(b)) for a, b, *_ in register()["ranges"]}
    assert "ours" in {reason for _, _, reason, _ in register()["ranges"]}
    assert [str(row.cidr) for row in Container.objects.order_by("cidr")] == [
        "10.0.0.0/16",
        "10.0.200.192/27",
    ]
    assert cidrs("10.0.200.200-29") == ["10.0.200.200/29"]
    assert cidrs("10.0.0.0-29") == ["10.0.0.0/29"]
    assert set(counts(run(mirror))) == {"unchanged"}
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert register() == before


@pytest.mark.exhaustive
def test_what_is_in_use_in_a_container_stays_in_parts_of_it(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    before = register()
    server.prefix("10.0.200.0/25", "container")
    server.prefix("10.0.200.64/26")
    created = run(mirror)
    assert reasons(created) == {
        ("10.0.200.0/25", "new", "part_divided"),
        ("10.0.200.64/26", "new", "part_divided"),
    }
    assert cidrs(PARTS) == ["10.0.0.0/24", "10.0.200.0/26", "10.0.200.128/25"]
    assert register()["blocks"] == before["blocks"]
    assert set(counts(run(mirror))) == {"unchanged"}
    drafts.IMPORTS.undo(created.pk, author=BY)
    assert register() == before


def test_a_reserved_range_is_not_cut(server: NetBox) -> None:
    server.range("10.0.200.60/16", "10.0.200.69/16", "reserved")
    mirror = source(server)
    run(mirror)
    server.prefix("10.0.200.64/26")
    created = run(mirror)
    assert ("10.0.200.64/26", "conflict", "part_in_use") in reasons(created)
    assert "the reserved range 10.0.200.60-10.0.200.69" in rows_of(created)[0].reasons[0]["message"]
    assert "divide the range at 10.0.200.63" in rows_of(created)[0].reasons[0]["message"]


def test_a_file_with_the_new_prefix_alone_divides_too() -> None:
    cluster = factories.cluster()
    first = (
        table(sources.IMPORT_PREFIX, [("10.0.0.0/16", "active"), ("10.0.1.0/24", "active")]),
        table(sources.IMPORT_ADDRESS, [("10.0.200.5/16", "active", "", "", "five.example")]),
    )
    drafts.IMPORTS.commit(sources.draft(*first, cluster=cluster).pk, author=BY)
    before = register()
    more = sources.draft(
        table(sources.IMPORT_PREFIX, [("10.0.200.128/26", "active")]), cluster=cluster
    )
    assert [(str(row.cidr), row.status) for row in rows_of(more)] == [
        ("10.0.200.128/26", "new"), ("10.0.200.0/25", "new"),
    ]  # fmt: skip
    # An address that is allocated between the draft and its commit decides what the prefix becomes.
    pool = Pool.objects.get(name=PARTS)
    factories.take(pool, factories.holder("vm-1"), cidr="10.0.200.130/32")
    drafts.IMPORTS.commit(more.pk, author=BY)
    assert cidrs(PARTS) == ["10.0.200.0/25", "10.0.200.128/26"]
    again = sources.draft(*first, cluster=cluster)
    assert set(counts(again)) == {"unchanged"}
    drafts.IMPORTS.undo(more.pk, author=BY)
    window.release_blocks([Block.objects.get(holder_id="vm-1").pk])
    assert register() == before


def test_a_part_that_would_lose_a_block_is_not_divided(server: NetBox) -> None:
    created = source(server)
    run(created)
    server.prefix("10.0.200.64/26")
    draft = run(created, mirror=False)
    rest = next(row for row in rows_of(draft) if str(row.cidr) == "10.0.200.0/26")
    drafts.IMPORTS.skip_rows(draft.pk, [rest.number], skipped=True, author=BY)
    before = register()
    with pytest.raises(errors.CIDRInUse, match=r"10\.0\.200\.5/32 is in use, and no row"):
        drafts.IMPORTS.commit(draft.pk, author=BY, skip_bad=True)
    assert register() == before


@pytest.mark.exhaustive
def test_a_part_is_divided_again_and_the_undos_go_backwards(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    states = [register()]
    created = []
    for prefix in ("10.0.200.64/26", "10.0.200.32/27"):
        server.prefix(prefix)
        created.append(run(mirror))
        states.append(register())
    assert cidrs(PARTS) == ["10.0.0.0/24", "10.0.200.0/27", "10.0.200.128/25"]
    first = RegisterImport.objects.order_by("pk")[0]
    with pytest.raises(
        errors.ImportInUse, match=f"/24 was divided by the later import {created[0].pk}"
    ):
        drafts.IMPORTS.undo(first.pk, author=BY)
    with pytest.raises(
        errors.ImportInUse, match=r"10\.0\.200\.32/27 of the pool 10\.0\.200\.32-27 lies in"
    ):
        drafts.IMPORTS.undo(created[0].pk, author=BY)
    for run_, state in zip(reversed(created), reversed(states[:-1]), strict=True):
        drafts.IMPORTS.undo(run_.pk, author=BY)
        assert register() == state
    drafts.IMPORTS.undo(first.pk, author=BY)
    assert not any(register().values())
