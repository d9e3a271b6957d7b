"""Work done by several threads at once, each with its own connection, all starting together."""

import threading
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import TypeVar

from django.db import connection, transaction

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
