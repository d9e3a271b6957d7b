"""How blocks come back: releases, cooldowns, and requests that are repeated."""

from typing import Any

import pytest

from pools.core import errors
from pools.models import Block, IdempotencyKey, Now, Pool
from pools.platform import idempotency
from pools.register import pools
from pools.register.allocator import allocation, requests
from tests import factories

# Release by id and holder: compare-and-set, so a late or doubled one frees nobody else's
# block


OTHERS = [
    pytest.param({"name": "other"}, id="another id"),
    pytest.param({"name": "h", "kind": "pod"}, id="another kind"),
    pytest.param({"name": "h", "uid": "u2"}, id="another uid"),
]


@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize("state", ["held", "cooling"])
def test_only_by_its_holder(who: dict[str, str], state: str) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool, factories.holder("h", uid="u1"))
    if state == "cooling":
        factories.give_back(block)
    before = factories.row(block)
    with pytest.raises(errors.HolderChanged):
        allocation.release(block["id"], factories.holder(**who), author=factories.BY)
    assert factories.row(block).__dict__.items() >= {
        (name, value) for name, value in before.__dict__.items() if name != "_state"
    }


def test_a_late_one_does_not_free_the_next_holders_block(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    first = factories.take(pool)
    factories.give_back(first)
    clock.advance(61)
    second = factories.take(pool)
    assert second["id"] == first["id"]
    with pytest.raises(errors.HolderChanged):
        factories.give_back(first)
    assert factories.row(second).state == "held"


@pytest.mark.parametrize("cooldown", [0, 60])
def test_a_late_one_for_a_block_that_was_anothers_since_is_told_so(cooldown: int, clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=cooldown)
    first = factories.take(pool)
    factories.give_back(first)
    clock.advance(61)
    second = factories.take(pool, factories.holder("next"))
    factories.give_back(second)
    clock.advance(61)
    requests.end_cooldowns()  # the block is available again, and `next` was its last holder
    before = factories.row(second)
    assert before.state == "available"
    with pytest.raises(errors.HolderChanged):
        factories.give_back(first)
    assert factories.give_back(second).repeated
    assert factories.row(second).available_from == before.available_from


def test_of_the_same_name_with_another_uid_neither(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    first = factories.take(pool, factories.holder("h", uid="u1"))
    factories.give_back(first)
    clock.advance(61)
    factories.take(pool, factories.holder("h", uid="u2"))
    with pytest.raises(errors.HolderChanged):
        factories.give_back(first)


@pytest.mark.parametrize("uid", ["", "u1"])
def test_a_uid_that_was_never_said_is_any(uid: str) -> None:
    pool = factories.pool("10.0.0.0/24")
    block = factories.take(pool, factories.holder("h"))
    assert not allocation.release(
        block["id"], factories.holder("h", uid=uid), author=factories.BY
    ).repeated


def test_what_is_not_there_cannot_be_released() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    window = allocation.Block.objects.filter(state="available").values_list("pk", flat=True)
    for block_id in (0, 1 << 62, window[0]):
        for force in (False, True):
            with pytest.raises(errors.NotFound):
                allocation.release(
                    block_id, factories.holder("h"), author=factories.WITH_REASON, force=force
                )


# --- Cooldown: kept by the database, judged by its clock, as long as the pool said at the release
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


# --- Idempotency-Key: rule `one-answer-per-key`, in the transaction of the work -------------------
def _key(user: Any, text: str = "k-1", body: bytes = b"{}") -> idempotency.Key:
    key = idempotency.parse_key(text, user_id=user.pk, method="POST", path="/x/", body=body)
    assert key is not None
    return key


WAYS = [
    pytest.param({}, id="one"),
    pytest.param({"count": 3}, id="several"),
    pytest.param({"cidr": "10.0.0.77/32"}, id="exact"),
    pytest.param({"family": 4}, id="of a family"),
]
ways = pytest.mark.parametrize("ask", WAYS)


@ways
def test_the_same_key_and_body_give_the_same_answer(ask: dict[str, Any]) -> None:
    pool = factories.pool("10.0.0.0/24")
    key, who = _key(factories.user()), factories.holder()
    first = factories.ask(pool, who, key=key, **ask)
    second = factories.ask(pool, who, key=key, **ask)
    assert (first.status, second) == (201, first)
    assert Block.objects.filter(state="held").count() == len(first.blocks)


@ways
def test_also_when_the_block_was_released_since(ask: dict[str, Any]) -> None:
    pool = factories.pool("10.0.0.0/24")
    key, who = _key(factories.user()), factories.holder()
    first = factories.ask(pool, who, key=key, **ask)
    for block in first.blocks:
        factories.give_back(block)
    assert factories.ask(pool, who, key=key, **ask) == first
    assert not Block.objects.filter(state="held").exists()


@ways
def test_another_body_is_refused_and_changes_nothing(ask: dict[str, Any]) -> None:
    pool, user = factories.pool("10.0.0.0/24"), factories.user()
    factories.ask(pool, key=_key(user), **ask)
    before = Block.objects.filter(state="held").count()
    with pytest.raises(errors.IdempotencyMismatch):
        factories.ask(pool, key=_key(user, body=b'{"count": 2}'), **ask)
    assert Block.objects.filter(state="held").count() == before


@ways
def test_it_is_forgotten_after_24_hours(ask: dict[str, Any], clock) -> None:
    pool, user = factories.pool("10.0.0.0/24"), factories.user()
    first = factories.ask(pool, key=_key(user), **ask)
    for block in first.blocks:
        factories.give_back(block)
    clock.advance(24 * 3600 - 60)
    with pytest.raises(errors.IdempotencyMismatch):
        factories.ask(pool, key=_key(user, body=b"other"), **ask)
    clock.advance(120)
    second = factories.ask(pool, key=_key(user, body=b"other"), **ask)
    assert second.status == 201
    assert factories.ask(pool, key=_key(user, body=b"other"), **ask) == second


def test_tidying_removes_old_ones_only(clock) -> None:
    pool, user = factories.pool("10.0.0.0/24"), factories.user()
    factories.ask(pool, key=_key(user, "old"))
    clock.advance(24 * 3600 + 60)
    factories.ask(pool, key=_key(user, "new"))
    assert idempotency.tidy() == 1
    assert [row.key for row in IdempotencyKey.objects.all()] == ["new"]


def test_a_holder_that_has_its_block_is_answered_200_again_and_again() -> None:
    pool = factories.pool("fd00::/64", category="node")
    who, key = factories.holder(kind="node"), _key(factories.user())
    factories.ask(pool, who)
    assert [factories.ask(pool, who, key=key).status for _ in range(2)] == [200, 200]
