"""Checks of a register that is allocated from, released into and reserved in meanwhile: no false alarm."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import connection

from pools.core import addresses, errors
from pools.models import Block
from pools.platform import checks, events
from pools.register import pools
from pools.register.allocator import requests
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)
BY = events.Author("tester", "command")
ROUNDS = 12


def _look() -> list[tuple[str, str]]:
    return list(checks.run())


def test_no_false_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_CHUNK", 20)  # many round trips in each check
    pool = factories.pool("10.0.0.0/20", cooldown=0)
    single = factories.pool("fd00::/112", category="node", within=pool.cluster)
    ended = threading.Event()

    def work(number: int) -> int:
        done = 0
        try:
            while not ended.is_set():
                with suppress(errors.Conflict):
                    blocks = factories.ask(pool, *factories.holders(1 + done % 9)).blocks
                    factories.take(single, factories.holder(f"n-{number}", kind="node"))
                    for block in blocks[::2]:
                        factories.give_back(block)
                if done % 10 == number:
                    span = addresses.parse_range(f"10.0.{8 + number}.{done % 200}/32")
                    created = pools.reserve(factories.cidr(pool).pk, span, author=BY)
                    pools.unreserve(created.pk, author=BY)
                requests.end_cooldowns()
                done += 1
        finally:
            connection.close()
        return done

    with ThreadPoolExecutor(3) as threads:
        workers = [threads.submit(work, number) for number in range(3)]
        try:
            alarms = [alarm for _ in range(ROUNDS) for alarm in _look()]
        finally:
            ended.set()
        assert all(worker.result() for worker in workers)
    assert alarms == []
    assert Block.objects.filter(pool=pool, state="held").count() > 50


def test_a_snapshot_is_of_one_moment() -> None:
    """Between two statements of a check somebody else allocates, and is not seen."""
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    count = "SELECT count(*) FROM pools_block WHERE state = 'held'"

    def other() -> None:
        try:
            factories.take(pool)
        finally:
            connection.close()

    with checks._snapshot(None):
        before = list(checks.rows(count))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert list(checks.rows(count)) == before
    with checks._snapshot(None):
        assert list(checks.rows(count)) == [(2,)]
