"""The current values of all metrics, the counters of block events, and the totals of all processes."""

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from django.db import connection, transaction

from pools.core import errors
from pools.models import Category, Cluster, Connection, CountedUntil, Measure
from pools.platform import process_metrics
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


# --- totals of what all processes have counted and timed -----------------------------------------

_PARTS = ("_bucket", "_sum", "_count")
_MEASURED = {
    f"{family.name}{part}": (family, part)
    for family in families.ALL
    if family.is_measured
    for part in (
        _PARTS if family.kind in {families.Kind.HISTOGRAM, families.Kind.SUMMARY} else ("",)
    )
}
Sums = dict[tuple[families.Family, Labels], dict[str, float]]  # of each series, by part


def totals() -> Iterator[Value]:
    """Yield the totals; those of removed clusters are left out, and expected series start at 0."""
    for (family, labels), parts in _read().items():
        if family.kind is families.Kind.HISTOGRAM:
            yield from _histogram(family, labels, parts)
        else:
            for part, total in parts.items():
                yield Value(family, labels, total, part)
    yield from _zeros()


def tidy_totals() -> int:
    """Delete the totals of removed clusters; return their number."""
    clusters = set(Cluster.objects.values_list("name", flat=True))
    outdated = [
        row.pk
        for row in Measure.objects.filter(labels__contains='"cluster"').iterator()
        if json.loads(row.labels).get("cluster") not in clusters
    ]
    return Measure.objects.filter(pk__in=outdated).delete()[0]


def _read() -> Sums:
    cluster_names = {"", *Cluster.objects.values_list("name", flat=True)}
    sums: Sums = defaultdict(dict)
    rows = Measure.objects.filter(name__in=_MEASURED).values_list("name", "labels", "value")
    for name, text, total in rows:
        family, part = _MEASURED[name]
        labels = json.loads(text)
        bucket = labels.pop("le", "")
        # Written by a version with other labels, or for a removed cluster.
        if set(labels) != set(family.labels) or labels.get("cluster", "") not in cluster_names:
            continue
        key = family, tuple((label, labels[label]) for label in family.labels)
        sums[key][bucket or part] = total
    return sums


def _histogram(family: families.Family, labels: Labels, parts: dict[str, float]) -> Iterator[Value]:
    """Yield cumulative buckets; the last one is the count."""
    cumulative = 0.0
    for end in [*map(bucket, process_metrics.BUCKETS[family.name]), "+Inf"]:
        cumulative += parts.get(end, 0)
        yield Value(family, (*labels, ("le", end)), cumulative, "_bucket")
    yield Value(family, labels, cumulative, "_count")
    yield Value(family, labels, parts.get("_sum", 0), "_sum")


def bucket(end: float) -> str:
    """Return the upper bound of a bucket as a label, as pools.platform.process_metrics writes it."""
    return repr(float(end))


def _zeros() -> Iterator[Value]:
    """Yield zeros, so that the first failure is an increase and not a new series."""
    for category in Category.values:
        for result in ("allocated", "failed"):
            yield value("ipam_allocations_total", 0, category=category, result=result)
        yield value(
            "ipam_allocation_failures_total", 0, category=category, reason=errors.PoolExhausted.code
        )
        yield value("ipam_releases_total", 0, category=category)
    yield value("ipam_lease_lost_total", 0)
    yield value("ipam_stale_writes_rejected_total", 0)
    yield from _histogram(families.BY_NAME["ipam_allocation_duration_seconds"], (), {})
    for name in Connection.objects.values_list("cluster__name", flat=True):
        for result in ("success", "failure"):
            yield value("ipam_reconcile_total", 0, cluster=name, result=result)
