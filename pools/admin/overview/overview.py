"""The start page: open conditions, utilization of pools with sums by category and cluster, queues and the latest events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from pools.admin import alerts as alert_pages, find
from pools.admin.overview import checklist, timeline
from pools.admin.pools import page, usage_bars
from pools.core import addresses
from pools.models import Alert, Category, Cluster, Event, Level, Pool
from pools.platform.admin.charts import Chart
from pools.platform.alerts import open_alerts
from pools.platform.alerts.open_alerts import AlertGroup
from pools.platform.conditions import registry
from pools.register import orphans, usage
from pools.register.allocator import queues
from pools.register.utilization import forecasts, series

FULLEST = 8
CLUSTERS = 8
TENANTS = 6
COOLING = 6  # pools, those with the longest queues
REFUSING = 6  # pools and reasons


# Sections of the start page for users who may not view pools.
StartPage = Callable[[HttpRequest], Iterable[find.Section]]
START_PAGES: list[StartPage] = []  # filled by pools.extension


@dataclass(frozen=True)
class Tenants:
    """The organizations or environments with the most used blocks, and the sum of the others."""

    title: str
    rows: Sequence[tuple[str, series.TenantUsage, float]]  # name, counts, share of all used blocks
    rest: int  # blocks in use
    counted_at: datetime | None


@dataclass(frozen=True)
class Cooldowns:
    """Blocks in cooldown: their number, when they become available, and the pools with most of them."""

    total: int
    ending: Sequence[queues.CooldownEnds]
    pools: Sequence[tuple[MeasuredPool, datetime | None]]  # end of the next cooldown


@dataclass(frozen=True)
class Refusals:
    """Allocations that failed in the last 24 hours."""

    failures: queues.RecentRefusals
    chart: Chart | None
    rows: Sequence[tuple[Pool | None, str, int]]  # pool (None: deleted), reason, count


def context(request: HttpRequest, frame: dict[str, Any]) -> dict[str, Any]:
    """Return the template context of the start page. `frame` is the context of the site's frame."""
    if not request.user.has_perm("pools.view_pool"):
        sections = [section for page in START_PAGES for section in page(request)]
        return {**frame, "sections": sections, "forbidden": not sections}
    if not Pool.objects.exists():
        return {
            **frame,
            "empty": True,
            "alerts": overview_alerts(request),
            **checklist.context(request),
        }
    summary = summarize()
    failures = queues.recent_refusals()
    clusters = cluster_summaries(summary.pools)
    return {
        **frame,
        "clusters": len(clusters),
        "pools": len(summary.pools),
        "counted_at": summary.counted_at,
        "alerts": overview_alerts(request),
        **checklist.context(request),
        **alert_pages.scheduler_context(),
        "categories": category_summaries(summary.pools),
        "by_cluster": clusters[:CLUSTERS],
        "tenants": list(_tenants(request)),
        "fullest": _most_utilized(summary.pools),
        "cooldowns": _cooldowns(summary.pools),
        "refusals": _refusals(failures, summary.pools),
        "events": Event.objects.order_by("-id")[:10],
        **timeline.sections(request),
    }


def _most_utilized(pools: Sequence[MeasuredPool]) -> list[tuple[MeasuredPool, SafeString]]:
    """Return the pools with the highest utilization, each with its forecast."""
    chosen = sorted(pools, key=lambda measured: -measured.ratio)[:FULLEST]
    stored = forecasts.stored_forecasts(measured.pool.pk for measured in chosen)
    return [
        (measured, usage_bars.forecast_lines(stored.get(measured.pool.pk, {})))
        for measured in chosen
    ]


