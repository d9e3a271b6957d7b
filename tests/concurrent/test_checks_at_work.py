"""Checks of a register that is allocated from, released into and reserved in meanwhile: no false alarm."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import connection

from pools.core import addresses, errors
from pools.models import Block
from pools.platform import events
from pools.platform.checks import checks, reports, runs
from pools.register import pools
from pools.register.allocator import allocation, requests
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)
BY = events.Author("tester", "command")
ROUNDS = 12


def _look() -> list[str]:
    run = runs.execute(runs.request_run(author=BY).pk)
    assert run is not None
    assert run.complete
    return [one["text"] for entry in run.report for one in entry["examples"]]


def test_no_false_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_CHUNK", 20)  # many round trips in each step
    monkeypatch.setattr(checks, "SLICE", 100)
    pool = factories.pool("10.0.0.0/20", cooldown=0)
    single = factories.pool("fd00::/112", category="node", within=pool.cluster)
    ended = threading.Event()

    def work(number: int) -> int:
        done = 0
        try:
            while not ended.is_set():
                with suppress(errors.Conflict):
                    taken = factories.ask(pool, *factories.holders(1 + done % 9)).blocks
                    factories.take(single, factories.holder(f"n-{number}", kind="node"))
                    for block in taken[::2]:
                        factories.give_back(block)
                if done % 10 == number:
                    span = addresses.parse_range(f"10.0.{8 + number}.{done % 200}/32")
                    made = pools.reserve(factories.cidr(pool).pk, span, author=BY)
                    pools.unreserve(made.pk, author=BY)
                requests.end_cooldowns()
                done += 1
        finally:
            connection.close()
        return done

    with ThreadPoolExecutor(3) as threads:
        workers = [threads.submit(work, number) for number in range(3)]
        try:
            alarms = [text for _ in range(ROUNDS) for text in _look()]
        finally:
            ended.set()
        assert all(one.result() for one in workers)
    assert alarms == []
    assert Block.objects.filter(pool=pool, state="held").count() > 50


def test_a_snapshot_is_of_one_moment() -> None:
    """Between two statements of a step somebody else allocates, and is not seen."""
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    count = "SELECT count(*) FROM pools_block WHERE state = 'held'"

    def other() -> None:
        try:
            factories.take(pool)
        finally:
            connection.close()

    with checks.snapshot():
        before = list(checks.rows(count))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert list(checks.rows(count)) == before
    with checks.snapshot():
        assert list(checks.rows(count)) == [(2,)]


def test_a_repair_waits_for_the_pools_lock_and_takes_nothing_from_anybody() -> None:
    pool = factories.pool("10.0.0.0/24")
    held = factories.take(pool)
    factories.cidr(pool).free_spans.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM pools_block WHERE pool_id = %s AND state = 'available'", [pool.pk]
        )
    asked = runs.request_run(author=BY, repair=True, only=["free_space"])
    with ThreadPoolExecutor(2) as threads:
        repair = threads.submit(_closing, lambda: runs.execute(asked.pk))
        others = threads.submit(_closing, lambda: [_try(pool.pk) for _ in range(5)])
        run = repair.result()
        others.result()
    assert run is not None
    assert run.report[0]["state"] in {reports.REPAIRED, reports.CLEAN}
    assert factories.row(held).state == "held"
    rest = factories.drain(pool)
    assert len(rest) == len(set(rest))
    assert _look() == []
    assert Block.objects.filter(state="held").count() == 254


def _closing(work):  # type: ignore[no-untyped-def]
    try:
        return work()
    finally:
        connection.close()


def _try(pool_id: int) -> None:
    with suppress(errors.PoolExhausted):
        allocation.allocate(pool_id, factories.demand(), author=BY)
