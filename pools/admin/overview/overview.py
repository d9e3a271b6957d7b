"""The start page: open conditions, utilization of pools, queues and the latest events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from pools.admin import alerts as alert_pages, find
from pools.admin.overview import alerts, checklist, pool_summary, timeline
from pools.admin.overview.pool_summary import MeasuredPool
from pools.admin.pools import usage_bars
from pools.models import Event, Pool
from pools.platform.admin.charts import Chart
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
            "alerts": alerts.overview_alerts(request),
            **checklist.context(request),
        }
    summary = pool_summary.summarize()
    failures = queues.recent_refusals()
    clusters = pool_summary.cluster_summaries(summary.pools)
    return {
        **frame,
        "clusters": len(clusters),
        "pools": len(summary.pools),
        "counted_at": summary.counted_at,
        "alerts": alerts.overview_alerts(request),
        **checklist.context(request),
        **alert_pages.scheduler_context(),
        "categories": pool_summary.category_summaries(summary.pools),
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
