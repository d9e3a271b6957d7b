"""A reserved range stops new allocations and frees nothing; removing it gives its blocks back."""

import pytest

from pools.core import errors
from pools.models import ReservedRange
from pools.register import pools, usage
from pools.register.allocator import requests
from tests import factories


def _unreserve(range_id: int) -> None:
    pools.unreserve(range_id, author=factories.BY)


SHAPES = [
    pytest.param("10.0.0.2-10.0.0.4", [1, 5, 6], id="first-last"),
    pytest.param("10.0.0.0/30", [4, 5, 6], id="CIDR"),
    pytest.param("10.0.0.6-10.0.0.7", [1, 2, 3, 4, 5], id="with the broadcast address"),
    pytest.param("10.0.0.3-10.0.0.3", [1, 2, 4, 5, 6], id="one address"),
    pytest.param("10.0.0.0/29", [], id="the whole CIDR"),
]


@pytest.mark.sample(12)
@pytest.mark.parametrize("window", [False, True], ids=["untouched", "window there"])
@pytest.mark.parametrize(("span", "remaining"), SHAPES)
def test_no_new_blocks_in_it_and_all_back_afterwards(
    span: str, remaining: list[int], window: bool
) -> None:
    pool = factories.pool("10.0.0.0/29")
    if window:
        factories.give_back(factories.take(pool))
    reserved = factories.reserve(pool, span)
    assert set(factories.drain(pool)) == {f"10.0.0.{n}/32" for n in remaining}
    _unreserve(reserved)
    assert set(factories.drain(pool)) == {
        f"10.0.0.{n}/32" for n in set(range(1, 7)) - set(remaining)
    }


def test_a_block_that_it_touches_in_part_is_withheld_whole() -> None:
    pool = factories.pool("10.20.0.0/22", mask=24)
    reserved = factories.reserve(pool, "10.20.1.200-10.20.2.3")
    assert factories.drain(pool) == ["10.20.0.0/24", "10.20.3.0/24"]
    _unreserve(reserved)
    assert factories.drain(pool) == ["10.20.1.0/24", "10.20.2.0/24"]


def test_what_is_in_use_stays_and_is_withheld_after_its_release(clock) -> None:
    pool = factories.pool("10.0.0.0/30", cooldown=60)
    first, second = factories.take(pool), factories.take(pool)
    reserved = factories.reserve(pool, "10.0.0.1-10.0.0.1")
    assert factories.row(first).state == "held"
    assert factories.row(first).withheld
    factories.give_back(first)
    factories.give_back(second)
    clock.advance(61)
    assert factories.drain(pool) == ["10.0.0.2/32"]
    _unreserve(reserved)
    assert factories.drain(pool) == ["10.0.0.1/32"]


@pytest.mark.parametrize("tidied", [False, True], ids=["untidied", "tidied"])
def test_a_block_that_cooled_down_in_it_comes_back(tidied: bool, clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    factories.give_back(factories.take(pool))
    reserved = factories.reserve(pool, "10.0.0.0-10.0.0.0")
    clock.advance(61)
    assert factories.drain(pool) == []
    if tidied:
        assert requests.end_cooldowns() == 1
    _unreserve(reserved)
    assert factories.drain(pool) == ["10.0.0.0/32"]


def test_removed_while_cooling_the_cooldown_goes_on(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    factories.give_back(factories.take(pool))
    reserved = factories.reserve(pool, "10.0.0.0-10.0.0.0")
    _unreserve(reserved)
    assert factories.drain(pool) == []
    clock.advance(61)
    assert factories.drain(pool) == ["10.0.0.0/32"]


def test_released_without_a_cooldown_it_is_withheld() -> None:
    pool = factories.pool("10.0.0.0/31", cooldown=0)
    block = factories.take(pool)
    factories.reserve(pool, "10.0.0.0-10.0.0.0")
    factories.give_back(block)
    assert factories.drain(pool) == ["10.0.0.1/32"]
    assert usage.pool_usage(pool)[4].reserved == 1


def test_the_former_holder_does_not_get_it_back_either() -> None:
    pool = factories.pool("10.0.0.0/31", cooldown=60)
    who = factories.holder()
    block = factories.take(pool, who)
    factories.give_back(block)
    factories.reserve(pool, "10.0.0.0-10.0.0.0")
    assert factories.take(pool, who)["cidr"] == "10.0.0.1/32"


@pytest.mark.parametrize("state", ["fresh", "window", "cooling"])
def test_no_exact_block_inside(state: str) -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=60)
    who = factories.holder()
    if state == "window":
        factories.take(pool)
    if state == "cooling":
        factories.give_back(factories.take(pool, who, cidr="10.0.0.5/32"))
    factories.reserve(pool, "10.0.0.4-10.0.0.5")
    with pytest.raises(errors.ReservedAddress, match="lies in a reserved range"):
        factories.take(pool, who, cidr="10.0.0.5/32")
    assert factories.take(pool, cidr="10.0.0.6/32")["address"] == "10.0.0.6"


def test_a_holder_keeps_asking_for_what_it_has() -> None:
    pool = factories.pool("fd00::/120", category="node")
    node = factories.holder(kind="node")
    block = factories.take(pool, node)
    factories.reserve(pool, "fd00::-fd00::ff")
    assert factories.ask(pool, node).status == 200
    assert factories.take(pool, node)["id"] == block["id"]


def test_a_range_written_by_hand_is_kept_too() -> None:
    pool = factories.pool("10.0.0.0/29")
    ReservedRange.objects.create(
        pool=pool, pool_cidr=factories.cidr(pool), first="10.0.0.2", last="10.0.0.4"
    )
    assert set(factories.drain(pool)) == {f"10.0.0.{n}/32" for n in (1, 5, 6)}
