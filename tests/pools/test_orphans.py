"""CIDRs that leave their pool while in use: orphans, replaced and draining ones."""

import dataclasses
from ipaddress import ip_network

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.cilium import pool_sync
from pools.core import errors
from pools.core.cilium.podippool import CidrEntry, Family, PodIPPool
from pools.models import Block, FreeSpan, Pool, PoolCIDR, ReservedRange
from pools.platform import events
from pools.register import orphans, pool_cidrs, pools, usage
from tests import factories, people
from tests.checks.conftest import check, wrong

# A CIDR or pool that its cluster lost while in use: kept, never handed out, given back or
# gone


FIRST, SECOND = "10.0.0.0/28", "10.1.0.0/28"
BY = events.Author(actor="cluster c", source="cluster")


@pytest.fixture
def pool() -> Pool:
    """Of /30 blocks, one of which is held."""
    created = factories.pool(FIRST, SECOND, category="pod", mask=30, name="green")
    factories.take(created, factories.holder("n1", kind="node"))
    return created


def _says(*cidrs: str, name: str = "green", reserved: tuple[str, ...] = ()) -> PodIPPool:
    return PodIPPool(name, factories.families(*cidrs, mask=30, reserved=reserved))


def _bring(pool: Pool, *cidrs: str, reserved: tuple[str, ...] = ()) -> None:
    pool_sync.update_pool(Pool.objects.get(pk=pool.pk), _says(*cidrs, reserved=reserved), author=BY)


def _orphans() -> list[str]:
    return [str(cidr) for cidr in PoolCIDR.objects.exclude(orphaned_at=None)]


def test_a_lost_cidr_in_use_is_kept_and_nothing_more_is_taken_of_it(pool: Pool) -> None:
    _bring(pool, SECOND)
    assert _orphans() == [FIRST]
    assert Block.objects.get(holder_id="n1").withheld
    assert all(cidr.startswith("10.1.0.") for cidr in factories.drain(pool))
    used = usage.pool_usage(pool)[4]
    assert (used.capacity, used.held, used.reserved, used.free) == (8, 5, 3, 0)
    assert pool_cidrs.families(pool)[4].cidrs == factories.families(SECOND, mask=30)[4].cidrs


def test_a_lost_cidr_that_nothing_holds_goes(pool: Pool) -> None:
    _bring(pool, FIRST)
    assert [str(cidr) for cidr in pool.cidrs.all()] == [FIRST]


def test_the_same_pool_gets_it_back(pool: Pool) -> None:
    _bring(pool, SECOND)
    _bring(pool, FIRST, SECOND, reserved=("10.0.0.8-10.0.0.9",))
    assert not _orphans()
    assert not Block.objects.get(holder_id="n1").withheld
    assert set(factories.drain(pool)) == {
        "10.0.0.4/30", "10.0.0.12/30", "10.1.0.0/30", "10.1.0.4/30", "10.1.0.8/30", "10.1.0.12/30",
    }  # fmt: skip


def test_another_pool_does_not_get_it(pool: Pool) -> None:
    """cilium/cilium#41986: removed while in use, added again under another pool's name."""
    _bring(pool, SECOND)
    with pytest.raises(errors.CIDROverlap, match=r"10\.0\.0\.0/28 of the pool .*green"):
        pool_sync.import_pools(pool.cluster, [_says("10.0.0.0/29", name="blue")], author=BY)


def test_it_goes_when_nothing_holds_it_any_more(pool: Pool) -> None:
    held = factories.ask(pool, factories.holder("n2", kind="node")).blocks[0]
    _bring(pool, SECOND)
    first = Block.objects.get(holder_id="n1")
    factories.give_back({**held, "id": first.pk, "holder": {"kind": "node", "id": "n1", "uid": ""}})
    assert pool_sync.remove_unused_orphans(pool_sync.orphaned_cidrs(pool.cluster), author=BY) == 0
    factories.give_back(held)
    assert pool_sync.remove_unused_orphans(pool_sync.orphaned_cidrs(pool.cluster), author=BY) == 1
    assert [str(cidr) for cidr in pool.cidrs.all()] == [SECOND]


def test_a_range_of_an_orphan_gives_nothing_back(pool: Pool) -> None:
    reserved = factories.reserve(pool, "10.0.0.8-10.0.0.9")
    _bring(pool, SECOND, reserved=())
    pools.unreserve(reserved, author=BY)
    assert not FreeSpan.objects.filter(pool_cidr=factories.cidr(pool, FIRST)).exists()


def test_a_lost_pool_in_use_is_kept_until_nothing_holds_it(pool: Pool) -> None:
    pool_sync.remove_pool(pool, author=BY)
    pool.refresh_from_db()
    assert pool.orphaned_at is not None
    assert factories.drain(pool) == []
    assert [str(cidr) for cidr in pool.cidrs.all()] == [FIRST]
    block = Block.objects.get(holder_id="n1")
    Block.objects.filter(pk=block.pk).update(state="cooling", released_at=block.allocated_at,
                                                   available_from=block.allocated_at)  # fmt: skip
    pool_sync.remove_unused_orphans(pool_sync.orphaned_cidrs(pool.cluster), author=BY)
    assert not Pool.objects.exists()


