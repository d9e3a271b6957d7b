"""Conditions of pools: utilization, forecasts, refused and waiting allocations, draining and overlapping CIDRs.

The conditions of a pool, and of the environments that it refused, have one cause: they are one problem.
"""

import functools
from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Count
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.core.forecast import ForecastState, whole_percent
from pools.models import AllocationRequest, Environment, Level, Pool, PoolCIDR, RequestState
from pools.platform import database
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.register import orphans, overlaps, usage
from pools.register.utilization import forecasts
from pools.sql import statements

NEARLY_FULL = "pool_nearly_full"
COOLING = "cooldown_queue_long"
FULL_SOON = "pool_full_soon"
FAILING = "allocation_failing"
WAITING = "requests_waiting"
DEGRADED = "environment_degraded"
DRAINING = "cidr_draining"
OVERLAPPING = "cidrs_overlapping"

_BATCH = 500  # pools that are counted by one statement
_NEWEST = 5000  # newest refusals that are read
_MOST = 1000  # subjects of one condition


def cause(pool_id: int | None) -> str:
    """Return the cause that all conditions of a pool have; "" without a pool."""
    return f"pool/{pool_id}" if pool_id else ""


def _url(pool_id: int) -> str:
    return f"/admin/pools/pool/{pool_id}/change/"


