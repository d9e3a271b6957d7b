"""Pools that have none left: the refusal, and requests that wait."""

import datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from pools.core import errors
from pools.models import (
    AllocationRequest,
    Block,
    Environment,
    Event,
    FailureEvent,
    IdempotencyKey,
    Pool,
)
from pools.register import pools
from pools.register.allocator import allocation, requests
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


# --- `"wait": true`: a pending request, tried again each cycle and as soon as space is released
def _wait(pool: Pool, *who: allocation.Holder, **settings: Any) -> AllocationRequest:
    block_demand = factories.demand(*who, **settings)
    request = requests.allocate(pool.pk, block_demand, author=factories.BY, wait=True)
    assert isinstance(request, AllocationRequest)
    return request


def _state(request: AllocationRequest) -> str:
    request.refresh_from_db()
    return request.state


def test_a_release_serves_it() -> None:
    pool = factories.pool("10.0.0.0/32")
    block, who = factories.take(pool), factories.holder("late")
    request = _wait(pool, who, org="o", env="e")
    assert (_state(request), request.holder_id) == ("pending", "late")
    assert request.last_error
    assert requests.retry(pool.pk) == 0
    assert factories.give_back(block).has_pending_requests
    assert requests.retry(pool.pk) == 1
    assert _state(request) == "fulfilled"
    (got,) = Block.objects.filter(pk__in=request.block_ids)
    assert (got.holder_id, got.org, got.env) == ("late", "o", "e")
    assert requests.retry(pool.pk) == 0


def test_so_does_the_end_of_a_cooldown_in_the_workers_cycle(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=100)
    factories.give_back(factories.take(pool))
    request = _wait(pool)
    clock.advance(60)
    assert requests.retry() == 0
    clock.advance(60)
    assert requests.retry() == 1
    assert _state(request) == "fulfilled"


@pytest.mark.parametrize("grow", ["cidr", "range"])
def test_so_does_more_space(grow: str, clock) -> None:
    pool = factories.pool("10.0.0.0/31", reserved=["10.0.0.1-10.0.0.1"])
    factories.drain(pool)
    request = _wait(pool)
    if grow == "cidr":
        pools.add_cidr(pool.pk, factories.entry("10.0.1.0/24"), author=factories.BY)
    else:
        pools.unreserve(pool.reserved_ranges.get().pk, author=factories.BY)
    clock.advance(60)
    assert requests.retry() == 1
    assert _state(request) == "fulfilled"


def test_who_came_first_is_served_first() -> None:
    pool = factories.pool("10.0.0.0/32")
    block = factories.take(pool)
    first, second = _wait(pool), _wait(pool)
    factories.give_back(block)
    assert requests.retry(pool.pk) == 1
    assert (_state(first), _state(second)) == ("fulfilled", "pending")


def test_all_or_nothing_here_too() -> None:
    pool = factories.pool("10.0.0.0/31", "fd00::/127")
    blocks = factories.ask(pool, factories.holder(), count=2).blocks
    request = _wait(pool, factories.holder())
    factories.give_back(blocks[0])
    assert requests.retry(pool.pk) == 0
    factories.give_back(blocks[2])
    assert requests.retry(pool.pk) == 1
    request.refresh_from_db()
    assert {block.family for block in Block.objects.filter(pk__in=request.block_ids)} == {4, 6}


def test_what_can_never_succeed_ends_and_stops_nobody_else() -> None:
    pool = factories.pool("fd00::/128", category="instance", cooldown=3600)
    other = factories.pool("fd01::/64", category="instance", within=pool.cluster)
    block = factories.take(pool)
    busy, idle = factories.holders(2, kind="instance")
    never, served = _wait(pool, busy), _wait(pool, idle)
    factories.take(other, busy)
    allocation.release(block["id"], None, author=factories.WITH_REASON, force=True)
    allocation.skip_cooldown(block["id"], author=factories.WITH_REASON)
    assert requests.retry(pool.pk) == 1
    assert (_state(never), _state(served)) == ("cancelled", "fulfilled")
    assert "of another pool" in never.last_error


def test_many_waiting_for_one_pool_do_not_starve_the_others(clock) -> None:
    full, freed = factories.pool("10.0.0.0/32"), factories.pool("10.0.1.0/32")
    factories.take(full)
    block = factories.take(freed)
    _wait(full)
    allocation_request = AllocationRequest.objects.get()
    copies = [AllocationRequest(pool=full, demand=allocation_request.demand, holder_kind="vm", holder_id=f"{n}",
        created_at=allocation_request.created_at, next_try_at=allocation_request.next_try_at) for n in range(250)]  # fmt: skip
    AllocationRequest.objects.bulk_create(copies)
    request = _wait(freed)
    factories.give_back(block)  # and the nudge is lost
    for _ in range(3):
        clock.advance(31)
        requests.retry()
    assert _state(request) == "fulfilled"


def test_a_next_attempt_that_is_past_is_due(admin_client: Client) -> None:
    pool = factories.pool("10.0.0.0/32")
    factories.take(pool)
    request = _wait(pool)
    for page in ("", f"{request.pk}/change/"):
        assert ">in " in admin_client.get(f"/admin/pools/allocationrequest/{page}").text
    AllocationRequest.objects.update(next_try_at=timezone.now() - datetime.timedelta(minutes=2))
    for page in ("", f"{request.pk}/change/"):
        text = admin_client.get(f"/admin/pools/allocationrequest/{page}").text
        assert ">due</time>" in text
        assert "2 minutes ago" not in text


def test_events_say_who_was_served() -> None:
    pool = factories.pool("10.0.0.0/32")
    block = factories.take(pool)
    _wait(pool, factories.holder("late"))
    factories.give_back(block)
    requests.retry(pool.pk)
    rows = list(Event.objects.filter(holder_id="late").values_list("type", "actor"))
    assert rows == [("block.allocated", "worker"), ("block.allocation_failed", "tester")]


def test_a_request_survives_being_stored() -> None:
    block_demand = factories.demand(
        factories.holder("a", uid="u"), cidr="10.0.0.0/32", family=4, count=2, org="o", env="e"
    )
    assert requests.demand_from_json(requests.demand_to_json(block_demand)) == block_demand
