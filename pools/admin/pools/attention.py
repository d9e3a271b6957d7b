"""Lines of the needs-attention list about pools, allocations and environments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from pools.admin.overview.attention import SHOWN, Attention
from pools.admin.overview.pool_summary import MeasuredPool, PoolSummary
from pools.admin.pools import forecasts as pool_forecasts
from pools.core.forecast import ForecastState
from pools.models import AllocationRequest, Block, Environment, Pool
from pools.models import blocks as models
from pools.platform.admin import display
from pools.register import overlaps
from pools.register.allocator import queues
from pools.register.utilization import forecasts

ENVIRONMENTS = 5


def lines(summary: PoolSummary, failures: queues.RecentRefusals) -> Iterator[Attention]:
    """Yield the lines about pools and environments, the most urgent first."""
    yield from _exhausted_lines(summary.pools)
    yield from _degraded_lines()
    yield from _forecast_lines()
    yield from _waiting_lines()
    yield from _failure_lines(failures)
    yield from _nearly_full_lines(summary.pools)
    yield from _draining_lines(summary)
    yield from _overlap_lines()
    yield from _cooldown_lines(summary.pools)


def _pool_line(level: str, pool: Pool, text: str, detail: str = "") -> Attention:
    """Return a line whose action is to add a CIDR to the pool."""
    return Attention(
        level,
        text,
        detail,
        display.url_of(pool),
        gettext("Add a CIDR"),
        reverse("admin:pools_pool_add_cidr", args=[pool.pk]),
        needs="pools.change_pool",
    )


def _pool_list_line(level: str, text: str, state: str) -> Attention:
    """Return one line for the pools that have no line of their own."""
    url = reverse("admin:pools_pool_changelist", query={"state": state} if state else {})
    return Attention(level, text, "", url, gettext("Pools"), url)


def _exhausted_lines(pools: Sequence[MeasuredPool]) -> Iterator[Attention]:
    full = [measured for measured in pools if measured.state == "full"]
    for measured in full[:SHOWN]:
        text = gettext("%(pool)s is exhausted") % {"pool": measured.pool}
        yield _pool_line("bad", measured.pool, text)
    more = len(full) - SHOWN
    if more > 0:
        text = ngettext(
            "%(number)s more pool is exhausted", "%(number)s more pools are exhausted", more
        ) % {"number": display.digits(more)}
        yield _pool_list_line("bad", text, "full")


def _nearly_full_lines(pools: Sequence[MeasuredPool]) -> Iterator[Attention]:
    high = [measured for measured in pools if measured.state != "full" and measured.is_nearly_full]
    high.sort(key=lambda measured: -measured.ratio)
    for measured in high[:SHOWN]:
        free = min(counts.free for counts in measured.families.values())
        text = gettext("%(pool)s is %(percent)s %% full") % {
            "pool": measured.pool,
            "percent": measured.percent,
        }
        detail = ngettext("%(number)s block is free.", "%(number)s blocks are free.", free) % {
            "number": display.digits(free)
        }
        yield _pool_line("warn", measured.pool, text, detail)
    more = len(high) - SHOWN
    if more > 0:
        text = ngettext(
            "%(number)s more pool is over %(percent)s %% full",
            "%(number)s more pools are over %(percent)s %% full",
            more,
        ) % {
            "number": display.digits(more),
            "percent": settings.IPAM_ALERT_WARNING_PERCENT,
        }
        yield _pool_list_line("warn", text, "high")


def _forecast_lines() -> Iterator[Attention]:
    rows = forecasts.forecasts_within(forecasts.SOON.days).exclude(state=ForecastState.FULL)
    soonest = list(rows[: SHOWN + 1])
    for row in soonest[:SHOWN]:
        forecast = forecasts.to_dated(row)
        text = gettext("Forecast for %(pool)s: %(forecast)s") % {
            "pool": row.pool,
            "forecast": pool_forecasts.short(forecast),
        }
        yield _pool_line("warn", row.pool, text, f"{pool_forecasts.range_text(forecast)}.")
    if len(soonest) > SHOWN:
        more = rows.count() - SHOWN
        text = ngettext(
            "%(number)s more pool is forecast to be full within %(days)s days",
            "%(number)s more pools are forecast to be full within %(days)s days",
            more,
        ) % {"number": display.digits(more), "days": forecasts.SOON.days}
        yield _pool_list_line("warn", text, "")


def _degraded_lines() -> Iterator[Attention]:
    rows = Environment.objects.exclude(degraded_since=None).select_related("cluster")
    newest = list(rows.order_by("-degraded_since")[: ENVIRONMENTS + 1])
    list_url = reverse("admin:pools_environment_changelist", query={"state": "degraded"})
    for environment in newest[:ENVIRONMENTS]:
        yield Attention(
            "bad",
            gettext("Environment %(environment)s: address allocation failed")
            % {"environment": environment},
            environment.message,
            display.url_of(environment),
            gettext("Environments"),
            list_url,
            environment.degraded_since,
        )
    if len(newest) > ENVIRONMENTS:
        count = rows.count()
        text = ngettext(
            "%(number)s degraded environment", "%(number)s degraded environments", count
        ) % {"number": display.digits(count)}
        yield Attention("bad", text, "", list_url, gettext("All"), list_url)


def _waiting_lines() -> Iterator[Attention]:
    pending = AllocationRequest.objects.filter(state="pending")
    oldest = pending.order_by("id").first()
    if oldest is None:
        return
    count = pending.count()
    url = reverse("admin:pools_allocationrequest_changelist", query={"state": "pending"})
    text = ngettext(
        "%(number)s request is waiting for free blocks",
        "%(number)s requests are waiting for free blocks",
        count,
    ) % {"number": display.digits(count)}
    detail = gettext("Oldest: %(kind)s %(holder)s.") % {
        "kind": oldest.holder_kind,
        "holder": oldest.holder_id,
    }
    yield Attention("warn", text, detail, url, gettext("Requests"), url, oldest.created_at)


def _failure_lines(failures: queues.RecentRefusals) -> Iterator[Attention]:
    if not failures.total:
        return
    url = reverse("admin:pools_event_changelist", query={"type": "failed"})
    text = ngettext(
        "%(number)s allocation failed in the last 24 hours",
        "%(number)s allocations failed in the last 24 hours",
        failures.total,
    ) % {"number": f"{display.digits(failures.total)}{'' if failures.exact else '+'}"}
    newest = min(row.hours_ago for row in failures.rows)
    since = timezone.now() - timedelta(hours=newest)
    yield Attention("warn", text, "", url, gettext("Events"), url, since)


def _draining_lines(summary: PoolSummary) -> Iterator[Attention]:
    full = {measured.pool.pk for measured in summary.pools if measured.state == "full"}
    draining = [cidr for cidr in summary.draining if cidr.pool_id not in full]
    for cidr in draining[:SHOWN]:
        yield Attention(
            "info",
            gettext("%(cidr)s of %(pool)s is draining") % {"cidr": cidr, "pool": cidr.pool},
            gettext("Fully reserved; waiting for the remaining blocks to be released."),
            display.url_of(cidr.pool),
            gettext("Migration"),
            reverse(
                "admin:pools_pool_migrations", args=[cidr.pool_id], query={"cidr": str(cidr.cidr)}
            ),
        )
    more = len({cidr.pool_id for cidr in draining[SHOWN:]})
    if more:
        text = ngettext(
            "%(number)s more pool has a draining CIDR",
            "%(number)s more pools have a draining CIDR",
            more,
        ) % {"number": display.digits(more)}
        yield _pool_list_line("info", text, "draining")


def _overlap_lines() -> Iterator[Attention]:
    all_overlaps = overlaps.find_overlaps()
    if not all_overlaps:
        return
    count = len(all_overlaps)
    text = ngettext("%(number)s overlapping CIDR", "%(number)s overlapping CIDRs", count) % {
        "number": display.digits(count)
    }
    clusters = len({name for overlap in all_overlaps for name in overlap.clusters})
    detail = (
        ngettext("In %(number)s cluster.", "In %(number)s clusters.", clusters)
        % {"number": display.digits(clusters)}
        if clusters > 1
        else gettext("In isolated networks of one cluster.")
    )
    url = reverse("admin:overlaps")
    yield Attention("info", text, detail, url, gettext("Overlaps"), url)


def _cooldown_lines(pools: Sequence[MeasuredPool]) -> Iterator[Attention]:
    count = sum(measured.cooling for measured in pools)
    if not count:
        return
    now = timezone.now()
    rows = Block.objects.filter(state=models.BlockState.COOLING, available_from__gt=now)
    following = rows.order_by("available_from").values_list("available_from", flat=True).first()
    url = reverse("admin:pools_block_changelist", query={"state": "cooling"})
    detail = ""
    if following is not None:
        ahead = display.relative((now - following).total_seconds())
        detail = gettext("The next can be allocated again %(when)s.") % {"when": ahead}
    text = ngettext(
        "%(number)s released block is in cooldown",
        "%(number)s released blocks are in cooldown",
        count,
    ) % {"number": display.digits(count)}
    yield Attention("info", text, detail, url, gettext("Blocks"), url)
