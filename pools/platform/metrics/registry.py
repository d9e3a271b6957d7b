"""The current values of all metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from django.db import connection, transaction

from pools.platform.metrics import event_counts, families

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
    event_counts.count()
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
