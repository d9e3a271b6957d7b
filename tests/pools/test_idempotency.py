"""Idempotency-Key: rule `one-answer-per-key`, in the transaction of the work."""

from typing import Any

import pytest

from pools.core import errors
from pools.models import Block, IdempotencyKey
from pools.platform import idempotency
from tests import factories


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
