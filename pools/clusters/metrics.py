"""Metrics of connections, orphans, findings and leaks; clusters without any have the value 0."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db.models import Count, Q

from pools.core import metric_labels
from pools.models import ATTRIBUTES, Cluster, Connection, Finding, Leak, PoolCIDR, Severity
from pools.platform.metrics.registry import Value, value

HOLDER_KINDS = ("node", "instance", "env")
MOST_KINDS = 20  # limit of series by kind of holder, because callers choose kinds freely
OTHER = "other"
SAME_POD_CIDR = "pod_cidr_overlap"  # code of the finding that two nodes use one CIDR


def sample_values() -> Iterator[Value]:
    rows = {cluster.pk: cluster for cluster in Cluster.objects.only("name", *ATTRIBUTES)}
    clusters = {pk: cluster.name for pk, cluster in rows.items()}
    attributes = metric_labels.label_values(settings.IPAM_METRIC_LABELS, rows)
    labels = {pk: {"cluster": name, **dict(attributes[pk])} for pk, name in clusters.items()}
    yield from _connections(labels)
    yield from _orphans(labels)
    yield from _findings(labels)
    yield from leak_values(clusters)
    yield from _duplicates(clusters)


def _connections(labels_by_cluster: dict[int, dict[str, str]]) -> Iterator[Value]:
    rows = Connection.objects.order_by().values_list("cluster_id", "succeeded_at", "paused")
    for cluster_id, succeeded_at, paused in rows:
        labels = labels_by_cluster[cluster_id]
        timestamp = succeeded_at.timestamp() if succeeded_at else 0
        yield value("ipam_cluster_last_success_timestamp_seconds", timestamp, **labels)
        yield value("ipam_cluster_connected", not paused, **labels)


def _orphans(labels_by_cluster: dict[int, dict[str, str]]) -> Iterator[Value]:
    is_orphaned = Q(orphaned_at__isnull=False) | Q(pool__orphaned_at__isnull=False)
    rows = PoolCIDR.objects.filter(is_orphaned).order_by().values_list("pool__cluster_id")
    counts = dict(rows.annotate(count=Count("pk")).values_list("pool__cluster_id", "count"))
    for cluster_id, labels in labels_by_cluster.items():
        yield value("ipam_orphans_detected", counts.get(cluster_id, 0), **labels)


def _findings(labels_by_cluster: dict[int, dict[str, str]]) -> Iterator[Value]:
    rows = Finding.objects.order_by().values_list("cluster_id", "severity")
    counts = {
        (cluster_id, severity): count
        for cluster_id, severity, count in rows.annotate(count=Count("pk"))
    }
    for cluster_id, labels in labels_by_cluster.items():
        for severity in Severity.values:
            count = counts.get((cluster_id, severity), 0)
            yield value("ipam_findings", count, **labels, severity=severity)


def _duplicates(clusters: dict[int, str]) -> Iterator[Value]:
    """Yield the number of PodCIDRs that two nodes use; VM networks add duplicates of their own."""
    rows = Finding.objects.filter(code=SAME_POD_CIDR).order_by().values_list("cluster_id")
    counts = dict(rows.annotate(count=Count("pk")).values_list("cluster_id", "count"))
    for cluster_id, name in clusters.items():
        yield value("ipam_duplicates_detected", counts.get(cluster_id, 0), cluster=name)


def leak_values(clusters: dict[int, str]) -> Iterator[Value]:
    """Yield the number of confirmed leaks by kind of holder; rare kinds are counted as `other`."""
    rows = Leak.objects.filter(confirmed_at__isnull=False).order_by()
    leak_counts = list(rows.values_list("cluster_id", "holder_kind").annotate(count=Count("pk")))
    kinds = series_kinds(kind for _, kind, _ in leak_counts)
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for cluster_id, kind, count in leak_counts:
        counts[cluster_id][kind if kind in kinds else OTHER] += count
    for cluster_id, name in clusters.items():
        for kind in sorted({*HOLDER_KINDS, *counts[cluster_id]}):
            count = counts[cluster_id][kind]
            yield value("ipam_leaks_detected", count, cluster=name, holder_kind=kind)


def series_kinds(kinds: Iterable[str]) -> set[str]:
    """Return the kinds of holders with a series of their own: the known and the most frequent kinds."""
    most_frequent = Counter(kinds).most_common(MOST_KINDS)
    return {*HOLDER_KINDS, *(kind for kind, _ in most_frequent)}
