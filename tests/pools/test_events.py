"""Rule `every-change-has-an-event`: with its author, in the same transaction."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from pools.models import Block, Event, Now, Pool, PoolCIDR, ReservedRange
from pools.register import clusters, pools
from pools.register.allocator import allocation, requests
from tests import factories


def _types() -> list[str]:
    return list(Event.objects.order_by("id").values_list("type", flat=True))


def _since(before: list[str]) -> list[str]:
    return _types()[len(before) :]


TAKEN = [
    ("node", "node", "node.enrolled"),
    ("instance", "instance", "instance.allocated"),
    ("ipv4", "env", "env.ipv4_addon_enabled"),
    ("vm", "vm", "block.allocated"),
    ("pod", "node", "block.allocated"),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("category", "kind", "expected"), TAKEN)
@pytest.mark.parametrize("count", [1, 3])
def test_allocated(category: str, kind: str, expected: str, count: int) -> None:
    pool = factories.pool("10.0.0.0/24", category=category)
    before = _types()
    who = factories.holders(count, kind=kind)
    factories.ask(pool, *who, org="acme", env="prod")
    assert _since(before) == [expected] * count
    events = Event.objects.order_by("-id")[:count]
    assert {event.holder_id for event in events} == {holder.id for holder in who}
    for event in events:
        assert (event.actor, event.request_id, event.reason) == ("tester", "r-1", "")
        assert (event.org, event.env) == ("acme", "prod")
        assert (event.pool_id, event.cluster_id) == (pool.pk, pool.cluster_id)


def test_nothing_is_said_when_nothing_changed() -> None:
    pool = factories.pool("fd00::/64", category="node")
    who = factories.holder(kind="node")
    block = factories.take(pool, who)
    before = _types()
    factories.ask(pool, who)
    factories.ask(pool, who, cidr=block["cidr"])
    assert _since(before) == []
    factories.give_back(block)
    factories.give_back(block)
    assert _since(before) == ["released"]


def test_the_window_is_no_event() -> None:
    pool = factories.pool("10.0.0.0/16")
    before = _types()
    factories.take(pool)
    factories.reserve(pool, "10.0.0.0/24")
    assert _since(before) == ["block.allocated", "pool.range_reserved"]


def _released(pool: Pool, clock: Any) -> None:
    factories.give_back(factories.take(pool))


def _forced(pool: Pool, clock: Any) -> None:
    block = factories.take(pool)
    allocation.release(block["id"], None, author=factories.WITH_REASON, force=True)


def _cooled(pool: Pool, clock: Any) -> None:
    _released(pool, clock)
    clock.advance(61)
    requests.end_cooldowns()


def _cooled_in_a_range(pool: Pool, clock: Any) -> None:
    block = factories.take(pool)
    factories.reserve(pool, "10.0.0.0/24")
    factories.give_back(block)
    clock.advance(61)
    requests.end_cooldowns()


def _skipped(pool: Pool, clock: Any) -> None:
    block = factories.take(pool)
    factories.give_back(block)
    allocation.skip_cooldown(block["id"], author=factories.WITH_REASON)


BACK: list[tuple[Callable[..., None], list[str], tuple[str, str]]] = [
    (_released, ["block.allocated", "released"], ("tester", "")),
    (_forced, ["block.allocated", "reclaimed"], ("tester", "the node burnt down")),
    (_cooled, ["block.allocated", "released", "cooldown_ended"], ("worker", "")),
    (
        _cooled_in_a_range,
        ["block.allocated", "pool.range_reserved", "released", "cooldown_ended"],
        ("worker", ""),
    ),
    (
        _skipped,
        ["block.allocated", "released", "cooldown_ended"],
        ("tester", "the node burnt down"),
    ),
]


@pytest.mark.parametrize(("work", "expected", "author"), BACK)
def test_taken_back(work, expected: list[str], author: tuple[str, str], clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    before = _types()
    work(pool, clock)
    assert _since(before) == expected
    last = Event.objects.first()
    assert last is not None
    assert (last.actor, last.reason) == author
    assert last.cidr == "10.0.0.1/32"


def test_pools_cidrs_and_ranges() -> None:
    before = _types()
    pool = factories.pool("10.0.0.0/24")
    added = pools.add_cidr(pool.pk, factories.entry("10.0.1.0/24"), author=factories.BY)
    reserved = factories.reserve(pool, "10.0.0.0/30")
    pools.unreserve(reserved, author=factories.BY)
    pools.remove_cidr(added.pk, author=factories.BY)
    pools.change(pool.pk, pools.PoolChange(cooldown_seconds=5), author=factories.BY)
    clusters.remove(pool.cluster, author=factories.BY)
    assert [name for name in _since(before) if name != "pool.changed"] == [
        "cluster.created", "pool.created", "pool.cidr_added", "pool.cidr_added",
        "pool.range_reserved", "pool.range_removed", "pool.cidr_removed", "pool.cidr_removed",
        "pool.deleted", "cluster.deleted",
    ]  # fmt: skip
    assert _since(before).count("pool.changed") == 1
    assert set(Event.objects.values_list("actor", "request_id")) == {("tester", "r-1")}


def _release_in_bulk() -> None:
    later = Now() + timedelta(hours=1)
    held = Block.objects.filter(state="held")
    held.update(state="cooling", released_at=Now(), available_from=later)


RAW: list[Any] = [
    (_release_in_bulk, "released"),
    (lambda: Block.objects.filter(state="held").update(env="x"), "changed"),
    (lambda: Pool.objects.update(description="x"), "pool.changed"),
    (lambda: PoolCIDR.objects.filter(cidr="10.0.9.0/24").delete(), "pool.cidr_removed"),
    (lambda: ReservedRange.objects.update(reason="x"), "pool.range_changed"),
]


@pytest.mark.parametrize(("change", "expected"), RAW, ids=[event for _, event in RAW])
def test_changes_past_the_services_are_told_too(change, expected: str) -> None:
    pool = factories.pool("10.0.0.0/24", "10.0.9.0/24", reserved=["10.0.0.0/30"])
    factories.take(pool)
    before = _types()
    change()
    assert _since(before) == [expected]


def test_what_is_rolled_back_was_never_said() -> None:
    pool = factories.pool("10.0.0.0/24")
    before = _types()
    with transaction.atomic():
        factories.take(pool)
        transaction.set_rollback(True)
    assert _since(before) == []
