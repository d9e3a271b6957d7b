"""Rule `nothing-enumerates-a-network`: what is done to all leaks reads each block a few times,
also where the planner last looked at empty tables."""

from __future__ import annotations

import pytest

from pools.models import Block, Leak
from pools.register.leaks import detection, reclaim, reports
from tests import factories, stale
from tests.leaks.feeds import Feed
from tests.pools.conftest import Clock

HELD = 4000
TIMES = 30  # that a row may be read, of the register's tables and of a report's


@pytest.fixture
def feed(clock: Clock) -> Feed:
    """Very many holders, of whom nothing was known when the tables were looked at."""
    feed = Feed(clock)
    pool = factories.pool("10.16.0.0/16", within=feed.cluster)
    stale.sql("ANALYZE pools_block, pools_leak, pools_reference, pools_observedobject")
    factories.ask(pool, *(factories.holder(f"i-{n}", kind="instance") for n in range(HELD)))
    return feed


def _read() -> int:
    return sum(stale.read().values())


def test_the_reports(feed: Feed) -> None:
    before = _read()
    feed.twice(*(f"i-{n}" for n in range(0, HELD, 2)))
    assert detection.confirmed_leaks().count() == HELD // 2
    assert _read() - before < TIMES * HELD


@pytest.mark.exhaustive
def test_the_list_and_taking_them_back(feed: Feed) -> None:
    feed.twice("i-0")
    before = _read()
    listed = list(reports.iterate_leaks(detection.confirmed_leaks()))
    assert len(listed) == HELD - 1
    assert _read() - before < TIMES * HELD
    batch = listed[: reclaim.BATCH]
    expected = [reclaim.ReclaimTarget(item.block_id, "instance", item.holder_id) for item in batch]
    before = _read()
    assert not any(
        reclaim_result.error
        for reclaim_result in reclaim.reclaim_all(expected, author=factories.WITH_REASON)
    )
    assert _read() - before < TIMES * HELD
    assert Block.objects.filter(state="cooling").count() == len(batch)


@pytest.mark.exhaustive
def test_who_is_seen_again(feed: Feed) -> None:
    feed.twice("i-0")
    before = _read()
    feed.report(*(f"i-{n}" for n in range(HELD)), complete=False)
    assert not Leak.objects.exists()
    assert _read() - before < TIMES * HELD
