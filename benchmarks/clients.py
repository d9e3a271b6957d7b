"""Many processes that repeat one thing for some seconds."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import Any

from django.db import connection

Work = Callable[[int, int], Any]


def rate(processes: int, seconds: float, work: Work) -> float:
    """How often a second `work(client, number)` was done by all processes together."""
    return len(latencies(processes, seconds, work)) / seconds


def latencies(processes: int, seconds: float, work: Work) -> list[float]:
    """How long each call of `work(client, number)` took, in seconds; an error ends the run."""
    connection.close()  # a fork must not share it
    context = multiprocessing.get_context("fork")
    queue: Any = context.Queue()
    start = time.monotonic() + 0.5 + processes / 40
    children = [
        context.Process(target=_client, args=(client, start, seconds, work, queue), daemon=True)
        for client in range(processes)
    ]
    for child in children:
        child.start()
    taken: list[float] = []
    for _ in children:
        result = queue.get(timeout=seconds + 120)
        if isinstance(result, str):
            raise RuntimeError(result)  # noqa: TRY004  # a client's error, told as text
        taken += result
    for child in children:
        child.join()
    return taken


def _client(client: int, start: float, seconds: float, work: Work, queue: Any) -> None:
    taken = []
    try:
        for number in range(20):  # connections and plans are made before the clock runs
            work(client, -1 - number)
        time.sleep(max(0, start - time.monotonic()))
        number, now = 0, time.monotonic()
        while now < start + seconds:
            work(client, number)
            number, before = number + 1, now
            now = time.monotonic()
            taken.append(now - before)
        queue.put(taken)
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