def _utilization_conditions(active_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the conditions of pools above a threshold (rule `full-pools-raise-alerts`)."""
    rows = Pool.objects.filter(orphaned_at=None).select_related("cluster").order_by("pk")
    last = 0
    while pools := list(rows.filter(pk__gt=last)[:_BATCH]):
        last = pools[-1].pk
        usages = usage.usage_by_pool(pools)
        for pool in pools:
            families = usages[pool.pk]
            for family, family_usage in families.items():
                if family_usage.used + family_usage.free:
                    name = f"{pool} (IPv{family})" if len(families) > 1 else str(pool)
                    yield from _pool_conditions(pool.pk, family, name, family_usage, active_levels)


def _pool_conditions(
    pool_id: int, family: int, name: str, family_usage: usage.Usage, active_levels: OpenLevels
) -> Iterator[ActiveCondition]:
    subject = f"pool/{pool_id}/ipv{family}"
    allocatable = family_usage.used + family_usage.free
    percent = 100 * family_usage.ratio
    if level := _level(percent, active_levels.get((NEARLY_FULL, subject))):
        title = (
            gettext("Pool %(pool)s is %(percent)s %% full")
            if family_usage.free
            else gettext("Pool %(pool)s is exhausted")
        ) % {"pool": name, "percent": family_usage.percent}
        detail = gettext(
            "%(used)s of %(all)s blocks are in use (%(percent)s %%), %(free)s are free."
        ) % {
            "used": family_usage.used,
            "all": allocatable,
            "percent": family_usage.percent,
            "free": family_usage.free,
        }
        yield ActiveCondition(
            NEARLY_FULL, subject, level, title, detail, _url(pool_id), cause(pool_id)
        )
    if _has_long_cooldown_queue(family_usage, (COOLING, subject) in active_levels):
        title = gettext("%(percent)s %% of pool %(pool)s is in cooldown") % {
            "percent": whole_percent(family_usage.cooling / allocatable),
            "pool": name,
        }
        detail = gettext("%(cooling)s blocks are in cooldown, only %(free)s are free.") % {
            "cooling": family_usage.cooling,
            "free": family_usage.free,
        }
        yield ActiveCondition(
            COOLING, subject, Level.WARNING, title, detail, _url(pool_id), cause(pool_id)
        )


def _level(percent: float, before: Level | None) -> Level | None:
    """Return the level of a utilization; an active level ends below its threshold."""
    steady = settings.IPAM_ALERT_STEADY_PERCENT
    error = settings.IPAM_ALERT_ERROR_PERCENT - (steady if before == Level.ERROR else 0)
    warning = settings.IPAM_ALERT_WARNING_PERCENT - (steady if before else 0)
    if percent > error:
        return Level.ERROR
    return Level.WARNING if percent > warning else None


def _has_long_cooldown_queue(family_usage: usage.Usage, before: bool) -> bool:
    """Return True if more blocks cool than are free, and they are a relevant share of the pool."""
    least = settings.IPAM_ALERT_COOLING_PERCENT
    if before:
        least -= settings.IPAM_ALERT_STEADY_PERCENT
    return family_usage.cooling > family_usage.free and 100 * family_usage.cooling > least * (
        family_usage.used + family_usage.free
    )


def _forecast_conditions(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the pools that are forecast to be exhausted soon."""
    rows = forecasts.forecasts_within(settings.IPAM_ALERT_FORECAST_DAYS)
    today = database.now().date()
    for row in rows.exclude(state=ForecastState.FULL)[:_MOST]:
        forecast = forecasts.to_dated(row)
        summary = forecasts.summarize(forecast, today=today)
        interval = forecasts.describe_range(forecast.earliest, forecast.latest, today)
        yield ActiveCondition(
            FULL_SOON,
            f"pool/{row.pool_id}/ipv{row.family}",
            Level.WARNING,
            gettext("Forecast for %(pool)s: %(forecast)s")
            % {"pool": row.pool, "forecast": summary},
            f"{interval[:1].upper()}{interval[1:]}.",
            _url(row.pool_id),
            cause(row.pool_id),
        )


def _refusal_conditions(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    recent = settings.IPAM_ALERT_REFUSAL_SECONDS
    for pool_id, name, count, message in database.rows(
        _POOLS_WITH_REFUSALS, {"newest": _NEWEST, "recent": recent}
    ):
        detail = ngettext(
            "An allocation was refused within %(minutes)s minutes: %(message)s",
            "%(count)s allocations were refused within %(minutes)s minutes, the last one: %(message)s",
            count,
        ) % {"count": count, "minutes": recent // 60, "message": message}
        yield ActiveCondition(
            FAILING,
            f"pool/{pool_id}",
            Level.ERROR,
            gettext("Pool %(pool)s refuses allocations") % {"pool": name},
            detail,
            _url(pool_id),
            cause(pool_id),
        )


_POOLS_WITH_REFUSALS = statements.read("pools/pools_with_refusals")


def _waiting_conditions(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    pending = AllocationRequest.objects.filter(state=RequestState.PENDING)
    rows = pending.order_by("pool_id").values(
        "pool_id", "pool__name", "pool__cluster_id", "pool__cluster__name"
    )
    for row in rows.annotate(count=Count("pk"))[:_MOST]:
        title = ngettext(
            "%(count)s request is waiting for free blocks in %(pool)s",
            "%(count)s requests are waiting for free blocks in %(pool)s",
            row["count"],
        ) % {"count": row["count"], "pool": f"{row['pool__cluster__name']}/{row['pool__name']}"}
        yield ActiveCondition(
            WAITING,
            f"pool/{row['pool_id']}",
            Level.WARNING,
            title,
            url=f"/admin/pools/allocationrequest/?state=pending&cluster={row['pool__cluster_id']}",
            cause=cause(row["pool_id"]),
        )


def _degraded_environments(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    rows = Environment.objects.exclude(degraded_since=None).select_related("cluster")
    # The oldest first, so that with more than _MOST environments the open alerts stay open.
    for environment in rows.order_by("degraded_since", "pk")[:_MOST]:
        title = gettext(
            "Environment %(environment)s in cluster %(cluster)s: address allocation failed"
        ) % {"environment": environment, "cluster": environment.cluster}
        yield ActiveCondition(
            DEGRADED,
            f"environment/{environment.pk}",
            Level.ERROR,
            title,
            environment.message,
            f"/admin/pools/environment/{environment.pk}/change/",
            cause(environment.refusing_pool_id),
        )


def _draining_conditions(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    cidrs_by_pool: dict[Pool, list[PoolCIDR]] = defaultdict(list)
    for cidr in orphans.draining_cidrs():
        cidrs_by_pool[cidr.pool].append(cidr)
    for pool, cidrs in cidrs_by_pool.items():
        title = ngettext(
            "%(cidrs)s of %(pool)s is draining", "%(cidrs)s of %(pool)s are draining", len(cidrs)
        ) % {"cidrs": ", ".join(map(str, cidrs)), "pool": pool}
        yield ActiveCondition(
            DRAINING,
            f"pool/{pool.pk}",
            Level.INFO,
            title,
            gettext("Fully reserved; waiting for the remaining blocks to be released."),
            f"/admin/pools/pool/{pool.pk}/migrations/?{urlencode({'cidr': cidrs[0].cidr})}",
            cause(pool.pk),
        )


@functools.lru_cache(maxsize=1)
def _count_overlaps(_fingerprint: tuple[object, ...]) -> tuple[int, int, bool]:
    """Return the number of overlaps and of their clusters, and whether one is inside a cluster.

    Compares all networks of the fleet: once for each state of them in each process, not every 30 seconds.
    """
    all_overlaps = [
        overlap
        for overlap in overlaps.find_overlaps()
        if overlap.severity is not overlaps.OverlapSeverity.INFO
    ]
    clusters = {name for overlap in all_overlaps for name in overlap.clusters}
    return len(all_overlaps), len(clusters), any(overlap.clashes for overlap in all_overlaps)


def _overlapping_conditions(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield one condition for all overlaps but those that are information only."""
    number, clusters, is_clash = _count_overlaps(overlaps.fingerprint())
    if not number:
        return
    title = ngettext("%(count)s overlapping CIDR", "%(count)s overlapping CIDRs", number) % {
        "count": number
    }
    detail = ngettext("In one cluster.", "In %(count)s clusters.", clusters) % {"count": clusters}
    level = Level.WARNING if is_clash else Level.INFO
    yield ActiveCondition(
        OVERLAPPING, "register", level, title, detail, "/admin/address-plan/?overlaps=all"
    )


ALL = (
    Condition(
        {NEARLY_FULL: "IpamPoolNearlyFull", COOLING: "IpamCooldownExhaustion"},
        _utilization_conditions,
    ),
    Condition({FULL_SOON: "IpamPoolFullWithinDay"}, _forecast_conditions),
    Condition({FAILING: "IpamAllocationFailing"}, _refusal_conditions),
    Condition({WAITING: "IpamAllocationFailing"}, _waiting_conditions),
    Condition({DEGRADED: "IpamAllocationFailing"}, _degraded_environments),
    Condition(
        {DRAINING: "IpamCIDRDraining"}, _draining_conditions, labels={DRAINING: _("CIDR draining")}
    ),
    Condition(
        {OVERLAPPING: "IpamCIDRsOverlapping"},
        _overlapping_conditions,
        labels={OVERLAPPING: _("CIDRs overlapping")},
    ),
)
