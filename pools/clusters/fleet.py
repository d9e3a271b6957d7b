"""Summaries and metrics of the connected clusters, for lists, pages, the API and commands.

Beside it: one line on the kinds that a cluster serves, and the data that is shown because of them. In metrics of
orphans, findings and leaks, clusters without any have the value 0.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Model, Q

from pools import models
from pools.clusters import connections, other_writers
from pools.core import metric_labels
from pools.core.kubernetes.connection_status import ConnectionStatus
from pools.platform import database
from pools.platform.metrics.registry import Value, value

_NOT_KNOWN = "The served kinds are known after the first full sync."
_NOTHING = (
    "The cluster serves none of the kinds that Cadastre reads. Only data of the register is shown."
)


def served_versions(connection: models.Connection) -> dict[str, str] | None:
    """Return the apiVersion of each kind that the cluster serves; None before the first full sync."""
    if connection.served is None:
        return None
    return {
        kind: read["api_version"] for kind, read in connection.served.items() if read["api_version"]
    }


def describe(connection: models.Connection) -> str:
    """Return the line for the pages of the cluster."""
    if connection.served is None:
        return _NOT_KNOWN
    shown: dict[str, list[str]] = {}
    absent: dict[str, None] = {}
    for kind, read in connection.served.items():
        if read["api_version"]:
            version = read["api_version"].rpartition("/")[2]
            shown.setdefault(read["shows"], []).append(f"{kind} {version}")
        else:
            absent[read["shows"]] = None
    if not shown:
        return _NOTHING
    listed = "; ".join(f"{subject} ({', '.join(kinds)})" for subject, kinds in shown.items())
    missing = ", ".join(subject for subject in absent if subject not in shown)
    return f"Shown: {listed}." + (f" Not served, so not shown: {missing}." if missing else "")


@dataclass(frozen=True)
class ConnectionSummary:
    """One connected cluster: its status, and its numbers of objects, problems, findings, differences."""

    connection: models.Connection
    status: ConnectionStatus
    objects: int
    problems: int  # objects that are invalid or could not be ingested
    findings: int
    drift: int  # fields that differ and are not ignored

    @property
    def shows(self) -> str:
        """One line on the kinds that the cluster serves, and the data that is shown."""
        return describe(self.connection)

    @property
    def served(self) -> dict[str, str] | None:
        """The apiVersion of each kind that the cluster serves; None before the first full sync."""
        return served_versions(self.connection)

    @property
    def writers(self) -> list[other_writers.ResourceWriters]:
        """Who writes each resource that Cadastre could write, as last observed."""
        return other_writers.writers_of(self.connection)

    @property
    def error(self) -> dict[str, str] | None:
        """The code and the message of the last error; None after a success."""
        row = self.connection
        return {"code": row.error_code, "message": row.error} if row.error_code else None


def summaries(
    rows: Iterable[models.Connection], now: datetime | None = None
) -> list[ConnectionSummary]:
    """Return summaries in the order of the rows, whose clusters must be loaded; four queries in total."""
    connection_rows = list(rows)
    now = now or database.now()
    listed = Q(cluster_id__in=[row.cluster_id for row in connection_rows])
    objects = _counts(models.ObservedObject, listed)
    problems = _counts(models.ObservedObject, listed & ~Q(problem_code=""))
    findings = _counts(models.Finding, listed)
    drift = _counts(models.Drift, listed & Q(ignored_at=None))
    return [
        ConnectionSummary(
            row,
            connections.status(row, now),
            objects.get(row.cluster_id, 0),
            problems.get(row.cluster_id, 0),
            findings.get(row.cluster_id, 0),
            drift.get(row.cluster_id, 0),
        )
        for row in connection_rows
    ]


def summary(connection: models.Connection) -> ConnectionSummary:
    return summaries([connection])[0]


def list_connections() -> list[models.Connection]:
    """Return all connections by name of the cluster, without credentials."""
    rows = models.Connection.objects.select_related("cluster").defer("sealed")
    return list(rows.order_by("cluster__name"))


def _counts(model: type[Model], condition: Q, cluster: str = "cluster_id") -> dict[int, int]:
    """Return the number of rows by cluster."""
    rows = model._default_manager.filter(condition).order_by().values_list(cluster)
    return dict(rows.annotate(count=Count("pk")).values_list(cluster, "count"))


HOLDER_KINDS = ("node", "instance", "env")
MOST_KINDS = 20  # limit of series by kind of holder, because callers choose kinds freely
OTHER = "other"
SAME_POD_CIDR = "pod_cidr_overlap"  # code of the finding that two nodes use one CIDR


def sample_values() -> Iterator[Value]:
    rows = {
        cluster.pk: cluster for cluster in models.Cluster.objects.only("name", *models.ATTRIBUTES)
    }
    clusters = {pk: cluster.name for pk, cluster in rows.items()}
    attributes = metric_labels.label_values(settings.IPAM_METRIC_LABELS, rows)
    labels = {pk: {"cluster": name, **dict(attributes[pk])} for pk, name in clusters.items()}
    yield from _connections(labels)
    yield from _orphans(labels)
    yield from _findings(labels)
    yield from leak_values(clusters)
    yield from _duplicates(clusters)


def _connections(labels_by_cluster: dict[int, dict[str, str]]) -> Iterator[Value]:
    rows = models.Connection.objects.order_by().values_list("cluster_id", "succeeded_at", "paused")
    for cluster_id, succeeded_at, paused in rows:
        labels = labels_by_cluster[cluster_id]
        timestamp = succeeded_at.timestamp() if succeeded_at else 0
        yield value("ipam_cluster_last_success_timestamp_seconds", timestamp, **labels)
        yield value("ipam_cluster_connected", not paused, **labels)


def _orphans(labels_by_cluster: dict[int, dict[str, str]]) -> Iterator[Value]:
    is_orphaned = Q(orphaned_at__isnull=False) | Q(pool__orphaned_at__isnull=False)
    counts = _counts(models.PoolCIDR, is_orphaned, "pool__cluster_id")
    for cluster_id, labels in labels_by_cluster.items():
        yield value("ipam_orphans_detected", counts.get(cluster_id, 0), **labels)


def _findings(labels_by_cluster: dict[int, dict[str, str]]) -> Iterator[Value]:
    rows = models.Finding.objects.order_by().values_list("cluster_id", "severity")
    counts = {
        (cluster_id, severity): count
        for cluster_id, severity, count in rows.annotate(count=Count("pk"))
    }
    for cluster_id, labels in labels_by_cluster.items():
        for severity in models.Severity.values:
            count = counts.get((cluster_id, severity), 0)
            yield value("ipam_findings", count, **labels, severity=severity)


def _duplicates(clusters: dict[int, str]) -> Iterator[Value]:
    """Yield the number of PodCIDRs that two nodes use; VM networks add duplicates of their own."""
    counts = _counts(models.Finding, Q(code=SAME_POD_CIDR))
    for cluster_id, name in clusters.items():
        yield value("ipam_duplicates_detected", counts.get(cluster_id, 0), cluster=name)


def leak_values(clusters: dict[int, str]) -> Iterator[Value]:
    """Yield the number of confirmed leaks by kind of holder; rare kinds are counted as `other`."""
    rows = models.Leak.objects.filter(confirmed_at__isnull=False).order_by()
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