def test_a_lost_pool_comes_back(pool: Pool) -> None:
    pool_sync.remove_pool(pool, author=BY)
    _bring(pool, SECOND, FIRST)
    pool.refresh_from_db()
    assert pool.orphaned_at is None
    assert [str(entry.cidr) for entry in pool_cidrs.families(pool)[4].cidrs] == [SECOND, FIRST]
    assert len(factories.drain(pool)) == 7


def test_a_lost_pool_that_nothing_holds_goes() -> None:
    pool = factories.pool(FIRST, category="pod", mask=30)
    pool_sync.remove_pool(pool, author=BY)
    assert not Pool.objects.exists()


def test_somebody_who_adds_an_orphan_to_its_pool_has_it_back(pool: Pool) -> None:
    _bring(pool, SECOND)
    pools.add_cidr(pool.pk, factories.entry(FIRST), author=factories.BY)
    assert not _orphans()


def test_changing_the_rest_of_the_pool_leaves_orphans_alone(pool: Pool) -> None:
    _bring(pool, SECOND)
    parts = pool_cidrs.families(pool)
    parts[4] = dataclasses.replace(
        parts[4], cidrs=(*parts[4].cidrs, factories.entry("10.2.0.0/28"))
    )
    pools.change(pool.pk, pools.PoolChange(families=parts), author=factories.BY)
    assert _orphans() == [FIRST]


def test_nothing_is_drawn_of_an_orphan_that_the_window_did_not_reach() -> None:
    pool = factories.pool("10.4.0.0/18", SECOND, category="pod", mask=30)
    factories.take(pool)
    pool_sync.update_pool(pool, _says(SECOND, name=pool.name), author=BY)
    assert len(factories.drain(pool)) == 4


# --- A CIDR in use that another one replaces gives it its blocks (rule `replaced-cidr-keeps-its-
# blocks`)
def _replace(pool: Pool, *cidrs: str) -> None:
    family = ip_network(cidrs[0]).version
    part = Family(tuple(map(factories.entry, cidrs)), pool.mask_size(family) or 0)
    pools.change(pool.pk, pools.PoolChange(families={family: part}), author=factories.BY)


def _cidrs(pool: Pool) -> list[str]:
    return [str(row.cidr) for row in pool.cidrs.order_by("position")]


def _held(pool: Pool) -> dict[str, str]:
    rows = Block.objects.filter(pool=pool, state="held")
    return {str(row.cidr): row.holder_id for row in rows}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("before", "after", "mask"),
    [
        (["10.130.0.0/24"], ["10.130.0.0/23"], 32),
        (["10.130.1.0/24"], ["10.130.0.0/23"], 32),
        (["10.130.0.0/24", "10.130.1.0/24"], ["10.130.0.0/23"], 32),
        (["10.130.0.0/23"], ["10.130.0.0/24", "10.130.1.0/24"], 32),
        (["10.130.0.0/23"], ["10.130.1.0/24", "10.130.0.0/24"], 32),
        (["10.130.0.0/23"], ["10.130.0.0/24"], 32),
        (["10.130.0.0/24", "10.140.0.0/24"], ["10.140.0.0/24", "10.130.0.0/22"], 28),
        (["fd00:0:0:2::/64"], ["fd00:0:0:2::/63"], 128),
        (["fd00:0:0:2::/63"], ["fd00:0:0:2::/64"], 80),
    ],
)
def test_growth_merge_split_and_narrowing(before: list[str], after: list[str], mask: int) -> None:
    pool = factories.pool(*before, mask=mask, category="vm")
    factories.ask(pool, *factories.holders(3))
    held = _held(pool)
    _replace(pool, *after)
    assert _cidrs(pool) == after
    assert _held(pool) == held
    cidrs = {block["cidr"] for block in factories.ask(pool, *factories.holders(2)).blocks}
    assert len(cidrs | held.keys()) == 5
    assert wrong(check()) == {}


def test_what_would_lose_its_cidr_is_refused_with_its_holder() -> None:
    pool = factories.pool("10.130.0.0/23", mask=24, category="vm")
    factories.ask(pool, *factories.holders(2))
    (outside,) = (holder for cidr, holder in _held(pool).items() if cidr == "10.130.1.0/24")
    with pytest.raises(errors.CIDRInUse) as caught:
        _replace(pool, "10.130.0.0/24")
    assert caught.value.message.startswith("10.130.1.0/24 has 1 held or cooling block:")
    assert outside in caught.value.message
    assert _cidrs(pool) == ["10.130.0.0/23"]
    assert len(_held(pool)) == 2


