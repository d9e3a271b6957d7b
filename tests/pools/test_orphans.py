"""A CIDR or pool that its cluster lost while in use: kept, never handed out, given back or gone."""

import dataclasses

import pytest

from pools.cilium import pool_sync
from pools.core import errors
from pools.core.cilium.podippool import PodIPPool
from pools.models import Block, FreeSpan, Pool, PoolCIDR
from pools.platform import events
from pools.register import pool_cidrs, pools, usage
from tests import factories

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