def _tenants(request: HttpRequest) -> Iterator[Tenants]:
    if not request.user.has_perm("pools.view_environment"):
        return
    for dimension, title in (
        ("org", gettext("Used blocks by organization")),
        ("env", gettext("Used blocks by environment")),
    ):
        entries, counted_at = series.usage_by(dimension)
        total = sum(entry.used for entry in entries) or 1
        chosen = [entry for entry in entries if not entry.rest][:TENANTS]
        rows = [
            (timeline.display_name(dimension, (entry.org, entry.name)), entry, entry.used / total)
            for entry in chosen
        ]
        rest = sum(entry.used for entry in entries) - sum(entry.used for entry in chosen)
        yield Tenants(title, rows, rest, counted_at)


def _cooldowns(pools: Sequence[MeasuredPool]) -> Cooldowns:
    chosen = sorted(
        (measured for measured in pools if measured.cooling), key=lambda measured: -measured.cooling
    )[:COOLING]
    following = queues.next_cooldown_ends([measured.pool.pk for measured in chosen])
    return Cooldowns(
        sum(measured.cooling for measured in pools),
        queues.count_cooldown_ends() if chosen else [],
        [(measured, following.get(measured.pool.pk)) for measured in chosen],
    )


def _refusals(failures: queues.RecentRefusals, pools: Sequence[MeasuredPool]) -> Refusals:
    by_id = {measured.pool.pk: measured.pool for measured in pools}
    counts: Counter[tuple[int, str]] = Counter()
    for row in failures.rows:
        counts[row.pool_id, row.code] += row.count
    rows = [
        (by_id.get(pool_id), code, count) for (pool_id, code), count in counts.most_common(REFUSING)
    ]
    return Refusals(failures, timeline.refusal_chart(failures) if rows else None, rows)


@dataclass(frozen=True)
class MeasuredPool:
    """A pool with its usage per IP family and its state; `ratio` is that of the fuller family."""

    pool: Pool
    families: dict[int, usage.Usage]
    state: str
    ratio: float = field(init=False)

    def __post_init__(self) -> None:
        ratio = max((counts.ratio for counts in self.families.values()), default=0.0)
        object.__setattr__(self, "ratio", ratio)

    @property
    def percent(self) -> int:
        """Utilization of the fuller family in percent."""
        return max((counts.percent for counts in self.families.values()), default=0)

    @property
    def cooling(self) -> int:
        return sum(counts.cooling for counts in self.families.values())


@dataclass(frozen=True)
class PoolSummary:
    """All pools; `counted_at` is None if counted just now."""

    pools: Sequence[MeasuredPool]
    counted_at: datetime | None


@dataclass(frozen=True)
class ClusterSummary:
    """The usage of all pools of a cluster, in addresses, and its most utilized pool."""

    cluster: Cluster
    families: dict[int, usage.Usage]
    fullest: MeasuredPool
    pools: int


def summarize() -> PoolSummary:
    """Measure all pools. The cost grows with the number of pools, not of blocks."""
    measurement = series.measure_pools()
    drained = {cidr.pool_id for cidr in orphans.draining_cidrs()}
    pools = [
        MeasuredPool(pool, families, page.pool_state(families, draining=pool.pk in drained))
        for pool, families in measurement.pools
    ]
    return PoolSummary(pools, measurement.moment)


def category_summaries(pools: Iterable[MeasuredPool]) -> list[tuple[str, str, int, usage.Usage]]:
    """Return (category, label, IP family, usage in addresses) for each category that has pools."""
    parts: dict[tuple[str, int], list[usage.Usage]] = defaultdict(list)
    for measured in pools:
        for family in measured.families:
            parts[measured.pool.category, family].append(_in_addresses(measured, family))
    return [
        (str(category), str(category.label), family, _sum(parts[category, family]))
        for category in Category
        for family in (4, 6)
        if (category, family) in parts
    ]