def test_the_new_size_is_validated_like_a_new_cidr() -> None:
    pool = factories.pool("10.130.0.0/24", mask=28, category="vm", name="one")
    factories.take(pool)
    factories.pool("10.130.1.0/24", mask=28, category="vm", within=pool.cluster, name="two")
    with pytest.raises(errors.CIDROverlap, match=r"of the pool .*two"):
        _replace(pool, "10.130.0.0/23")
    with pytest.raises(errors.CIDROverlap, match="of the same pool"):
        _replace(pool, "10.130.0.0/25", "10.130.0.0/26")
    with pytest.raises(errors.InvalidInput):
        _replace(pool, "10.130.0.0/29")
    with pytest.raises(errors.CIDROverlap, match="replace it in the list"):
        pools.add_cidr(pool.pk, factories.entry("10.130.0.0/25"), author=factories.BY)


def test_reserved_ranges_keep_their_reasons_and_cooling_blocks_cool_on() -> None:
    pool = factories.pool("10.130.0.0/24", mask=32, category="vm", cooldown=600)
    block = factories.take(pool)
    factories.give_back(block)
    cidr = pool.cidrs.get()
    span = factories.entry("10.130.0.0/24", "10.130.0.9-10.130.0.10").reserved[0]
    pools.reserve(cidr.pk, span, author=factories.BY, reason="printers")
    part = Family((CidrEntry(ip_network("10.130.0.0/23"), (span,)),), 32)
    pools.change(pool.pk, pools.PoolChange(families={4: part}), author=factories.BY)
    assert ReservedRange.objects.get(pool=pool).reason == "printers"
    assert factories.row(block).state == "cooling"
    assert pool_cidrs.families(pool)[4].cidrs == part.cidrs


# --- CIDRs that are reserved as a whole are found without reading all that have a reserved range
def test_the_cidrs_that_ranges_cover_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.pool("10.2.0.0/24", name="few", reserved=["10.2.0.1-10.2.0.5"])
    factories.pool(
        "10.0.0.0/22", category="pod", mask=24, name="an address of each block",
        reserved=[f"10.0.{number}.9-10.0.{number}.9" for number in range(4)],
    )  # fmt: skip
    factories.pool("10.1.0.0/29", name="all usable", reserved=["10.1.0.1-10.1.0.6"])
    factories.pool(
        "10.3.0.0/22", category="pod", mask=24, name="three of four blocks",
        reserved=["10.3.0.0-10.3.2.0"],
    )  # fmt: skip
    factories.pool("10.4.0.0/32", name="one", reserved=["10.4.0.0-10.4.0.0"])
    factories.pool("fd00::/120", name="v6", reserved=["fd00::-fd00::ff"])
    factories.pool("fd01::/120", name="v6 in part", reserved=["fd01::-fd01::7"])
    rows = PoolCIDR.objects.order_by("pool_id").select_related("pool")
    covered = [cidr.pool.name for cidr in rows if orphans.is_reserved(cidr)]
    assert {"an address of each block", "all usable", "one", "v6"} <= {*covered}
    assert [cidr.pool.name for cidr in orphans.draining_cidrs()] == covered
    pools = {pool.name: pool.pk for pool in Pool.objects.all()}
    assert orphans.draining_pools(pools.values()) == {pools[name] for name in covered}
    assert orphans.draining_pools([pools["few"], pools["one"]]) == {pools["one"]}
    assert orphans.draining_pools([]) == set()
    monkeypatch.setattr(orphans, "MOST", 1)  # not that of the few reserved addresses
    assert [cidr.pool.name for cidr in orphans.draining_cidrs()] == covered[:1]


def test_lists_of_pools_read_the_ranges_of_few() -> None:
    """Only of a pool that ranges may cover: most reserve a few addresses of each CIDR."""
    factories.pool("10.0.0.0/24", name="few", reserved=["10.0.0.1-10.0.0.5"])
    covered = factories.pool("10.1.0.0/30", name="covered", reserved=["10.1.0.1-10.1.0.2"])
    cidr = factories.cidr(covered)
    client = people.browser()
    url = reverse("admin:pools_pool_changelist")
    for query in ({}, {"state": "full"}, {"state": "active"}):
        with CaptureQueriesContext(connection) as queries:
            client.get(url, query)
        read = [
            sql
            for entry in queries
            if (sql := entry["sql"]).startswith('SELECT "pools_reservedrange"."id"')
        ]
        assert read
        assert all(f'"pool_cidr_id" IN ({cidr.pk})' in sql for sql in read)


def test_a_sync_run_overwrites_no_later_change_of_a_cidr(pool: Pool) -> None:
    """It computes the changes before it has the pool's lock."""
    pk = pool.cidrs.get(cidr=SECOND).pk
    for later in ("removal", "addition"):
        PoolCIDR.objects.filter(pk=pk).update(pending=later)
        if later == "removal":  # the object was seen to have what is added
            pools.set_pending(pk, "", author=BY)
        else:  # the object was seen to lack what is removed
            assert not pools.complete_removal(pk, author=BY)
        assert PoolCIDR.objects.get(pk=pk).pending == later
