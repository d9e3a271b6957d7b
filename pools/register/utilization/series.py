"""Present and past utilization, read from daily samples: the cost does not depend on the blocks."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Max, Q, QuerySet, Sum

from pools.models import Pool, Sample, SampleSum
from pools.platform import database
from pools.register import usage
from pools.register.utilization import samples

LIVE_BLOCKS = 50_000  # blocks in use; with more, the newest samples are shown instead of a count
LIVE_POOLS = 200
POINTS = 92  # maximum of a chart; with more days, each point stands for several days

Key = tuple[str, str]  # (organization of an environment, name)


@dataclass(frozen=True)
class MeasuredPools:
    """All pools with their usages; `moment` is the time of the count, None if counted just now."""

    pools: Sequence[tuple[Pool, dict[int, usage.Usage]]]
    moment: datetime | None = None


@dataclass(frozen=True)
class TenantUsage:
    """The blocks in use of a category, cluster, organization or environment; `rest`: all smaller ones."""

    org: str
    name: str
    held: int
    cooling: int
    members: int = 1
    rest: bool = False

    @property
    def used(self) -> int:
        return self.held + self.cooling


def measure_pools() -> MeasuredPools:
    """Return all pools with counts of now, or with the newest samples if the register is large.

    The pools of a large register are read with their names and category only; other fields of one take a query.
    """
    newest = _newest(Sample.objects.all())
    blocks = newest.aggregate(used=Sum("held") + Sum("cooling"))["used"] or 0
    pools = Pool.objects.select_related("cluster")
    if blocks <= LIVE_BLOCKS and pools.count() <= LIVE_POOLS:
        usages = usage.usage_by_pool(pools)
        return MeasuredPools([(pool, usages[pool.pk]) for pool in pools])
    sampled: dict[int, dict[int, usage.Usage]] = defaultdict(dict)
    moment: datetime | None = None
    waiting = usage.waiting_pools()
    for pool_id, family, capacity, held, cooling, reserved, taken_at in newest.values_list(
        "pool_id", "family", "capacity", "held", "cooling", "reserved", "taken_at"
    ).order_by("family"):
        pending = int(reserved) if (pool_id, family) in waiting else 0
        sampled[pool_id][family] = usage.Usage(
            int(capacity), held, cooling, int(reserved), pending=pending
        )
        moment = taken_at
    # Pools without a sample are new: they are few, and empty or nearly so.
    new_ids = set(pools.order_by().values_list("pk", flat=True)) - sampled.keys()
    sampled.update(usage.usage_by_pool(pools.filter(pk__in=sorted(new_ids)[:LIVE_POOLS])))
    named = pools.only("cluster", "name", "category", "cluster__name", *usage.FIELDS)
    return MeasuredPools([(pool, sampled[pool.pk]) for pool in named if pool.pk in sampled], moment)


def usage_by(dimension: str) -> tuple[list[TenantUsage], datetime | None]:
    """Return (blocks in use of both families by a dimension, time of the count), most first.

    At most some hundred rows; smaller organizations and environments share the last one.
    """
    rows = _newest(SampleSum.objects.filter(by=dimension)).order_by().values("org", "name", "rest")
    counted = list(
        rows.annotate(h=Sum("held"), c=Sum("cooling"), m=Max("members"), at=Max("taken_at"))
    )
    entries = [
        TenantUsage(row["org"], row["name"], row["h"], row["c"], row["m"], row["rest"])
        for row in counted
    ]
    entries.sort(key=lambda entry: (entry.rest, -entry.used, entry.org, entry.name))
    return entries, max((row["at"] for row in counted), default=None)


def _newest(rows: QuerySet[Sample] | QuerySet[SampleSum]) -> QuerySet:  # type: ignore[type-arg]
    return rows.filter(day=rows.order_by().aggregate(day=Max("day"))["day"])


# --- over time ------------------------------------------------------------------------------------


def chart_days(days: int) -> list[date]:
    """Return the days of a chart of the last `days` days, oldest first, at most POINTS."""
    today = database.now().date()
    step = -(-days // POINTS)
    return [today - timedelta(days=ago) for ago in range(0, days, step)][::-1]


def used_over_time(
    dimension: str, names: Collection[Key], days: Sequence[date]
) -> dict[Key | None, dict[date, int]]:
    """Return blocks in use by name and day; the key None has the sum of all other names."""
    rows = SampleSum.objects.filter(by=dimension, day__in=days).order_by()
    chosen = Q(pk__in=[])
    for org, name in names:
        chosen |= Q(org=org, name=name, rest=False)
    series: dict[Key | None, dict[date, int]] = {key: {} for key in [*names, None]}
    for row in rows.values("day").annotate(used=Sum("held") + Sum("cooling")):
        series[None][row["day"]] = row["used"]
    for row in (
        rows.filter(chosen).values("day", "org", "name").annotate(used=Sum("held") + Sum("cooling"))
    ):
        series[row["org"], row["name"]][row["day"]] = row["used"]
        series[None][row["day"]] -= row["used"]
    return series


def ratios_over_time(days: Sequence[date]) -> dict[tuple[str, int], dict[date, float]]:
    """Return the used share of the allocatable blocks (0 to 1) by (category, family) and day."""
    ratios: dict[tuple[str, int], dict[date, float]] = defaultdict(dict)
    for row in SampleSum.objects.filter(by=SampleSum.By.CATEGORY, day__in=days):
        ratios[row.name, row.family][row.day] = samples.to_usage(row).ratio
    return ratios


def pool_usage_over_time(pool_id: int, days: Sequence[date]) -> dict[int, dict[date, usage.Usage]]:
    """Return the usages of a pool by family and day."""
    usages: dict[int, dict[date, usage.Usage]] = defaultdict(dict)
    for row in Sample.objects.filter(pool_id=pool_id, day__in=days).order_by("family", "day"):
        usages[row.family][row.day] = samples.to_usage(row)
    return usages
