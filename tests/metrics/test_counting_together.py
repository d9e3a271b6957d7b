"""Two scrapers beside eight allocators, each with a connection: nothing lost, nothing twice."""

import threading

import pytest
from django.db import connection, transaction

from pools.models import BlockEvent, Measure
from pools.platform.metrics import registry
from tests import factories
from tests.concurrent import threads

pytestmark = pytest.mark.django_db(transaction=True)

EACH = 60
ALLOCATED = '{"category": "vm", "result": "allocated"}'


def total() -> float:
    return sum(
        Measure.objects.filter(name="ipam_allocations_total", labels=ALLOCATED).values_list(
            "value", flat=True
        )
    )


@pytest.mark.exhaustive
def test_two_scrapers_and_eight_allocators() -> None:
    pool = factories.pool("10.0.0.0/16")
    over = threading.Event()
    semaphore = threading.Semaphore(0)

    def allocate() -> None:
        for number in range(EACH):
            factories.ask(pool, *factories.holders(1 if number % 3 else 3))
        semaphore.release()

    def scrape() -> list[float]:
        observed = []
        while not over.is_set():
            registry.count_events()
            observed.append(total())
        return observed

    def end() -> None:
        for _ in range(8):
            semaphore.acquire()
        over.set()

    results = threads.together([*[allocate] * 8, scrape, scrape, end])
    assert threads.failures(results) == []
    for result in results[8:10]:
        assert result
        assert result == sorted(result), "a total went down"
    assert registry.count_events()
    expected = 8 * (EACH // 3 * 3 + EACH - EACH // 3)
    assert BlockEvent.objects.filter(pgh_label="allocated").count() == expected
    assert total() == expected


def test_a_transaction_that_commits_late_is_counted_then() -> None:
    """It drew its numbers before others that are committed."""
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    registry.count_events()

    def late() -> object:
        with transaction.atomic():
            factories.ask(pool, *factories.holders(3))
            first.set()
            assert counted.wait(20)
        return None

    def scrape() -> list[float]:
        assert first.wait(20)
        factories.take(other)
        observed = []
        for _ in range(3):
            registry.count_events()
            observed.append(total())
        counted.set()
        return observed

    first, counted = threading.Event(), threading.Event()
    results = threads.together([late, scrape])
    assert threads.failures(results) == []
    # The one that came later waits, too: it has a higher number.
    assert results[1] == [0, 0, 0]
    registry.count_events()
    assert total() == 4


def test_a_reader_of_hours_holds_nothing_up() -> None:
    """A backup reads in one transaction, and a long one of another kind draws no numbers."""
    pool = factories.pool("10.0.0.0/24")

    def read() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM pools_blockevent, pools_event_number")
            cursor.fetchall()
            reading.set()
            assert counted.wait(20)

    def scrape() -> float:
        assert reading.wait(20)
        factories.take(pool)
        registry.count_events()
        counted.set()
        return total()

    reading, counted = threading.Event(), threading.Event()
    assert threads.together([read, scrape]) == [None, 1]
