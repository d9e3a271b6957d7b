"""Conditions of clusters, environments and the register itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Count, Q

from pools.clusters.reconcile import leases
from pools.models import Connection, Environment, Finding, Leak, Recovery
from pools.models.alerts import Level
from pools.models.audit import AuditVerification
from pools.platform import database, scheduler
from pools.platform.checks import reports
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels

STALE = "cluster_stale"
DUPLICATE = "duplicate_address"
LEAKED = "leaked_blocks"
DEGRADED = "environment_degraded"
SCHEDULER = "scheduler_stopped"
VIOLATIONS = "check_violations"
CHAIN = "audit_chain_broken"
RECOVERING = "recovery_active"

HOPELESS = 6  # consecutive failures after which a cluster that was never reached is reported
_MOST = 1000  # subjects of one condition


def _stale_clusters(_known: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield clusters whose full sync run is overdue by more than IPAM_ALERT_STALE_SECONDS."""
    now = database.now()
    overdue = timedelta(seconds=settings.IPAM_ALERT_STALE_SECONDS)
    silent = Q(succeeded_at__lt=now - timedelta(seconds=leases.FULL_EVERY) - overdue)
    never = Q(succeeded_at=None) & (Q(due_at__lt=now - overdue) | Q(failures__gte=HOPELESS))
    rows = Connection.objects.filter(silent | never, paused=False).order_by("cluster_id")
    for pk, name, succeeded_at, error in rows.values_list(
        "cluster_id", "cluster__name", "succeeded_at", "error"
    )[:_MOST]:
        since = f"since {succeeded_at:%Y-%m-%d %H:%M} UTC" if succeeded_at else "yet"
        detail = f"No full sync run has succeeded {since}. {error or 'No error was reported.'}"
        url = f"/admin/pools/cluster/{pk}/change/"
        title = f"The data of cluster {name} is stale"
        yield ActiveCondition(STALE, f"cluster/{pk}", Level.ERROR, title, detail, url)


def _duplicate_pod_cidrs(_known: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield clusters in which a sync run found two nodes that list the same block."""
    rows = Finding.objects.filter(code="pod_cidr_overlap").values("cluster_id", "cluster__name")
    for row in rows.annotate(count=Count("pk")).order_by("cluster_id")[:_MOST]:
        title = f"{_count_of(row['count'], 'PodCIDR')} used twice in cluster {row['cluster__name']}"
        url = f"/admin/pools/finding/?cluster={row['cluster_id']}"
        subject = f"cluster/{row['cluster_id']}/pod-cidrs"
        yield ActiveCondition(
            DUPLICATE, subject, Level.ERROR, title, "Two nodes list the same block.", url
        )


def _leaked_blocks(_known: OpenLevels) -> Iterator[ActiveCondition]:
    rows = Leak.objects.filter(confirmed_at__isnull=False).values("cluster_id", "cluster__name")
    for row in rows.annotate(count=Count("pk")).order_by("cluster_id")[:_MOST]:
        title = f"{_count_of(row['count'], 'block')} leaked in cluster {row['cluster__name']}"
        detail = "Two complete observations did not contain their holders."
        url = f"/admin/pools/leak/?cluster={row['cluster_id']}"
        yield ActiveCondition(
            LEAKED, f"cluster/{row['cluster_id']}", Level.WARNING, title, detail, url
        )


def _degraded_environments(_known: OpenLevels) -> Iterator[ActiveCondition]:
    rows = Environment.objects.exclude(degraded_since=None).select_related("cluster")
    # The oldest first, so that with more than _MOST environments the open alerts stay open.
    for environment in rows.order_by("degraded_since", "pk")[:_MOST]:
        title = (
            f"Environment {environment} in cluster {environment.cluster}: address allocation failed"
        )
        url = f"/admin/pools/environment/{environment.pk}/change/"
        yield ActiveCondition(
            DEGRADED, f"environment/{environment.pk}", Level.ERROR, title, environment.message, url
        )


def _stopped_scheduler(_known: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the condition of a stopped scheduler; `manage.py watch` evaluates it too."""
    silence = scheduler.seconds_since_tick()
    if silence is not None and silence > scheduler.MOST_SILENCE:
        detail = (
            "Beat or the worker of the queue ipam.default is not running:"
            f" no tick for {int(silence)} s."
        )
        title = "The scheduler has stopped"
        yield ActiveCondition(SCHEDULER, "scheduler", Level.ERROR, title, detail)


def _check_violations(_known: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the violations of the last run of each check, without the repaired ones."""
    count = reports.count_violations()
    if count:
        title = f"Integrity checks found {_count_of(count, 'violation')}"
        detail = "Run `manage.py ipam check` for details."
        yield ActiveCondition(
            VIOLATIONS, "register", Level.ERROR, title, detail, "/admin/pools/checkrun/"
        )


def _broken_audit_chain(_known: OpenLevels) -> Iterator[ActiveCondition]:
    last = AuditVerification.objects.order_by("-pk").first()
    if last and not last.ok:
        detail = "Events were changed or deleted: `manage.py ipam audit verify` shows which ones."
        yield ActiveCondition(CHAIN, "register", Level.ERROR, "The audit chain is broken", detail)


def _active_recovery(_known: OpenLevels) -> Iterator[ActiveCondition]:
    recovery = Recovery.objects.filter(ended_at=None).first()
    if recovery:
        detail = f"Since {recovery.since:%Y-%m-%d %H:%M} UTC: {recovery.reason}"
        title = "Recovery mode: allocations are stopped"
        yield ActiveCondition(RECOVERING, "register", Level.WARNING, title, detail)


def _count_of(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


ALL = (
    Condition((STALE,), _stale_clusters),
    Condition((DUPLICATE,), _duplicate_pod_cidrs),
    Condition((LEAKED,), _leaked_blocks),
    Condition((DEGRADED,), _degraded_environments),
    Condition((SCHEDULER,), _stopped_scheduler),
    Condition((VIOLATIONS,), _check_violations),
    Condition((CHAIN,), _broken_audit_chain),
    Condition((RECOVERING,), _active_recovery),
)
