"""The start page: is anything wrong, and where is room?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString

from pools.admin import find
from pools.admin.overview import attention, pool_summary, timeline
from pools.admin.overview.attention import Attention
from pools.admin.overview.pool_summary import Measured, Register
from pools.admin.pools import attention as pool_attention
from pools.admin.pools import forecasts as pool_forecasts
from pools.models import Cluster, Event, Pool
from pools.platform.admin.charts import Chart
from pools.register.allocator import queues
from pools.register.utilization import forecasts, series

FULLEST = 8
CLUSTERS = 8
TENANTS = 6
COOLING = 6  # pools, those with the longest queues
REFUSING = 6  # pools and reasons


# What a user begins with who may not see the pools.
StartPage = Callable[[HttpRequest], Iterable[find.Section]]
START_PAGES: list[StartPage] = []  # filled by pools.extension


@dataclass(frozen=True)
class Tenants:
    """The largest organisations or environments and the sum of all others."""

    title: str
    rows: Sequence[tuple[str, series.TenantUsage, float]]  # name, counts, share of all in use
    others: int  # blocks in use
    at: datetime | None


@dataclass(frozen=True)
class Cooldowns:
    """The blocks that wait until they may be handed out again."""

    total: int
    ending: Sequence[queues.CooldownEnds]
    pools: Sequence[tuple[Measured, datetime | None]]  # when its next one ends


@dataclass(frozen=True)
class Refusals:
    """Allocations that were refused within a day."""

    found: queues.RecentRefusals
    chart: Chart | None
    rows: Sequence[tuple[Pool | None, str, int]]  # pool (None: it is gone), reason, how many


def context(request: HttpRequest, frame: dict[str, Any]) -> dict[str, Any]:
    """What the template of the start page shows."""
    if not request.user.has_perm("pools.view_pool"):
        sections = [one for page in START_PAGES for one in page(request)]
        return {**frame, "sections": sections, "forbidden": not sections}
    if not Pool.objects.exists():
        return {
            **frame,
            "empty": True,
            "clusters": Cluster.objects.count(),
            "attention": [],
        }
    register = pool_summary.register()
    failures = queues.recent_refusals()
    clusters = pool_summary.by_cluster(register.pools)
    return {
        **frame,
        "clusters": len(clusters),
        "pools": len(register.pools),
        "counted_at": register.at,
        "attention": list(_attention(request, register, failures)),
        "categories": pool_summary.by_category(register.pools),
        "by_cluster": clusters[:CLUSTERS],
        "tenants": list(_tenants(request)),
        "fullest": _fullest(register.pools),
        "cooldowns": _cooldowns(register.pools),
        "refusals": _refusals(failures, register.pools),
        "events": Event.objects.order_by("-id")[:10],
        **timeline.sections(request),
    }


def _attention(
    request: HttpRequest, register: Register, failures: queues.RecentRefusals
) -> Iterator[Attention]:
    if request.user.has_perm("pools.view_connection"):
        yield from attention.of_clusters()
    for source in attention.SOURCES:
        yield from source(request)
    yield from pool_attention.lines(register, failures)


def _fullest(pools: Sequence[Measured]) -> list[tuple[Measured, SafeString]]:
    """With what is forecast of them."""
    chosen = sorted(pools, key=lambda one: -one.ratio)[:FULLEST]
    told = forecasts.stored_forecasts(one.pool.pk for one in chosen)
    return [(one, pool_forecasts.column(told.get(one.pool.pk, {}))) for one in chosen]


def _tenants(request: HttpRequest) -> Iterator[Tenants]:
    if not request.user.has_perm("pools.view_environment"):
        return
    for by, title in (("org", "organisation"), ("env", "environment")):
        found, at = series.usage_by(by)
        total = sum(one.used for one in found) or 1
        chosen = [one for one in found if not one.rest][:TENANTS]
        rows = [
            (timeline.name_of(by, (one.org, one.name)), one, one.used / total) for one in chosen
        ]
        others = sum(one.used for one in found) - sum(one.used for one in chosen)
        yield Tenants(f"In use by {title}", rows, others, at)


def _cooldowns(pools: Sequence[Measured]) -> Cooldowns:
    chosen = sorted((one for one in pools if one.cooling), key=lambda one: -one.cooling)[:COOLING]
    following = queues.next_cooldown_ends([one.pool.pk for one in chosen])
    return Cooldowns(
        sum(one.cooling for one in pools),
        queues.count_cooldown_ends() if chosen else [],
        [(one, following.get(one.pool.pk)) for one in chosen],
    )


def _refusals(failures: queues.RecentRefusals, pools: Sequence[Measured]) -> Refusals:
    by_id = {one.pool.pk: one.pool for one in pools}
    counts: Counter[tuple[int, str]] = Counter()
    for one in failures.rows:
        counts[one.pool_id, one.code] += one.count
    rows = [
        (by_id.get(pool_id), code, count) for (pool_id, code), count in counts.most_common(REFUSING)
    ]
    return Refusals(failures, timeline.failed(failures) if rows else None, rows)
