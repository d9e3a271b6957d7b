"""Totals of what all processes have counted and timed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from pools.core.errors import PoolExhausted
from pools.models import Category, Cluster, Connection, Measure
from pools.platform import process_metrics
from pools.platform.metrics.families import ALL, BY_NAME, Family, Kind
from pools.platform.metrics.registry import Labels, Value, value

_PARTS = ("_bucket", "_sum", "_count")
_MEASURED = {
    f"{family.name}{part}": (family, part)
    for family in ALL
    if family.is_measured
    for part in (_PARTS if family.kind in {Kind.HISTOGRAM, Kind.SUMMARY} else ("",))
}
Sums = dict[tuple[Family, Labels], dict[str, float]]  # of each series, by part


def values() -> Iterator[Value]:
    """Yield the totals; those of removed clusters are left out, and expected series start at 0."""
    for (family, labels), parts in _read().items():
        if family.kind is Kind.HISTOGRAM:
            yield from _histogram(family, labels, parts)
        else:
            for part, total in parts.items():
                yield Value(family, labels, total, part)
    yield from _zeros()


def tidy() -> int:
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


def _histogram(family: Family, labels: Labels, parts: dict[str, float]) -> Iterator[Value]:
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
            "ipam_allocation_failures_total", 0, category=category, reason=PoolExhausted.code
        )
        yield value("ipam_releases_total", 0, category=category)
    yield value("ipam_lease_lost_total", 0)
    yield value("ipam_stale_writes_rejected_total", 0)
    yield from _histogram(BY_NAME["ipam_allocation_duration_seconds"], (), {})
    for name in Connection.objects.values_list("cluster__name", flat=True):
        for result in ("success", "failure"):
            yield value("ipam_reconcile_total", 0, cluster=name, result=result)
