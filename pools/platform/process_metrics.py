"""Counters and timings of this process, which are added to those of all processes in `pools_measure`.

A scrape reaches one of many processes, so each process adds its sums to rows of the database every few seconds,
from a thread of its own. Counting neither waits for the database nor fails: sums stay in memory until they are
written. A process that is killed loses the sums since its last write. A write whose connection breaks at its
end, so that its success is unknown, is repeated.
"""

import atexit
import json
import logging
import math
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from pools.sql import statements

log = logging.getLogger(__name__)

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
# Upper bounds of a histogram's buckets in seconds; other observed names are summaries.
BUCKETS: Mapping[str, tuple[float, ...]] = {
    "ipam_allocation_duration_seconds": _SECONDS,
    "ipam_webhook_duration_seconds": (*_SECONDS, 10),
}
MOST_SERIES = 20_000  # that a process keeps while the database is unavailable
_LONGEST_LABEL = 253
_PATIENCE_AT_EXIT = 2.0  # seconds to wait for a write in progress


def count(name: str, amount: float = 1, /, **labels: object) -> None:
    """Add an amount to a counter."""
    _add([((name, _label_pairs(labels)), amount)])


def observe(name: str, seconds: float, /, **labels: object) -> None:
    """Add a duration to a histogram, or to a summary if BUCKETS does not have the name."""
    if not math.isfinite(seconds):
        return
    pairs = _label_pairs(labels)
    buckets = BUCKETS.get(name)
    if buckets is None:
        _add([((f"{name}_sum", pairs), seconds), ((f"{name}_count", pairs), 1.0)])
        return
    total, bucket = _histogram(name, pairs, bisect_left(buckets, seconds))
    _add([(total, seconds), (bucket, 1.0)])


@lru_cache(maxsize=4096)
def _histogram(name: str, pairs: Labels, position: int) -> tuple[Key, Key]:
    """Return the keys of the sum and of the one bucket; cumulative counts are computed when read."""
    buckets = BUCKETS[name]
    le = repr(float(buckets[position])) if position < len(buckets) else "+Inf"
    return (f"{name}_sum", pairs), (f"{name}_bucket", tuple(sorted((*pairs, ("le", le)))))


def mark(name: str, /, **labels: object) -> None:
    """Set a value to the current time of the database (seconds since 1970); the latest time wins."""
    with _process.lock:
        if _has_room(_process.marks, key := (name, _label_pairs(labels))):
            _process.marks[key] = time.monotonic()
    _process.wake()


def flush() -> bool:
    """Write the sums; False if that failed and they are kept."""
    return _process.write()


def _add(sums: Iterable[tuple[Key, float]]) -> None:
    with _process.lock:
        for key, amount in sums:
            # NaN or infinity would make the total useless forever.
            if math.isfinite(amount) and _has_room(_process.sums, key):
                _process.sums[key] = _process.sums.get(key, 0.0) + amount
    _process.wake()


def _label_pairs(labels: Mapping[str, object]) -> Labels:
    if not labels:
        return ()
    return tuple(sorted((name, str(value)[:_LONGEST_LABEL]) for name, value in labels.items()))


def _has_room(series: Mapping[Key, float], key: Key) -> bool:
    return key in series or len(series) < MOST_SERIES


class _Process:
    """The sums of this process, and the thread that writes them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.writing = threading.Lock()
        self.ending = threading.Event()
        self.sums: dict[Key, float] = {}
        self.marks: dict[Key, float] = {}  # by time.monotonic()
        self.thread: threading.Thread | None = None

    def wake(self) -> None:
        """Start the thread at the first count, so that it belongs to this process even after a fork."""
        if self.thread is not None or not settings.IPAM_MEASURE_SECONDS or self.ending.is_set():
            return
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="measures", daemon=True)
                self.thread.start()

    def _run(self) -> None:
        while not self.ending.wait(settings.IPAM_MEASURE_SECONDS):
            # A connection costs more than a write, but a process that counts nothing needs none.
            counted = self.sums or self.marks
            if not (counted and self.write()):
                connection.close()

    def write(self) -> bool:
        with self.writing:
            with self.lock:
                sums, self.sums = self.sums, {}
                marks, self.marks = self.marks, {}
            if not sums and not marks:
                return True
            try:
                _store(sums, marks)
            except Exception as error:  # noqa: BLE001  # any error: keep the sums, and do not fail
                log.info("metrics are kept for a later write: %s", type(error).__name__)
                self._take_back(sums, marks)
                return False
            return True

    def _take_back(self, sums: Mapping[Key, float], marks: Mapping[Key, float]) -> None:
        with self.lock:
            for key, amount in sums.items():
                if _has_room(self.sums, key):
                    self.sums[key] = self.sums.get(key, 0.0) + amount
            for key, moment in marks.items():
                if _has_room(self.marks, key):
                    self.marks[key] = max(moment, self.marks.get(key, moment))

    def end(self) -> None:
        self.ending.set()
        if self.thread is not None:
            self.thread.join(_PATIENCE_AT_EXIT)
            self.write()


_ADD = statements.read("pools/add_measures")
_SET = statements.read("pools/set_measures")


def _store(sums: Mapping[Key, float], marks: Mapping[Key, float]) -> None:
    now = time.monotonic()
    with transaction.atomic(), connection.cursor() as cursor:
        if sums:
            cursor.execute(_ADD, _columns(sums))
        if marks:
            ages = {key: now - moment for key, moment in marks.items()}
            cursor.execute(_SET, _columns(ages))


def _columns(values: Mapping[Key, float]) -> dict[str, list[Any]]:
    return {
        "names": [name for name, _ in values],
        "labels": [labels_as_text(dict(labels)) for _, labels in values],
        "values": list(values.values()),
    }


def labels_as_text(labels: Mapping[str, str]) -> str:
    """Return labels as they are stored: a JSON object in ASCII with sorted keys."""
    return json.dumps(labels, sort_keys=True)


_process = _Process()


def _forked() -> None:
    """Start with empty sums: those of the parent are the parent's to write, as are its thread and locks."""
    global _process  # noqa: PLW0603  # one set of sums for each process
    _process = _Process()


@atexit.register
def _ended() -> None:
    _process.end()


os.register_at_fork(after_in_child=_forked)
