"""Dual-stack in one go: a block of each family, or none."""

import pytest

from pools.core import errors
from pools.models import Block
from pools.register.allocator import allocation
from tests import factories


def test_one_of_each_family() -> None:
    pool = factories.pool("10.20.0.0/16", "fd00::/104", mask={4: 24, 6: 120}, category="pod")
    blocks = factories.ask(pool, factories.holder(kind="node")).blocks
    assert [block["cidr"] for block in blocks] == ["10.20.0.0/24", "fd00::/120"]
    assert [block["address"] for block in blocks] == [None, None]


@pytest.mark.parametrize("short", [4, 6])
def test_none_when_one_family_is_exhausted(short: int) -> None:
    cidrs = ("10.0.0.0/32", "fd00::/64") if short == 4 else ("10.0.0.0/24", "fd00::/128")
    pool = factories.pool(*cidrs)
    factories.take(pool, family=short)
    with pytest.raises(errors.PoolExhausted):
        factories.ask(pool)
    assert Block.objects.filter(state="held").count() == 1


@pytest.mark.parametrize("family", [4, 6])
def test_one_family_alone(family: int) -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64")
    assert factories.take(pool, family=family)["family"] == family


def test_both_named() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64")
    demand = allocation.BlockDemand(factories.holders(2), families=(4, 6))
    blocks = allocation.allocate(pool.pk, demand, author=factories.BY).blocks
    assert [block["family"] for block in blocks] == [4, 4, 6, 6]


def test_a_node_that_has_one_family_gets_the_other() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64", category="node")
    who = factories.holder(kind="node")
    held = factories.take(pool, who, family=6)
    answer = factories.ask(pool, who)
    assert answer.status == 201
    assert [b["cidr"] for b in answer.blocks] == ["10.0.0.1/32", held["cidr"]]
