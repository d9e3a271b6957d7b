"""What rows of the register may be, and which may go, whoever writes them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from pools.core import errors
from pools.models import AddressSpace, Block, FreeSpan, Now, Pool, PoolCIDR
from pools.register import clusters, pools
from pools.register.allocator import allocation, requests
from tests import factories

# What a block's row may be at all: unique, canonical, a block of its pool, in a sensible
# state


def _row(pool: Pool, cidr: str, **columns: Any) -> Block:
    values: dict[str, Any] = {
        "pool": pool,
        "space_id": pool.space_id,
        "category": pool.category,
        "family": 6 if ":" in cidr else 4,
        "cidr": cidr,
        "state": "held",
        "holder_kind": "vm",
        "holder_id": "raw",
        "allocated_at": Now(),
    }
    return Block(**values | columns)


def test_an_address_is_there_once_in_a_space(breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    held = factories.take(pool)
    with breaks("block_unique"):
        Block.objects.bulk_create([_row(pool, held["cidr"])])


@pytest.mark.parametrize(
    "cidr",
    ["10.9.0.1/32", "10.0.1.0/32", "10.0.0.0/31", "10.0.0.0/24", "fd00::1/128"],
)
def test_a_block_is_one_of_its_pools(cidr: str, breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    with breaks("block_in_pool"):
        Block.objects.bulk_create([_row(pool, cidr)])


def test_a_block_has_the_space_and_category_of_its_pool(breaks) -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")
    with breaks("block_in_pool"):
        Block.objects.bulk_create([_row(pool, "10.0.0.9/32", space_id=other.space_id)])
    with breaks("block_in_pool"):
        Block.objects.bulk_create([_row(pool, "10.0.0.9/32", category="node")])


def test_host_bits_are_no_block(sql) -> None:
    factories.take(factories.pool("10.0.0.0/16", mask=24))
    with pytest.raises(DatabaseError, match="bits set to right of mask"), transaction.atomic():
        sql("UPDATE pools_block SET cidr = '10.0.0.1/24'")


BROKEN_STATES = [
    pytest.param({"available_from": Now()}, id="held and available"),
    pytest.param({"allocated_at": None}, id="held since never"),
    pytest.param({"holder_id": ""}, id="held by nobody"),
    pytest.param({"holder_kind": ""}, id="held by no kind"),
    pytest.param({"state": "cooling", "released_at": Now()}, id="cooling for ever"),
    pytest.param({"state": "cooling", "available_from": Now()}, id="cooling, never released"),
    pytest.param({"state": "available"}, id="available from never"),
    pytest.param({"state": "lost"}, id="unknown state"),
]


@pytest.mark.parametrize("columns", BROKEN_STATES)
def test_states_make_sense(columns: dict[str, Any], breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    with breaks("block_state"):
        Block.objects.bulk_create([_row(pool, "10.0.0.9/32", **columns)])


@pytest.mark.parametrize("state", ["held", "cooling"])
def test_a_live_block_is_not_deleted(state: str, breaks) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool)
    if state == "cooling":
        factories.give_back(block)
    with breaks("block_in_use"):
        Block.objects.filter(pk=block["id"]).delete()


def test_a_block_in_a_reserved_range_is_not_written_by_hand(breaks) -> None:
    pool = factories.pool("10.0.0.0/24", reserved=["10.0.0.10-10.0.0.20"])
    with breaks("block_in_reserved_range"):
        Block.objects.bulk_create([_row(pool, "10.0.0.15/32")])


# --- What never changes of a pool, a CIDR, a block: the database refuses it, whoever writes -------
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("mask_size_v4", 25),
        ("mask_size_v4", None),
        ("mask_size_v6", 121),
        ("mask_size_v6", None),
        ("category", "vm"),
        ("allow_first_ip", True),
        ("allow_last_ip", True),
    ],
)
def test_a_pool(column: str, value: Any, breaks) -> None:
    pool = factories.pool("10.0.0.0/16", "fd00::/112", mask={4: 24, 6: 120}, category="pod")
    with breaks("pool_is_immutable"):
        Pool.objects.filter(pk=pool.pk).update(**{column: value})


@pytest.mark.parametrize("column", ["cluster_id", "space_id"])
def test_a_pools_place(column: str, breaks) -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    with breaks("pool_is_immutable"):
        Pool.objects.filter(pk=pool.pk).update(**{column: getattr(other, column)})


def test_the_service_says_what_the_mask_size_is() -> None:
    pool = factories.pool("10.0.0.0/16", mask=24)
    change = pools.PoolChange(families=factories.families("10.0.0.0/16", mask=25))
    with pytest.raises(errors.ImmutableInUse, match=r"never changes \(it is 24\)"):
        pools.change(pool.pk, change, author=factories.BY)


def test_a_family_may_be_added_and_is_fixed_then(breaks) -> None:
    pool = factories.pool("10.0.0.0/16", mask=24)
    change = pools.PoolChange(families=factories.families("fd00::/112", mask=120))
    changed = pools.change(pool.pk, change, author=factories.BY)
    assert (changed.mask_size_v4, changed.mask_size_v6) == (24, 120)
    assert factories.take(pool, family=6)["cidr"] == "fd00::/120"
    with breaks("pool_is_immutable"):
        Pool.objects.filter(pk=pool.pk).update(mask_size_v6=124)


@pytest.mark.parametrize(
    ("column", "size", "rule"),
    [
        ("mask_size_v4", 0, "pool_mask_sizes"),
        ("mask_size_v4", 33, "pool_mask_sizes"),
        ("mask_size_v6", 0, "pool_mask_sizes_v6"),
        ("mask_size_v6", 129, "pool_mask_sizes_v6"),
    ],
)
def test_a_mask_size_fits_its_family(column: str, size: int, rule: str, breaks) -> None:
    pool = factories.pool("fd00::/112" if column.endswith("4") else "10.0.0.0/24")
    with breaks(rule):
        Pool.objects.filter(pk=pool.pk).update(**{column: size})


@pytest.mark.parametrize("column", ["cidr", "pool_id", "space_id"])
def test_a_cidr(column: str, breaks) -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    value = "10.0.0.0/25" if column == "cidr" else getattr(factories.cidr(other), column)
    with breaks("cidr_is_immutable"):
        PoolCIDR.objects.filter(pool=pool).update(**{column: value})


@pytest.mark.sample(3)
@pytest.mark.parametrize("column", ["cidr", "pool_id", "space_id", "category", "family"])
def test_a_block(column: str, breaks) -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    held, foreign = factories.row(factories.take(pool)), factories.row(factories.take(other))
    values = {"cidr": "10.0.0.77/32", "category": "pod", "family": 6}
    value = values.get(column, getattr(foreign, column))
    with breaks("block_is_immutable"):
        Block.objects.filter(pk=held.pk).update(**{column: value})


# --- Rule `cidrs-never-overlap`; another space may have the same ones -----------------------------
OVERLAPS = [
    ("10.0.0.0/16", "10.0.0.0/16"),
    ("10.0.0.0/16", "10.0.4.0/24"),
    ("10.0.4.0/24", "10.0.0.0/16"),
    ("10.0.255.0/24", "10.0.254.0/23"),
    ("fd00::/64", "fd00::ff00/120"),
]


@pytest.mark.parametrize(("first", "other"), OVERLAPS)
def test_the_service_names_the_pool_in_the_way(first: str, other: str) -> None:
    pool = factories.pool(first, name="first")
    with pytest.raises(errors.CIDROverlap, match=f"{other} overlaps {first} of the pool .*first"):
        factories.pool(other, within=pool.cluster)
    assert pool.cluster.pools.count() == 1


@pytest.mark.sample(3)
@pytest.mark.parametrize(("first", "other"), OVERLAPS)
def test_the_database_holds_it(first, other, breaks) -> None:
    pool = factories.pool(first)
    second = factories.pool("192.168.0.0/16", "fd01::/64", within=pool.cluster)
    with breaks("cidrs_of_a_space_never_overlap"):
        PoolCIDR.objects.bulk_create([PoolCIDR(pool=second, space=pool.space, cidr=other)])


def test_within_one_pool() -> None:
    pool = factories.pool("10.0.0.0/24")
    with pytest.raises(errors.CIDROverlap):
        pools.add_cidr(pool.pk, factories.entry("10.0.0.128/25"), author=factories.BY)


def test_neighbours_do_not_overlap() -> None:
    pool = factories.pool("10.0.0.0/24", "10.0.1.0/24", "fd00::/64", "fd00:0:0:1::/64")
    assert pool.cidrs.count() == 4


def test_another_cluster_has_the_same_cidr_and_the_same_addresses() -> None:
    first, other = factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")
    assert factories.take(first)["cidr"] == factories.take(other)["cidr"] == "10.0.0.1/32"


def test_another_space_of_the_same_cluster_too() -> None:
    first = factories.pool("10.0.0.0/24")
    isolated = AddressSpace.objects.create(cluster=first.cluster, name="red")
    other = factories.pool("10.0.0.0/24", within=first.cluster, space=isolated)
    assert factories.take(first)["cidr"] == factories.take(other)["cidr"]


def test_a_cidr_lies_in_the_space_of_its_pool(breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    isolated = AddressSpace.objects.create(cluster=pool.cluster, name="red")
    with breaks("cidr_in_pools_space"):
        PoolCIDR.objects.bulk_create([PoolCIDR(pool=pool, space=isolated, cidr="10.1.0.0/24")])


def test_a_removed_cidr_may_belong_to_another_pool() -> None:
    first = factories.pool("10.0.0.0/24", "10.0.1.0/24")
    pools.remove_cidr(factories.cidr(first, "10.0.1.0/24").pk, author=factories.BY)
    other = factories.pool("10.0.1.0/24", within=first.cluster)
    assert factories.take(other)["cidr"] == "10.0.1.1/32"


# --- An in-use or cooling CIDR cannot be removed, nor its pool; the error names count and holders
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
def test_the_database_keeps_what_is_in_use(
    rows: type[PoolCIDR | Pool], state: str, breaks, sql
) -> None:
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
