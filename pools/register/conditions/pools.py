"""Conditions of pools: utilization, long cooldown queues, refused allocations."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from pools.core import shares
from pools.models import Pool
from pools.models.alerts import Level
from pools.platform import database
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.register import usage
from pools.sql import statements

NEARLY_FULL = "pool_nearly_full"
COOLING = "cooldown_queue_long"
FAILING = "allocation_failing"
STEADY = 5  # hysteresis: per cent below a threshold at which a condition ends
COOLING_SHARE = 20  # per cent of the allocatable blocks
RECENT = 300  # seconds; rule `full-pools-raise-alerts`
_BATCH = 500  # pools that are counted by one statement
_NEWEST = 5000  # newest refusals that are read


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
    subject, url = f"pool/{pool_id}/ipv{family}", f"/admin/pools/pool/{pool_id}/change/"
    counts = f"{family_usage.used} of {family_usage.used + family_usage.free} blocks are in use, {family_usage.free} are free."
    percent = 100 * family_usage.ratio
    if level := _level(percent, active_levels.get((NEARLY_FULL, subject))):
        title = f"Pool {name} is {family_usage.percent} % full"
        yield ActiveCondition(NEARLY_FULL, subject, level, title, counts, url)
    if _has_long_cooldown_queue(family_usage, (COOLING, subject) in active_levels):
        share = shares.whole_percent(family_usage.cooling / (family_usage.used + family_usage.free))
        title = f"{share} % of pool {name} is in cooldown"
        detail = (
            f"{family_usage.cooling} blocks are in cooldown, only {family_usage.free} are free."
        )
        yield ActiveCondition(COOLING, subject, Level.WARNING, title, detail, url)


def _level(percent: float, before: Level | None) -> Level | None:
    """Return the level of a utilization; an active level ends STEADY per cent below its threshold."""
    error = settings.IPAM_ALERT_ERROR_PERCENT - (STEADY if before == Level.ERROR else 0)
    warning = settings.IPAM_ALERT_WARNING_PERCENT - (STEADY if before else 0)
    if percent > error:
        return Level.ERROR
    return Level.WARNING if percent > warning else None


def _has_long_cooldown_queue(family_usage: usage.Usage, before: bool) -> bool:
    """Return True if more blocks cool than are free, and they are a relevant share of the pool."""
    least = COOLING_SHARE - (STEADY if before else 0)
    return family_usage.cooling > family_usage.free and 100 * family_usage.cooling > least * (
        family_usage.used + family_usage.free
    )


def _refusal_conditions(_known: OpenLevels) -> Iterator[ActiveCondition]:
    for pool_id, name, count, message in database.rows(
        _POOLS_WITH_REFUSALS, {"newest": _NEWEST, "recent": RECENT}
    ):
        subject = f"{count} allocations were" if count > 1 else "An allocation was"
        yield ActiveCondition(
            FAILING,
            f"pool/{pool_id}",
            Level.ERROR,
            f"Pool {name} refuses allocations",
            f"{subject} refused within {RECENT // 60} minutes, the last one: {message}",
            f"/admin/pools/pool/{pool_id}/change/",
        )


_POOLS_WITH_REFUSALS = statements.read("pools/pools_with_refusals")

ALL = (
    Condition((NEARLY_FULL, COOLING), _utilization_conditions),
    Condition((FAILING,), _refusal_conditions),
)
