"""Events: each change has one, and no event is changed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pgtrigger
import pytest
from django.db import DatabaseError, connection, transaction

from pools.models import (
    Block,
    BlockEvent,
    ClusterEvent,
    Event,
    FailureEvent,
    Now,
    Pool,
    PoolCIDR,
    PoolCIDREvent,
    PoolEvent,
    ReservedRange,
    ReservedRangeEvent,
)
from pools.register import clusters, pools, retention
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


# --- Events are append-only, in order, and say what was before and after --------------------------
TABLES = [BlockEvent, ClusterEvent, PoolEvent, PoolCIDREvent, ReservedRangeEvent, FailureEvent]


@pytest.fixture
def logged_events() -> None:
    """At least one row in each table."""
    from pools.core import errors

    pool = factories.pool("10.0.0.0/31", reserved=["10.0.0.1-10.0.0.1"])
    factories.take(pool)
    with pytest.raises(errors.PoolExhausted):
        factories.take(pool)


@pytest.mark.sample(3)
@pytest.mark.parametrize("table", TABLES)
def test_no_event_is_changed_or_deleted(table: Any, logged_events: None, sql) -> None:
    name = table._meta.db_table
    assert table.objects.exists()
    for statement in (f"UPDATE {name} SET pgh_label = 'x'", f"DELETE FROM {name}"):  # noqa: S608
        with pytest.raises(DatabaseError, match="append_only"), transaction.atomic():
            sql(statement)


def test_one_sequence_numbers_all_of_them(logged_events: None) -> None:
    ids = [event_id for table in TABLES for event_id in table.objects.values_list("pk", flat=True)]
    assert len(ids) == len(set(ids))
    assert sorted(ids, reverse=True) == list(Event.objects.values_list("id", flat=True))


def test_the_log_is_read_only(logged_events: None) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        Event.objects.update(actor="x")


def test_a_block_before_and_after(clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool, org="o")
    clock.advance(10)
    factories.give_back(block)
    before, after = BlockEvent.objects.order_by("pgh_id")
    assert (before.state, before.org, before.released_at) == ("held", "o", None)
    assert after.state == "cooling"
    assert after.pgh_created_at == after.released_at
    assert (after.released_at - before.allocated_at).total_seconds() == 10
    assert (after.available_from - after.released_at).total_seconds() == 60
    assert before.holder_id == after.holder_id == block["holder"]["id"]


def test_a_pool_before_and_after() -> None:
    pool = factories.pool("10.0.0.0/24")
    pools.change(pool.pk, pools.PoolChange(cooldown_seconds=5), author=factories.BY)
    pool_events = PoolEvent.objects.filter(pgh_obj_id=pool.pk).order_by("pgh_id")
    assert list(pool_events.values_list("pgh_label", "cooldown_seconds")) == [
        ("created", 0),
        ("changed", 5),
    ]


def test_they_outlive_what_they_tell_of(clock) -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.give_back(factories.take(pool))
    pools.delete(pool.pk, author=factories.BY)
    types = list(Event.objects.order_by("id").values_list("type", flat=True))
    assert types[-1] == "pool.deleted"
    assert "block.allocated" in types


def test_each_has_its_time_by_the_registers_clock(clock) -> None:
    clock.advance(-3600)
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    times = set(Event.objects.values_list("at", flat=True))
    assert times == {BlockEvent.objects.get().allocated_at}


def test_they_are_kept_for_as_long_as_the_setting_says(logged_events: None, clock) -> None:
    clock.advance(40 * 86400)
    factories.take(factories.pool("10.0.0.0/24"))
    before = Event.objects.count()
    assert retention.purge_events(0) == 0
    assert retention.purge_events(50) == 0
    gone = retention.purge_events(30)
    assert gone > 0
    assert Event.objects.count() == before - gone
    assert set(Event.objects.values_list("type", flat=True)) == {
        "cluster.created", "pool.created", "pool.cidr_added", "block.allocated",
    }  # fmt: skip


# --- What keeps the triggers of the history cheap, and that they record each column ---------------
def test_asking_whether_to_do_nothing_opens_no_subtransaction() -> None:
    """The last migration that adds triggers must run rules.sql again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.lanname, prosrc FROM pg_proc p JOIN pg_language l ON l.oid = prolang"
            " WHERE proname = '_pgtrigger_should_ignore'"
        )
        ((language, source),) = cursor.fetchall()
    assert language == "sql"
    assert "EXCEPTION" not in source


def test_django_pgtrigger_can_still_switch_them_off() -> None:
    pool = factories.pool("10.0.0.0/24")
    with pgtrigger.ignore("pools.Block:updated_update"):
        factories.take(pool)
    assert not BlockEvent.objects.exists()
    factories.take(pool)
    assert BlockEvent.objects.count() == 1


@pytest.mark.parametrize("column", ["holder_id", "holder_kind", "holder_uid", "org", "env"])
def test_whoever_a_held_block_belongs_to_is_recorded(column: str) -> None:
    block = factories.take(factories.pool("10.0.0.0/24", category="vm"))
    before = BlockEvent.objects.count()
    Block.objects.filter(pk=block["id"]).update(**{column: "other"})
    last = BlockEvent.objects.order_by("-pgh_id").first()
    assert BlockEvent.objects.count() == before + 1
    assert (getattr(last, column), last.pgh_label) == ("other", "changed")


def test_a_change_of_nothing_is_no_event() -> None:
    block = factories.take(factories.pool("10.0.0.0/24"))
    before = BlockEvent.objects.count()
    Block.objects.filter(pk=block["id"]).update(withheld=True)
    Block.objects.filter(pk=block["id"]).update(org=block["org"])
    assert BlockEvent.objects.count() == before


def test_a_batch_records_every_column_as_the_row_is() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.ask(pool, *factories.holders(3))
    names = [field.attname for field in BlockEvent._meta.fields if not field.name.startswith("pgh")]
    events = list(BlockEvent.objects.order_by("pgh_id").values_list("pgh_obj_id", *names))
    assert events == list(
        Block.objects.filter(state="held").order_by("id").values_list("id", *names)
    )
