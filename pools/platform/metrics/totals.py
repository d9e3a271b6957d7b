"""What all processes have counted and timed so far."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from pools.core.errors import PoolExhausted
from pools.models import Cluster, Connection, Measure
from pools.models.pools import Category
from pools.platform import process_metrics
from pools.platform.metrics.families import ALL, BY_NAME, Family, Kind
from pools.platform.metrics.values import Labels, Value, value

_PARTS = ("_bucket", "_sum", "_count")
_MEASURED = {
    f"{family.name}{part}": (family, part)
    for family in ALL
    if family.is_measured
    for part in (_PARTS if family.kind in {Kind.HISTOGRAM, Kind.SUMMARY} else ("",))
}
Sums = dict[tuple[Family, Labels], dict[str, float]]  # of each series, by part


def values() -> Iterator[Value]:
    """Those of clusters that are no more are left out; what can be is there before it is first counted."""
    for (family, labels), parts in _read().items():
        if family.kind is Kind.HISTOGRAM:
            yield from _histogram(family, labels, parts)
        else:
            for part, total in parts.items():
                yield Value(family, labels, total, part)
    yield from _zeros()


def tidy() -> int:
    """Forget the totals of clusters that are no more; how many."""
    clusters = set(Cluster.objects.values_list("name", flat=True))
    over = [
        row.pk for row in Measure.objects.filter(labels__contains='"cluster"').iterator()
        if json.loads(row.labels).get("cluster") not in clusters
    ]  # fmt: skip
    return Measure.objects.filter(pk__in=over).delete()[0]


def _read() -> Sums:
    known = {"", *Cluster.objects.values_list("name", flat=True)}
    sums: Sums = defaultdict(dict)
    rows = Measure.objects.filter(name__in=_MEASURED).values_list("name", "labels", "value")
    for name, text, total in rows:
        family, part = _MEASURED[name]
        labels = json.loads(text)
        bucket = labels.pop("le", "")
        # Of a version with other labels, or of a cluster that was removed.
        if set(labels) != set(family.labels) or labels.get("cluster", "") not in known:
            continue
        key = family, tuple((label, labels[label]) for label in family.labels)
        sums[key][bucket or part] = total
    return sums


def _histogram(family: Family, labels: Labels, parts: dict[str, float]) -> Iterator[Value]:
    """Each bucket holds those below it; the last one is their number."""
    seen = 0.0
    for end in [*map(bucket, process_metrics.BUCKETS[family.name]), "+Inf"]:
        seen += parts.get(end, 0)
        yield Value(family, (*labels, ("le", end)), seen, "_bucket")
    yield Value(family, labels, seen, "_count")
    yield Value(family, labels, parts.get("_sum", 0), "_sum")


def bucket(end: float) -> str:
    """The upper end of a bucket as a label, as pools.platform.process_metrics writes it."""
    return repr(float(end))


def _zeros() -> Iterator[Value]:
    """So that the first failure is an increase, and not a series that was not there before."""
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
