"""Events are append-only, in order, and say what was before and after."""

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from pools.models import (
    BlockEvent,
    ClusterEvent,
    Event,
    FailureEvent,
    PoolCIDREvent,
    PoolEvent,
    ReservedRangeEvent,
)
from pools.register import pools, retention
from tests import factories

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