def cluster_summaries(pools: Iterable[MeasuredPool]) -> list[ClusterSummary]:
    """Return a summary per cluster, the one with the most utilized pool first."""
    parts: dict[int, list[MeasuredPool]] = defaultdict(list)
    for measured in pools:
        parts[measured.pool.cluster_id].append(measured)
    summaries = [
        ClusterSummary(
            members[0].pool.cluster,
            {
                family: _sum(
                    [
                        _in_addresses(measured, family)
                        for measured in members
                        if family in measured.families
                    ]
                )
                for family in (4, 6)
                if any(family in measured.families for measured in members)
            },
            max(members, key=lambda measured: measured.ratio),
            len(members),
        )
        for members in parts.values()
    ]
    return sorted(summaries, key=lambda summary: (-summary.fullest.ratio, summary.cluster.name))


def _in_addresses(measured: MeasuredPool, family: int) -> usage.Usage:
    """Return the usage in addresses: pools of other mask sizes have other blocks."""
    length = addresses.LONGEST_PREFIX[family] - (measured.pool.mask_size(family) or 0)
    return measured.families[family].times(1 << length)


def _sum(parts: list[usage.Usage]) -> usage.Usage:
    return usage.Usage(
        capacity=sum(part.capacity for part in parts),
        held=sum(part.held for part in parts),
        cooling=sum(part.cooling for part in parts),
        reserved=sum(part.reserved for part in parts),
        approximate=any(part.approximate for part in parts),
    )


ALERTS_SHOWN = 5  # rows with one condition
OTHERS = 5  # further alerts that a row names


@dataclass(frozen=True)
class AlertRow:
    """One row: the alerts of a cause, and what to do about them."""

    group: AlertGroup
    url: str  # the page about the subject
    runbook: str  # URL, or ""
    action: str = ""
    action_url: str = ""
    needs: str = ""  # the permission that the action requires

    @property
    def others(self) -> Sequence[Alert]:
        return self.group.others[:OTHERS]

    @property
    def more(self) -> int:
        """How many further alerts are not named."""
        return max(0, len(self.group.others) - OTHERS)


@dataclass(frozen=True)
class MoreRows:
    """Rows of one condition that are not shown: their number, and the list that has them."""

    condition: str
    count: int
    url: str


@dataclass
class OverviewAlerts:
    """The rows with errors and warnings, those with information only or acknowledged, and what is left out."""

    urgent: list[AlertRow] = field(default_factory=list)
    info: list[AlertRow] = field(default_factory=list)
    acknowledged: list[AlertRow] = field(default_factory=list)
    more: list[MoreRows] = field(default_factory=list)


def overview_alerts(request: HttpRequest) -> OverviewAlerts | None:
    """Return the rows of the overview; None if the user may not view alerts."""
    if not request.user.has_perm("pools.view_alert"):
        return None
    result, counts = OverviewAlerts(), Counter[str]()
    for group in open_alerts.alert_groups():
        code = group.lead.code
        counts[code] += 1
        if counts[code] <= ALERTS_SHOWN:
            rows = result.info if group.lead.level == Level.INFO else result.urgent
            rows.append(_alert_row(group))
    result.acknowledged = [
        _alert_row(group) for group in open_alerts.alert_groups(acknowledged=True)[:ALERTS_SHOWN]
    ]
    changelist = "admin:pools_alert_changelist"
    result.more = [
        MoreRows(
            registry.words(code),
            count - ALERTS_SHOWN,
            reverse(changelist, query={"open": "true", "code": code}),
        )
        for code, count in counts.items()
        if count > ALERTS_SHOWN
    ]
    return result


def _alert_row(group: AlertGroup) -> AlertRow:
    alert = group.lead
    url = alert.url or reverse("admin:pools_alert_change", args=[alert.pk])
    runbook = registry.runbook(alert.code)
    runbook_url = reverse("admin:runbook", args=[runbook]) if runbook else ""
    kind, _, pk = alert.cause.partition("/")
    if kind == "pool" and alert.level != Level.INFO:
        return AlertRow(
            group,
            url,
            runbook_url,
            gettext("Add a CIDR"),
            reverse("admin:pools_pool_add_cidr", args=[int(pk)]),
            "pools.change_pool",
        )
    return AlertRow(group, url, runbook_url)
