"""An in-use or cooling CIDR cannot be removed, nor its pool; the error names count and holders."""

from collections.abc import Callable

import pytest
from django.db import connection

from pools.core import errors
from pools.models import Block, FreeSpan, Pool, PoolCIDR
from pools.register import clusters, pools
from pools.register.allocator import allocation, requests
from tests import factories


def _remove_cidr(pool: Pool) -> None:
    pools.remove_cidr(factories.cidr(pool).pk, author=factories.BY)


def _delete_pool(pool: Pool) -> None:
    pools.delete(pool.pk, author=factories.BY)


def _leave_out(pool: Pool) -> None:
    change = pools.PoolChange(families=factories.families("10.9.0.0/24"))
    pools.change(pool.pk, change, author=factories.BY)


def _forget_cluster(pool: Pool) -> None:
    clusters.remove(pool.cluster, author=factories.BY)


DOORS = [_remove_cidr, _delete_pool, _leave_out, _forget_cluster]


@pytest.mark.sample(3)
@pytest.mark.parametrize("remove", DOORS)
@pytest.mark.parametrize("state", ["held", "cooling"])
def test_refused_with_count_and_first_holders(remove: Callable[[Pool], None], state: str) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    blocks = factories.ask(pool, *factories.holders(25)).blocks
    if state == "cooling":
        factories.give_back(blocks[0])
    expected = rf"25 held or cooling blocks: vm {blocks[0]['holder']['id']} \(10.0.0.1/32, {state}"
    with pytest.raises((errors.CIDRInUse, errors.PoolInUse), match=expected) as caught:
        remove(pool)
    assert "10.0.0.20/32" in str(caught.value)
    assert str(caught.value).endswith("and 5 more.")
    assert Block.objects.filter(state__in=["held", "cooling"]).count() == 25
    assert list(pool.cidrs.values_list("cidr", flat=True).order_by("id")) == [
        factories.cidr(pool).cidr
    ]


@pytest.mark.parametrize("remove", DOORS)
def test_allowed_when_the_cooldown_is_over(remove, clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    factories.give_back(factories.take(pool))
    clock.advance(61)
    remove(pool)
    assert not PoolCIDR.objects.filter(cidr="10.0.0.0/24").exists()
    assert not Block.objects.exists()
    assert not FreeSpan.objects.filter(pool_cidr__cidr="10.0.0.0/24").exists()


@pytest.mark.parametrize("state", ["held", "cooling"])
@pytest.mark.parametrize("rows", [PoolCIDR, Pool])
def test_the_database_holds_it(rows: type[PoolCIDR | Pool], state: str, breaks, sql) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool)
    if state == "cooling":
        factories.give_back(block)
    sql("DELETE FROM pools_freespan")
    if rows is PoolCIDR:
        with breaks("cidr_in_use"):
            sql("DELETE FROM pools_poolcidr WHERE pool_id = %s", pool.pk)
    else:
        with breaks("pool_in_use"):
            sql("DELETE FROM pools_pool WHERE id = %s", pool.pk)


def test_a_block_needs_its_pool(breaks, sql) -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    with breaks("block_in_pool"):
        sql(
            "INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,"
            " holder_kind, holder_id, holder_uid, org, env, allocated_at)"
            " SELECT -1, space_id, category, family, '10.0.1.77/32', 'held', withheld, 'vm', 'x', '',"
            " '', '', now() FROM pools_block WHERE state = 'held'"
        )


def test_only_the_cidrs_own_blocks_count() -> None:
    pool = factories.pool("10.0.0.0/31", "10.0.0.2/31", "10.0.0.4/31")
    factories.take(pool, cidr="10.0.0.1/32")
    factories.take(pool, cidr="10.0.0.4/32")
    pools.remove_cidr(factories.cidr(pool, "10.0.0.2/31").pk, author=factories.BY)
    assert sorted(factories.drain(pool)) == ["10.0.0.0/32", "10.0.0.5/32"]


def test_a_removed_cidr_gives_no_more_blocks_of_its_window() -> None:
    pool = factories.pool("10.0.0.0/29", "10.0.1.0/29")
    factories.take(pool, cidr="10.0.1.1/32")
    factories.give_back(factories.take(pool))  # fills the window with both
    pools.remove_cidr(factories.cidr(pool, "10.0.0.0/29").pk, author=factories.BY)
    assert factories.drain(pool) == [f"10.0.1.{n}/32" for n in range(2, 7)]


def test_what_a_finished_request_got_does_not_keep_its_cidr() -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=0)
    first, waiting = factories.take(pool), factories.holder()
    requests.allocate(pool.pk, factories.demand(waiting), author=factories.BY, wait=True)
    factories.give_back(first)
    assert requests.retry(pool.pk) == 1
    allocation.release(first["id"], waiting, author=factories.BY)
    pools.remove_cidr(factories.cidr(pool).pk, author=factories.BY)
    connection.check_constraints()  # what a commit would do
