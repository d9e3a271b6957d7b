"""Counters and measures of several processes end up in one total."""

import threading

import pytest
from django.db import connection, transaction

from pools.models import BlockEvent, Measure
from pools.platform.metrics import registry
from tests import eventually, factories
from tests.concurrent import threads
from tests.metrics import counters

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


# --- What processes count ends up in one total, however they begin and end -------------------
NAME = "ipam_lease_lost_total"


def total_lost() -> float:
    return sum(Measure.objects.filter(name=NAME).values_list("value", flat=True))


def until(expected: float) -> None:
    eventually.until(lambda: total_lost() >= expected, 120)


@pytest.mark.exhaustive
def test_two_processes_are_summed_and_write_what_is_left_when_they_end() -> None:
    body = f"for _ in range(100): measures.count({NAME!r})"
    together = [counters.start(body, every=3600) for _ in range(2)]
    for process in together:
        counters.finished(process)
    assert total_lost() == 200


@pytest.mark.exhaustive
def test_a_process_writes_while_it_runs() -> None:
    process = counters.start(f"measures.count({NAME!r}, 3)\nsys.stdin.read()")
    until(3)
    counters.finished(process)
    assert total_lost() == 3


@pytest.mark.exhaustive
def test_a_fork_takes_neither_the_sums_nor_the_thread_of_its_parent() -> None:
    body = f"""
        measures.count({NAME!r}, 1)
        pid = os.fork()
        measures.count({NAME!r}, 10 if pid == 0 else 100)
        if pid == 0:
            measures.flush() or sys.exit(2)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        """
    counters.finished(counters.start(body, every=3600))
    assert total_lost() == 111


@pytest.mark.exhaustive
def test_a_fork_writes_by_a_thread_of_its_own() -> None:
    body = f"""
        measures.count({NAME!r}, 1)
        if os.fork() == 0:
            measures.count({NAME!r}, 10)
            sys.stdin.read()
            os._exit(0)
        os.wait()
        """
    process = counters.start(body)
    until(11)
    counters.finished(process)
    assert total_lost() == 11


@pytest.mark.exhaustive
def test_a_fork_in_the_middle_of_a_write_can_count() -> None:
    """Its parent's locks are held by threads that it has not."""
    body = f"""
        measures._process.lock.acquire()
        measures._process.writing.acquire()
        pid = os.fork()
        if pid == 0:
            measures.count({NAME!r}, 10)
            os._exit(0 if measures.flush() else 2)
        assert os.waitpid(pid, 0)[1] == 0
        measures._process.lock.release()
        measures._process.writing.release()
        """
    counters.finished(counters.start(body, every=3600))
    assert total_lost() == 10


@pytest.mark.exhaustive
def test_kill_9_loses_what_was_counted_since_the_last_write_and_no_more() -> None:
    body = f"""
        measures.count({NAME!r}, 40)
        sys.stdin.readline()
        measures.count({NAME!r}, 2)
        print("counted", flush=True)
        time.sleep(60)
        """
    process = counters.start(body)
    until(40)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "counted\n"
    process.kill()
    process.communicate()
    assert total_lost() in {40, 42}


@pytest.mark.exhaustive
def test_a_database_that_is_away_loses_nothing() -> None:
    body = f"""
        from django.db import connection
        port = connection.settings_dict["PORT"]
        connection.settings_dict["PORT"] = "1"
        for _ in range(3):
            measures.count({NAME!r}, 2)
            measures.mark("ipam_scheduler_last_tick_timestamp_seconds")
            print("said", measures.flush())
        connection.settings_dict["PORT"] = port
        print("said", measures.flush())
        """
    outputs = counters.finished(counters.start(body, every=3600))
    assert outputs == ["False"] * 3 + ["True"]
    assert total_lost() == 6
    assert Measure.objects.filter(name="ipam_scheduler_last_tick_timestamp_seconds").count() == 1


@pytest.mark.exhaustive
def test_a_statement_that_fails_is_written_as_a_whole_later() -> None:
    """Both parts of a write, or none: else the first would be added again."""
    body = f"""
        from django.db import connection
        measures.count({NAME!r}, 5)
        measures.mark("ipam_scheduler_last_tick_timestamp_seconds")
        good, measures._SET = measures._SET, "SELECT 1/0"
        print("said", measures.flush())
        measures._SET = good
        print("said", measures.flush())
        """
    outputs = counters.finished(counters.start(body, every=3600))
    assert outputs == ["False", "True"]
    assert total_lost() == 5
