"""What a process counts and times, summed up in `pools_measure` over all processes.

A scrape reaches one process of many, so each of them adds its own sums to rows of the database, every
few seconds, from a thread of its own. Whoever counts waits for no database and gets no error: sums stay
in memory until they could be written. A process that is killed loses those since its last write. A write
whose success could not be told because the connection broke at its end is written again.
"""

from __future__ import annotations

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

from django.conf import settings
from django.db import connection, transaction

log = logging.getLogger(__name__)

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]

# The upper ends of a histogram's buckets, in seconds; other names that are observed are summaries.
BUCKETS: Mapping[str, tuple[float, ...]] = {
    "ipam_allocation_duration_seconds": (
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
    ),
    "ipam_webhook_duration_seconds": (
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ),
}  # fmt: skip
MOST_SERIES = 20_000  # that a process keeps for a database that is away
_LONGEST_LABEL = 253
_PATIENCE_AT_EXIT = 2.0  # seconds for a write that is on its way


def count(name: str, amount: float = 1, /, **labels: object) -> None:
    """Add to a counter."""
    _add([((name, _texts(labels)), amount)])


def observe(name: str, seconds: float, /, **labels: object) -> None:
    """Add a duration to a histogram, or to a summary where BUCKETS does not have the name."""
    if not math.isfinite(seconds):
        return
    texts = _texts(labels)
    buckets = BUCKETS.get(name)
    if buckets is None:
        _add([((f"{name}_sum", texts), seconds), ((f"{name}_count", texts), 1.0)])
        return
    total, bucket = _histogram(name, texts, bisect_left(buckets, seconds))
    _add([(total, seconds), (bucket, 1.0)])


@lru_cache(maxsize=4096)
def _histogram(name: str, texts: Labels, place: int) -> tuple[Key, Key]:
    """The sum, and only the one bucket: that each holds those below it is worked out when they are read."""
    buckets = BUCKETS[name]
    le = repr(float(buckets[place])) if place < len(buckets) else "+Inf"
    return (f"{name}_sum", texts), (f"{name}_bucket", tuple(sorted((*texts, ("le", le)))))


def mark(name: str, /, **labels: object) -> None:
    """Set a value to the database's time (seconds since 1970) of this moment; later ones win."""
    with _own.lock:
        if _room(_own.marks, key := (name, _texts(labels))):
            _own.marks[key] = time.monotonic()
    _own.wake()


def flush() -> bool:
    """Write what was counted up to now; False when it could not be written and is kept."""
    return _own.write()


def _add(sums: Iterable[tuple[Key, float]]) -> None:
    with _own.lock:
        for key, amount in sums:
            # One that is no number would spoil the total for ever.
            if math.isfinite(amount) and _room(_own.sums, key):
                _own.sums[key] = _own.sums.get(key, 0.0) + amount
    _own.wake()


def _texts(labels: Mapping[str, object]) -> Labels:
    if not labels:
        return ()
    return tuple(sorted((name, str(value)[:_LONGEST_LABEL]) for name, value in labels.items()))


def _room(kept: Mapping[Key, float], key: Key) -> bool:
    return key in kept or len(kept) < MOST_SERIES


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
        """Start the thread with the first count, so that it is one of this process, however it began."""
        if self.thread is not None or not settings.IPAM_MEASURE_SECONDS or self.ending.is_set():
            return
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="measures", daemon=True)
                self.thread.start()

    def _run(self) -> None:
        while not self.ending.wait(settings.IPAM_MEASURE_SECONDS):
            # Making a connection costs more than a write; who counts nothing holds none.
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
            except Exception as error:  # noqa: BLE001  # whatever it was: nothing is lost, nobody fails
                log.info("measures are kept for later: %s", type(error).__name__)
                self._take_back(sums, marks)
                return False
            return True

    def _take_back(self, sums: Mapping[Key, float], marks: Mapping[Key, float]) -> None:
        with self.lock:
            for key, amount in sums.items():
                if _room(self.sums, key):
                    self.sums[key] = self.sums.get(key, 0.0) + amount
            for key, moment in marks.items():
                if _room(self.marks, key):
                    self.marks[key] = max(moment, self.marks.get(key, moment))

    def end(self) -> None:
        self.ending.set()
        if self.thread is not None:
            self.thread.join(_PATIENCE_AT_EXIT)
            self.write()


# In the order of the unique index, so that two processes never wait for each other's rows in a circle.
_ADD = """
    INSERT INTO pools_measure AS kept (name, labels, value)
    SELECT * FROM unnest(%s::text[], %s::text[], %s::float8[]) AS new (name, labels, value)
    ORDER BY name, labels
    ON CONFLICT (name, labels) DO UPDATE SET value = kept.value + EXCLUDED.value
"""
_SET = """
    INSERT INTO pools_measure AS kept (name, labels, value)
    SELECT name, labels, extract(epoch FROM clock_timestamp()) - age
    FROM unnest(%s::text[], %s::text[], %s::float8[]) AS new (name, labels, age)
    ORDER BY name, labels
    ON CONFLICT (name, labels) DO UPDATE SET value = greatest(kept.value, EXCLUDED.value)
"""


def _store(sums: Mapping[Key, float], marks: Mapping[Key, float]) -> None:
    now = time.monotonic()
    with transaction.atomic(), connection.cursor() as cursor:
        if sums:
            cursor.execute(_ADD, _columns(sums))
        if marks:
            ages = {key: now - moment for key, moment in marks.items()}
            cursor.execute(_SET, _columns(ages))


def _columns(values: Mapping[Key, float]) -> list[list[object]]:
    return [
        [name for name, _ in values],
        [text(dict(labels)) for _, labels in values],
        list(values.values()),
    ]


def text(labels: Mapping[str, str]) -> str:
    """Labels as they are stored: a JSON object in ASCII, keys in order."""
    return json.dumps(labels, sort_keys=True)


_own = _Process()


def _forked() -> None:
    """The sums of the parent are the parent's to write, and its thread and locks are not ours."""
    global _own  # noqa: PLW0603  # one set of sums for each process
    _own = _Process()


@atexit.register
def _ended() -> None:
    _own.end()


os.register_at_fork(after_in_child=_forked)
