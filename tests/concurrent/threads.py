"""Work done by several threads at once, each with its own connection, all starting together."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import TypeVar

from django.db import connection, transaction

from pools.platform import database
from tests import eventually

T = TypeVar("T")


def together(works: Sequence[Callable[[], T]]) -> list[T | Exception]:
    """What each returned or raised, in their order."""
    gate = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T | Exception:
        try:
            with connection.cursor():  # connected before the start, not in the race
                gate.wait(30)
            return work()
        except Exception as error:  # noqa: BLE001  # the test looks at it
            return error
        finally:
            connection.close()

    with futures.ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def failures(results: Sequence[object]) -> list[Exception]:
    return [result for result in results if isinstance(result, Exception)]


HELD_FOR = 0.3  # seconds
_is_done = threading.Event()


def in_passing(work: Callable[[], object], *, commit: bool) -> Callable[[], object]:
    """Do it in a transaction that stays open for a moment before its end."""
    _is_done.clear()

    def run() -> object:
        with transaction.atomic():
            done = work()
            _is_done.set()
            threading.Event().wait(HELD_FOR)
            transaction.set_rollback(not commit)
        return done

    return run


def meanwhile(work: Callable[[], object]) -> Callable[[], object]:
    """Do it while the transaction of `in_passing` is open."""

    def run() -> object:
        if not _is_done.wait(10):
            raise TimeoutError("the other transaction has not come so far")
        return work()

    return run


_WAITS_FOR_US = (
    "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
)


@contextlib.contextmanager
def waiting(work: Callable[[], object], *, behind: Callable[[], object]) -> Iterator[None]:
    """Take a lock in a transaction; meanwhile do the work in a thread, which waits for it from here to the end."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    with futures.ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            behind()
            done = pool.submit(run)
            eventually.until(lambda: done.done() or database.rows(_WAITS_FOR_US, []))
            assert not done.done(), done.exception() or "it did not wait"
            yield
        done.result(60)
