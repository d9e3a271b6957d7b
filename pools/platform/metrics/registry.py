"""All metrics with their values, as they are now."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from django.db import connection, transaction

from pools.platform.metrics import event_counts, families
from pools.platform.metrics.values import Labels, Value

Source = Callable[[], Iterable[Value]]

SOURCES: list[Source] = []  # filled by pools.extension; each is called at a scrape


def collect() -> Mapping[families.Family, Mapping[tuple[str, Labels], float]]:
    """For each metric its samples, by (name, labels): the name has the suffix of its type.

    In one snapshot of the database, so that the parts of a sum add up. What several sources say of the
    same labels is added.
    """
    event_counts.count()
    found: dict[families.Family, dict[tuple[str, Labels], float]] = {
        family: {} for family in families.ALL
    }
    with _snapshot():
        for source in SOURCES:
            for value in source():
                samples = found[value.family]
                key = value.family.name + value.suffix, value.labels
                samples[key] = samples.get(key, 0) + value.value
    return found


@contextlib.contextmanager
def _snapshot() -> Iterator[None]:
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
