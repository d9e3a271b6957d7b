"""Conditions of clusters, environments and the register itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Count, Q

from pools.clusters.reconcile import leases
from pools.models import Connection, Environment, Finding, Leak, Recovery
from pools.models.audit import AuditVerification
from pools.models.notices import Level
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

HOPELESS = 6  # failures in a row after which a cluster that was never reached is told of
_MOST = 1000  # subjects of one condition that are read


def _stale(_known: OpenLevels) -> Iterator[ActiveCondition]:
    """No full pass since it was due by so many seconds."""
    now = database.now()
    overdue = timedelta(seconds=settings.IPAM_NOTICE_STALE_SECONDS)
    silent = Q(succeeded_at__lt=now - timedelta(seconds=leases.FULL_EVERY) - overdue)
    never = Q(succeeded_at=None) & (Q(due_at__lt=now - overdue) | Q(failures__gte=HOPELESS))
    rows = Connection.objects.filter(silent | never, paused=False).order_by("cluster_id")
    for pk, name, succeeded_at, error in rows.values_list(
        "cluster_id", "cluster__name", "succeeded_at", "error"
    )[:_MOST]:
        since = f"since {succeeded_at:%Y-%m-%d %H:%M} UTC" if succeeded_at else "yet"
        detail = f"No full pass has succeeded {since}. {error or 'None failed either.'}"
        url = f"/admin/pools/cluster/{pk}/change/"
        title = f"The picture of cluster {name} is stale"
        yield ActiveCondition(STALE, f"cluster/{pk}", Level.ERROR, title, detail, url)


def _duplicates(_known: OpenLevels) -> Iterator[ActiveCondition]:
    """Two nodes that list one block, as passes find it."""
    rows = Finding.objects.filter(code="pod_cidr_overlap").values("cluster_id", "cluster__name")
    for row in rows.annotate(count=Count("pk")).order_by("cluster_id")[:_MOST]:
        title = f"{_many(row['count'], 'PodCIDR')} used twice in cluster {row['cluster__name']}"
        url = f"/admin/pools/finding/?cluster={row['cluster_id']}"
        subject = f"cluster/{row['cluster_id']}/pod-cidrs"
        yield ActiveCondition(
            DUPLICATE, subject, Level.ERROR, title, "Two nodes list the same block.", url
        )


def _leaks(_known: OpenLevels) -> Iterator[ActiveCondition]:
    rows = Leak.objects.filter(confirmed_at__isnull=False).values("cluster_id", "cluster__name")
    for row in rows.annotate(count=Count("pk")).order_by("cluster_id")[:_MOST]:
        title = f"{_many(row['count'], 'block')} leaked in cluster {row['cluster__name']}"
        detail = "Two complete observations did not see their holders."
        url = f"/admin/pools/leak/?cluster={row['cluster_id']}"
        yield ActiveCondition(
            LEAKED, f"cluster/{row['cluster_id']}", Level.WARNING, title, detail, url
        )


def _degraded(_known: OpenLevels) -> Iterator[ActiveCondition]:
    rows = Environment.objects.exclude(degraded_since=None).select_related("cluster")
    # The oldest first: of very many, those that were told stay told.
    for environment in rows.order_by("degraded_since", "pk")[:_MOST]:
        title = f"Environment {environment} in cluster {environment.cluster} lacks addresses"
        url = f"/admin/pools/environment/{environment.pk}/change/"
        yield ActiveCondition(
            DEGRADED, f"environment/{environment.pk}", Level.ERROR, title, environment.message, url
        )


def _scheduler(_known: OpenLevels) -> Iterator[ActiveCondition]:
    """Told by whoever is not the scheduler: `manage.py watch` looks, too."""
    silence = scheduler.seconds_since_tick()
    if silence is not None and silence > scheduler.MOST_SILENCE:
        detail = f"Beat or the worker of ipam.default does not run: no tick for {int(silence)} s."
        title = "The scheduler has stopped"
        yield ActiveCondition(SCHEDULER, "scheduler", Level.ERROR, title, detail)


def _violations(_known: OpenLevels) -> Iterator[ActiveCondition]:
    """By the last word on each check, less what was repaired."""
    count = reports.count_violations()
    if count:
        title = f"The checks found {_many(count, 'violation')} of the invariants"
        detail = "`manage.py ipam check` says more."
        yield ActiveCondition(
            VIOLATIONS, "register", Level.ERROR, title, detail, "/admin/pools/checkrun/"
        )


def _chain(_known: OpenLevels) -> Iterator[ActiveCondition]:
    last = AuditVerification.objects.order_by("-pk").first()
    if last and not last.ok:
        detail = "Events were changed or taken away: `manage.py ipam audit verify` says which."
        yield ActiveCondition(
            CHAIN, "register", Level.ERROR, "The chain of the history is broken", detail
        )


def _recovering(_known: OpenLevels) -> Iterator[ActiveCondition]:
    recovery = Recovery.objects.filter(ended_at=None).first()
    if recovery:
        detail = f"Since {recovery.since:%Y-%m-%d %H:%M} UTC: {recovery.reason}"
        yield ActiveCondition(
            RECOVERING, "register", Level.WARNING, "Recovery: nothing is allocated", detail
        )


def _many(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


ALL = (
    Condition((STALE,), _stale),
    Condition((DUPLICATE,), _duplicates),
    Condition((LEAKED,), _leaks),
    Condition((DEGRADED,), _degraded),
    Condition((SCHEDULER,), _scheduler),
    Condition((VIOLATIONS,), _violations),
    Condition((CHAIN,), _chain),
    Condition((RECOVERING,), _recovering),
)
