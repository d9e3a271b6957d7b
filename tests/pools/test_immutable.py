"""What never changes of a pool, a CIDR, a block: the database refuses it, whoever writes."""

from typing import Any

import pytest

from pools.core import errors
from pools.models import Block, Pool, PoolCIDR
from pools.register import pools
from tests import factories


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
