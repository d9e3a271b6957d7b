"""Conditions of clusters: connections, credentials, findings, drift, duplicates and leaks."""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Count, Q
from django.utils.translation import gettext, ngettext

from pools.clusters import connections, fleet, other_writers
from pools.core.kubernetes.connection_status import ConnectionState
from pools.models import Connection, Drift, Finding, Leak, Level
from pools.platform import database
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.platform.outbound.faults import FieldConflict

STALE = "cluster_stale"
FAILING = "cluster_failing"
EXPIRING = "credentials_expiring"
DUPLICATE = "duplicate_address"
FINDINGS = "cluster_findings"
DRIFT = "cluster_drift"
CONFLICT = "field_conflict"
LEAKED = "leaked_blocks"

_DUPLICATE_POD_CIDR = "pod_cidr_overlap"  # the finding
_MOST = 1000  # subjects of one condition


def _cluster_url(cluster_id: int) -> str:
    return f"/admin/pools/cluster/{cluster_id}/change/#connection"


def _connection_cause(cluster_id: int) -> str:
    return f"cluster/{cluster_id}/connection"


def _stale_clusters(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield clusters whose full sync run is overdue by more than IPAM_ALERT_STALE_SECONDS."""
    now = database.now()
    overdue = timedelta(seconds=settings.IPAM_ALERT_STALE_SECONDS)
    silent = Q(succeeded_at__lt=now - connections.stale_after())
    never = Q(succeeded_at=None, due_at__lt=now - overdue)
    rows = Connection.objects.filter(silent | never, paused=False).order_by("cluster_id")
    for pk, name, succeeded_at, error in rows.values_list(
        "cluster_id", "cluster__name", "succeeded_at", "error"
    )[:_MOST]:
        detail = (
            gettext("No full sync run has succeeded since %(time)s UTC.")
            % {"time": f"{succeeded_at:%Y-%m-%d %H:%M}"}
            if succeeded_at
            else gettext("No full sync run has succeeded yet.")
        )
        yield ActiveCondition(
            STALE,
            f"cluster/{pk}",
            Level.ERROR,
            gettext("The data of cluster %(cluster)s is stale") % {"cluster": name},
            f"{detail} {error or gettext('No error was reported.')}",
            _cluster_url(pk),
            _connection_cause(pk),
        )


def _failing_connections(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the clusters whose last sync run failed or was incomplete, and credentials that expire."""
    now = database.now()
    soon = now + timedelta(days=settings.IPAM_ALERT_CREDENTIAL_DAYS)
    for row in fleet.list_connections():
        subject = f"cluster/{row.cluster_id}"
        place = _cluster_url(row.cluster_id), _connection_cause(row.cluster_id)
        status = connections.status(row, now)
        if status.state.level in {"bad", "warn"} and status.state != ConnectionState.STALE:
            title = gettext("Cluster %(cluster)s: %(state)s") % {
                "cluster": row.cluster,
                "state": status.state.word,
            }
            yield ActiveCondition(FAILING, subject, Level.WARNING, title, status.sentence, *place)
        if row.expires_at is not None and row.expires_at < soon:
            has_expired = row.expires_at <= now
            title = (
                gettext("The credentials of cluster %(cluster)s have expired")
                if has_expired
                else gettext("The credentials of cluster %(cluster)s expire on %(day)s")
            ) % {"cluster": row.cluster, "day": row.expires_at.date()}
            level = Level.ERROR if has_expired else Level.WARNING
            yield ActiveCondition(EXPIRING, subject, level, title, "", *place)


def _duplicate_pod_cidrs(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield clusters in which a sync run found two nodes that list the same block."""
    rows = Finding.objects.filter(code=_DUPLICATE_POD_CIDR).values("cluster_id", "cluster__name")
    for row in rows.annotate(count=Count("pk")).order_by("cluster_id")[:_MOST]:
        title = ngettext(
            "%(count)s PodCIDR used twice in cluster %(cluster)s",
            "%(count)s PodCIDRs used twice in cluster %(cluster)s",
            row["count"],
        ) % {"count": row["count"], "cluster": row["cluster__name"]}
        yield ActiveCondition(
            DUPLICATE,
            f"cluster/{row['cluster_id']}/pod-cidrs",
            Level.ERROR,
            title,
            gettext("Two nodes list the same block."),
            f"/admin/pools/finding/?cluster={row['cluster_id']}",
        )


def _findings(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield clusters with findings that have no condition of their own."""
    rows = Finding.objects.exclude(code=_DUPLICATE_POD_CIDR).values("cluster_id", "cluster__name")
    counted = rows.annotate(count=Count("pk"), errors=Count("pk", filter=Q(severity="error")))
    for row in counted.order_by("cluster_id")[:_MOST]:
        title = ngettext(
            "%(count)s finding in cluster %(cluster)s",
            "%(count)s findings in cluster %(cluster)s",
            row["count"],
        ) % {"count": row["count"], "cluster": row["cluster__name"]}
        detail = ngettext(
            "%(count)s of them is an error.", "%(count)s of them are errors.", row["errors"]
        ) % {"count": row["errors"]}
        yield ActiveCondition(
            FINDINGS,
            f"cluster/{row['cluster_id']}",
            Level.ERROR if row["errors"] else Level.WARNING,
            title,
            detail if row["errors"] else "",
            f"/admin/pools/finding/?cluster={row['cluster_id']}",
            findings_cause(row["cluster_id"]),
        )


def _other_writers(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the managed resources that another controller of the cluster writes, too."""
    rows = Finding.objects.filter(code=other_writers.FOUND).select_related("cluster")
    for row in rows.order_by("cluster_id", "subject")[:_MOST]:
        yield ActiveCondition(
            FINDINGS,
            f"cluster/{row.cluster_id}/{row.subject}",
            Level.ERROR,
            gettext("Two controllers write %(resource)s in cluster %(cluster)s")
            % {"resource": row.subject, "cluster": row.cluster},
            row.message,
            f"/admin/pools/finding/?cluster={row.cluster_id}",
            findings_cause(row.cluster_id),
        )


def findings_cause(cluster_id: int) -> str:
    """Return the cause of what the findings of a cluster report."""
    return f"cluster/{cluster_id}/findings"


def _drift(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield clusters whose objects differ from the register, and fields that another manager owns."""
    differences = Drift.objects.filter(ignored_at=None)
    rows = differences.exclude(conflict_code=FieldConflict.code)
    rows_by_cluster = rows.order_by("cluster_id").values("cluster_id", "cluster__name")
    for cluster in rows_by_cluster.annotate(count=Count("pk"))[:_MOST]:
        pk = cluster["cluster_id"]
        title = ngettext(
            "%(count)s field differs between the register and cluster %(cluster)s",
            "%(count)s fields differ between the register and cluster %(cluster)s",
            cluster["count"],
        ) % {"count": cluster["count"], "cluster": cluster["cluster__name"]}
        yield ActiveCondition(
            DRIFT,
            f"cluster/{pk}",
            Level.WARNING,
            title,
            url=f"/admin/pools/drift/?cluster={pk}",
            cause=f"cluster/{pk}/drift",
        )
    conflicts = differences.filter(conflict_code=FieldConflict.code).select_related("cluster")
    for row in conflicts.order_by("since", "pk")[:_MOST]:
        title = gettext(
            "%(field)s of %(kind)s %(name)s in cluster %(cluster)s is owned by another manager"
        ) % {"field": row.path, "kind": row.kind, "name": row.name, "cluster": row.cluster}
        detail = gettext("Owner: %(managers)s. Change the value there, or take the field over.") % {
            "managers": ", ".join(map(str, row.managers)) or gettext("unknown")
        }
        yield ActiveCondition(
            CONFLICT,
            f"drift/{row.pk}",
            Level.WARNING,
            title,
            detail,
            f"/admin/pools/drift/{row.pk}/change/",
            f"cluster/{row.cluster_id}/drift",
        )


def _leaked_blocks(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    rows = Leak.objects.filter(confirmed_at__isnull=False).values("cluster_id", "cluster__name")
    for row in rows.annotate(count=Count("pk")).order_by("cluster_id")[:_MOST]:
        title = ngettext(
            "%(count)s block leaked in cluster %(cluster)s",
            "%(count)s blocks leaked in cluster %(cluster)s",
            row["count"],
        ) % {"count": row["count"], "cluster": row["cluster__name"]}
        yield ActiveCondition(
            LEAKED,
            f"cluster/{row['cluster_id']}",
            Level.WARNING,
            title,
            gettext("Holders missing from the last 2 full syncs."),
            f"/admin/pools/leak/?state=leaked&cluster={row['cluster_id']}",
        )


ALL = (
    Condition({STALE: "IpamClusterStale"}, _stale_clusters),
    Condition({FAILING: "IpamClusterStale", EXPIRING: "IpamClusterStale"}, _failing_connections),
    Condition({DUPLICATE: "IpamDuplicateAddress"}, _duplicate_pod_cidrs),
    Condition({FINDINGS: "IpamClusterFindings"}, _findings),
    Condition({FINDINGS: "IpamClusterFindings"}, _other_writers),
    Condition({DRIFT: "IpamClusterDrift", CONFLICT: "IpamClusterDrift"}, _drift),
    Condition({LEAKED: "IpamLeakGrowing"}, _leaked_blocks),
)
