"""Cooldown: kept by the database, judged by its clock, as long as the pool said at the release."""

from typing import Any

import pytest

from pools.core import errors
from pools.models import Block, Now, Pool
from pools.register import pools
from pools.register.allocator import allocation, requests
from tests import factories

DAY = 86400
MARGIN = 30  # seconds that a slow test may take
LENGTHS = [
    pytest.param("node", None, 30 * DAY, id="nodes 30 days"),
    pytest.param("instance", None, DAY, id="instances 24 hours"),
    pytest.param("ipv4", None, DAY, id="IPv4 add-on 24 hours"),
    pytest.param("instance", 3600, 3600, id="instances at least 1 hour"),
    pytest.param("node", 60, 60, id="shorter"),
    pytest.param("ipv4", 90 * DAY, 90 * DAY, id="longer"),
    pytest.param("vm", 60, 60, id="VMs none unless given"),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("category", "cooldown", "seconds"), LENGTHS)
def test_nobody_else_gets_it_before_its_end(
    category: str, cooldown: int | None, seconds: int, clock
) -> None:
    pool = factories.pool("10.0.0.0/32", category=category, cooldown=cooldown)
    factories.give_back(factories.take(pool))
    block = Block.objects.get()
    assert (block.available_from - block.released_at).total_seconds() == seconds
    clock.advance(seconds - MARGIN)
    assert factories.drain(pool) == []
    clock.advance(MARGIN)
    assert factories.drain(pool) == ["10.0.0.0/32"]


@pytest.mark.parametrize("category", ["pod", "vm"])
def test_none_by_default_elsewhere(category: str) -> None:
    pool = factories.pool("10.0.0.0/32", category=category)
    factories.give_back(factories.take(pool))
    assert factories.drain(pool) == ["10.0.0.0/32"]


@pytest.mark.parametrize(
    ("category", "seconds"), [("instance", 3599), ("vm", -1), ("vm", 3651 * DAY)]
)
def test_limits_are_held_by_the_database(category: str, seconds: int, breaks) -> None:
    pool = factories.pool("10.0.0.0/24", category=category)
    with breaks("pool_cooldown"):
        Pool.objects.filter(pk=pool.pk).update(cooldown_seconds=seconds)
    with pytest.raises(errors.InvalidInput):
        pools.change(pool.pk, pools.PoolChange(cooldown_seconds=seconds), author=factories.BY)


@pytest.mark.parametrize("later", [0, 5, 600], ids=["none", "shorter", "longer"])
def test_a_running_one_is_not_changed_by_the_pool(later: int, clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    factories.give_back(factories.take(pool))
    pools.change(pool.pk, pools.PoolChange(cooldown_seconds=later), author=factories.BY)
    clock.advance(60 - MARGIN)
    assert factories.drain(pool) == []
    clock.advance(MARGIN)
    assert factories.drain(pool) == ["10.0.0.0/32"]


CUTS: list[Any] = [
    pytest.param({"available_from": Now()}, id="shortened"),
    pytest.param({"state": "available", "available_from": Now()}, id="skipped"),
    pytest.param({"state": "available"}, id="only called available"),
    pytest.param({"state": "held", "available_from": None, "holder_id": "y"}, id="given away"),
    pytest.param({"holder_id": "y"}, id="said to be another's"),
]


@pytest.mark.parametrize("columns", CUTS)
def test_the_database_keeps_a_running_one(columns: dict[str, Any], breaks) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool)
    factories.give_back(block)
    with breaks("cooldown_is_kept"):
        Block.objects.filter(pk=block["id"]).update(**columns)


@pytest.mark.parametrize("state", ["available", "cooling"])
def test_the_database_keeps_its_beginning(state: str, breaks) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool)
    with breaks("cooldown_is_kept"):
        Block.objects.filter(pk=block["id"]).update(
            state=state, released_at=Now(), available_from=Now()
        )


def test_skipped_only_with_a_reason(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    block = factories.take(pool)
    factories.give_back(block)
    with pytest.raises(errors.InvalidInput, match="needs a reason"):
        allocation.skip_cooldown(block["id"], author=factories.BY)
    allocation.skip_cooldown(block["id"], author=factories.WITH_REASON)
    assert factories.drain(pool) == ["10.0.0.0/32"]
    with pytest.raises(errors.Conflict, match="not cooling down"):
        allocation.skip_cooldown(block["id"], author=factories.WITH_REASON)
    with pytest.raises(errors.NotFound):
        allocation.skip_cooldown(0, author=factories.WITH_REASON)


def test_skipping_one_leaves_the_others_alone(breaks) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    first, second = factories.take(pool), factories.take(pool)
    factories.give_back(first)
    factories.give_back(second)
    allocation.skip_cooldown(first["id"], author=factories.WITH_REASON)
    assert factories.row(second).state == "cooling"


def test_the_workers_tidying_changes_nothing_for_anybody(clock) -> None:
    pool = factories.pool("10.0.0.0/31", cooldown=60)
    block = factories.take(pool)
    factories.give_back(block)
    assert requests.end_cooldowns() == 0
    clock.advance(61)
    assert requests.end_cooldowns() == 1
    assert requests.end_cooldowns() == 0
    assert factories.row(block).state == "available"
    assert set(factories.drain(pool)) == {"10.0.0.0/32", "10.0.0.1/32"}


def test_a_clock_that_is_set_back_makes_it_longer_only(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    factories.give_back(factories.take(pool))
    clock.advance(-3600)
    assert factories.drain(pool) == []
