"""Many processes that repeat one thing for some seconds."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from django.db import connection

T = TypeVar("T")
Work = Callable[[int, int], Any]


def rates(processes: int, seconds: float, works: Sequence[Work]) -> list[float]:
    """How often a second each `work(client, number)` was done by all processes together.

    They take turns of a half second, so that all see the same machine, whatever else it does; each has
    `seconds` in all.
    """
    turns = max(1, round(seconds / _TURN))
    lasting = turns * len(works) * _TURN
    counts = _all(processes, lasting, partial(_in_turn, turns=turns, works=works))
    return [sum(of_client) / turns / _TURN for of_client in zip(*counts, strict=True)]


_TURN = 0.5


def _in_turn(client: int, start: float, *, turns: int, works: Sequence[Work]) -> list[int]:
    done = [0] * len(works)
    for work in works:
        _warm_up(client, work)
    for turn in range(turns * len(works)):
        which = turn % len(works)
        begin = start + turn * _TURN
        time.sleep(max(0, begin - time.monotonic()))
        while time.monotonic() < begin + _TURN:
            works[which](client, done[which])
            done[which] += 1
    return done


def latencies(processes: int, seconds: float, work: Work) -> list[float]:
    """How long each call of `work(client, number)` took, in seconds; an error ends the run."""
    return list(chain(*_all(processes, seconds, partial(_timed, seconds=seconds, work=work))))


def _timed(client: int, start: float, *, seconds: float, work: Work) -> list[float]:
    taken = []
    _warm_up(client, work)
    time.sleep(max(0, start - time.monotonic()))
    number, now = 0, time.monotonic()
    while now < start + seconds:
        work(client, number)
        number, before = number + 1, now
        now = time.monotonic()
        taken.append(now - before)
    return taken


def _warm_up(client: int, work: Work) -> None:
    """Connections and plans are made before the clock runs."""
    for number in range(20):
        work(client, -1 - number)


def _all(processes: int, seconds: float, run: Callable[[int, float], list[T]]) -> list[list[T]]:
    """What `run(client, start)`, which takes `seconds`, answers in each of so many processes."""
    connection.close()  # a fork must not share it
    context = multiprocessing.get_context("fork")
    queue: Any = context.Queue()
    start = time.monotonic() + 0.5 + processes / 40
    children = [
        context.Process(target=_child, args=(client, start, run, queue), daemon=True)
        for client in range(processes)
    ]
    for child in children:
        child.start()
    results: list[list[T]] = []
    for _ in children:
        result = queue.get(timeout=seconds + 120)
        if isinstance(result, str):
            raise RuntimeError(result)  # noqa: TRY004  # a client's error, told as text
        results.append(result)
    for child in children:
        child.join()
    return results


def _child(client: int, start: float, run: Callable[[int, float], list[Any]], queue: Any) -> None:
    try:
        queue.put(run(client, start))
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent must hear of it
        queue.put(f"client {client}: {type(error).__name__}: {error}")


def median_ms(calls: int, work: Callable[[int], Any]) -> float:
    """The median time of `work(number)` in this process, in milliseconds."""
    taken = []
    for number in range(calls):
        before = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - before)
    return statistics.median(taken) * 1000
