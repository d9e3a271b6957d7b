"""The current values of all metrics, and the counters of block events."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from django.db import connection, transaction

from pools.models import CountedUntil
from pools.platform.history import event_numbers
from pools.platform.metrics import families
from pools.sql import statements

Labels = tuple[tuple[str, str], ...]


class Value(NamedTuple):
    """A sample; `suffix` is that of a part of a histogram or summary: _bucket, _sum, _count."""

    family: families.Family
    labels: Labels
    value: float
    suffix: str = ""


def value(name: str, amount: float, /, **labels: str) -> Value:
    """Return a sample of the metric with this name."""
    return Value(families.BY_NAME[name], tuple(labels.items()), amount)


Source = Callable[[], Iterable[Value]]

SOURCES: list[Source] = []  # filled by pools.extension; a scrape calls each


def collect() -> Mapping[families.Family, Mapping[tuple[str, Labels], float]]:
    """Return the samples of each metric by (name, labels); the name has the suffix of its type.

    The values are read in one snapshot of the database, so that the parts of a sum add up. Values of several
    sources for the same labels are added.
    """
    count_events()
    samples_by_family: dict[families.Family, dict[tuple[str, Labels], float]] = {
        family: {} for family in families.ALL
    }
    with _snapshot():
        for source in SOURCES:
            for value in source():
                samples = samples_by_family[value.family]
                key = value.family.name + value.suffix, value.labels
                samples[key] = samples.get(key, 0) + value.value
    return samples_by_family


@contextlib.contextmanager
def _snapshot() -> Iterator[None]:
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


# A transaction can commit later than one that drew higher numbers, so only complete numbers are counted
# (pools/platform/history/event_numbers.py). Counting locks the row of the position; totals and position are written in
# one transaction. Events that the retention deletes later stay counted.
LOG = "events"
STEP = 100_000  # event numbers that one transaction counts


def count_events(*, seconds: float = 0.5) -> bool:
    """Add new events to the totals; False if some are left after `seconds`.

    A concurrent call waits and then finds the totals of the first one. Call it outside transactions of
    REPEATABLE READ, which do not see the rows that others commit meanwhile.
    """
    deadline = time.monotonic() + seconds
    while not _step():
        if time.monotonic() > deadline:
            return False
    return True


def _step() -> bool:
    """Count one step of events. Return True if all complete events are counted."""
    with transaction.atomic(), connection.cursor() as cursor:
        position, _ = CountedUntil.objects.select_for_update().get_or_create(log=LOG)
        complete = event_numbers.complete_number(position)
        last = min(complete, position.counted + STEP)
        if last > position.counted:
            cursor.execute(_COUNT, {"after": position.counted, "upto": last})
        position.counted = last
        position.save()
    return last >= complete


# Labels as pools.platform.process_metrics writes them, in the order of the unique index.
_COUNT = statements.read("pools/count_events")
