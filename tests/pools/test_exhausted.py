"""A refusal changes only its event and its environment (rule `exhaustion-is-definite`)."""

from typing import Any

import pytest

from pools.core import errors
from pools.models import AllocationRequest, Block, Environment, Event, FailureEvent, IdempotencyKey
from tests import factories

TYPES = [
    ("instance", "instance", "instance.allocation_failed"),
    ("node", "node", "node.enrollment_failed"),
    ("ipv4", "env", "env.ipv4_addon_failed"),
    ("vm", "vm", "block.allocation_failed"),
]
SERVED: list[Any] = [
    pytest.param({"holders": ["i-9"]}, id="one"),
    pytest.param({"holders": ["i-8", "i-9"]}, id="batch"),
    pytest.param({"holders": ["i-9"], "cidr": "10.0.0.0/32"}, id="exact"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("category", "kind", "event"), TYPES)
@pytest.mark.parametrize("count", [1, 2])
def test_it_leaves_one_event(category: str, kind: str, event: str, count: int) -> None:
    pool = factories.pool("10.0.0.0/32", category=category)
    factories.take(pool)
    blocks = list(Block.objects.values())
    who = factories.holders(count, kind=kind)
    with pytest.raises(errors.PoolExhausted) as caught:
        factories.ask(pool, *who, org="acme", env="prod")
    assert caught.value.code == "ipam_exhausted"
    logged = Event.objects.first()
    assert logged is not None
    assert (logged.type, logged.holder_id, logged.org, logged.env) == (
        event,
        who[0].id,
        "acme",
        "prod",
    )
    assert (logged.reason, logged.actor, logged.request_id) == ("ipam_exhausted", "tester", "r-1")
    assert logged.message
    assert list(Block.objects.values()) == blocks
    assert not AllocationRequest.objects.exists()
    assert not IdempotencyKey.objects.exists()


def _status(sql: Any) -> list[tuple[object, ...]]:
    return sql("SELECT org, env, status, reason, since IS NOT NULL FROM env_status_view")


@pytest.mark.parametrize("ask", SERVED)
def test_the_environment_is_degraded_until_the_next_success(
    ask: dict[str, Any], sql, clock
) -> None:
    pool = factories.pool("10.0.0.0/32", category="instance", cooldown=3600)
    held = factories.take(pool)
    with pytest.raises(errors.PoolExhausted):
        factories.ask(pool, factories.holder(kind="instance"), org="acme", env="prod")
    assert _status(sql) == [("acme", "prod", "degraded", "ipam_exhausted", True)]
    factories.give_back(held)
    clock.advance(3601)
    who = [factories.holder(name, kind="instance") for name in ask["holders"]]
    if len(who) > 1:
        second = factories.entry("10.0.1.0/24")
        factories.pool_services.add_cidr(pool.pk, second, author=factories.BY)
    factories.ask(pool, *who, org="acme", env="prod", cidr=ask.get("cidr"))
    assert _status(sql) == [("acme", "prod", "ok", "", False)]


def test_degraded_since_the_first_refusal(clock) -> None:
    pool = factories.pool("10.0.0.0/32")
    factories.take(pool)
    since = []
    for _ in range(2):
        with pytest.raises(errors.PoolExhausted):
            factories.take(pool, env="prod")
        since.append(Environment.objects.get().degraded_since)
        clock.advance(60)
    assert since[0] == since[1]
    assert FailureEvent.objects.count() == 2


def test_an_env_holder_is_an_environment_itself(sql) -> None:
    pool = factories.pool("203.0.113.7/32", category="ipv4")
    factories.take(pool, factories.holder("one", kind="env"), org="acme")
    with pytest.raises(errors.PoolExhausted):
        factories.take(pool, factories.holder("two", kind="env"), org="acme")
    assert [(row[1], row[2]) for row in sorted(_status(sql))] == [
        ("one", "ok"),
        ("two", "degraded"),
    ]


def test_the_success_of_one_environment_is_its_own(sql) -> None:
    pool = factories.pool("10.0.0.0/32")
    block = factories.take(pool)
    for org, env in (("a", "prod"), ("b", "prod"), ("a", "test")):
        with pytest.raises(errors.PoolExhausted):
            factories.take(pool, org=org, env=env)
    factories.give_back(block)
    factories.take(pool, org="a", env="prod")
    degraded = {(row[0], row[1]) for row in _status(sql) if row[2] == "degraded"}
    assert degraded == {("b", "prod"), ("a", "test")}


def test_degraded_has_a_reason(breaks) -> None:
    pool = factories.pool("10.0.0.0/32")
    factories.take(pool, env="prod")
    from pools.models.fields import Now

    with breaks("environment_degraded_has_reason"):
        Environment.objects.update(degraded_since=Now())


@pytest.mark.parametrize("count", [1, 2])
def test_all_reserved_is_exhausted_too(count: int) -> None:
    pool = factories.pool("fd00::/64", reserved=["fd00::/64"])
    with pytest.raises(errors.PoolExhausted):
        factories.ask(pool, *factories.holders(count))
