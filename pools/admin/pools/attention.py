"""Lines of the needs-attention list that pools and tenants cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

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


def lines(summary: PoolSummary, failures: queues.Failures) -> Iterator[Attention]:
    """What is wrong with pools, the worst first."""
    yield from _full(summary.pools)
    yield from _degraded()
    yield from _exhausted_soon()
    yield from _waiting()
    yield from _failed(failures)
    yield from _nearly_full(summary.pools)
    yield from _draining(summary)
    yield from _overlapping()
    yield from _cooling(summary.pools)


def _pool_line(level: str, pool: Pool, text: str, detail: str = "") -> Attention:
    """A line whose remedy is more room."""
    more = reverse("admin:pools_pool_add_cidr", args=[pool.pk])
    return Attention(
        level,
        f"{pool} {text}",
        detail,
        display.url_of(pool),
        "Add a CIDR",
        more,
        needs="pools.change_pool",
    )


def _rest_line(level: str, count: int, text: str, state: str) -> Iterator[Attention]:
    """The rest of many, in one line."""
    if count > 0:
        url = reverse("admin:pools_pool_changelist", query={"state": state} if state else {})
        words = "1 further pool" if count == 1 else f"{display.digits(count)} further pools"
        yield Attention(level, f"{words} {text}", "", url, "Pools", url)


def _full(pools: Sequence[MeasuredPool]) -> Iterator[Attention]:
    full = [measured for measured in pools if measured.state == "full"]
    for measured in full[:SHOWN]:
        yield _pool_line("bad", measured.pool, "has no free block")
    yield from _rest_line("bad", len(full) - SHOWN, "without a free block", "full")


def _nearly_full(pools: Sequence[MeasuredPool]) -> Iterator[Attention]:
    high = [measured for measured in pools if measured.state != "full" and measured.is_nearly_full]
    high.sort(key=lambda measured: -measured.ratio)
    for measured in high[:SHOWN]:
        free = min(part.free for part in measured.families.values())
        text = f"is {measured.percent} % full"
        yield _pool_line("warn", measured.pool, text, f"{display.digits(free)} blocks are free.")
    yield from _rest_line(
        "warn", len(high) - SHOWN, f"over {settings.IPAM_NOTICE_WARNING_PERCENT} % full", "high"
    )


def _exhausted_soon() -> Iterator[Attention]:
    rows = forecasts.within(forecasts.SOON.days).exclude(state=ForecastState.FULL)
    soonest = list(rows[: SHOWN + 1])
    for row in soonest[:SHOWN]:
        forecast = forecasts.as_dated(row)
        words = pool_forecasts.short(forecast).removeprefix("full in ")
        text = f"is forecast to be full in {words}"
        yield _pool_line("warn", row.pool, text, f"{pool_forecasts.range_text(forecast)}.")
    if len(soonest) > SHOWN:
        days = forecasts.SOON.days
        text = f"forecast to be full within {days} days"
        yield from _rest_line("warn", rows.count() - SHOWN, text, "")


def _degraded() -> Iterator[Attention]:
    rows = Environment.objects.exclude(degraded_since=None).select_related("cluster")
    newest = list(rows.order_by("-degraded_since")[: ENVIRONMENTS + 1])
    list_url = reverse("admin:pools_environment_changelist", query={"state": "degraded"})
    for environment in newest[:ENVIRONMENTS]:
        yield Attention(
            "bad",
            f"Environment {environment} lacks addresses",
            environment.message,
            display.url_of(environment),
            "Environments",
            list_url,
            environment.degraded_since,
        )
    if len(newest) > ENVIRONMENTS:
        count = rows.count()
        yield Attention(
            "bad", f"{count} environments lack addresses", "", list_url, "All", list_url
        )


def _waiting() -> Iterator[Attention]:
    pending = AllocationRequest.objects.filter(state="pending")
    oldest = pending.order_by("id").first()
    if oldest is None:
        return
    count = pending.count()
    url = reverse("admin:pools_allocationrequest_changelist", query={"state": "pending"})
    words = "1 request waits" if count == 1 else f"{count} requests wait"
    detail = f"The oldest is {oldest.holder_kind} {oldest.holder_id}."
    yield Attention("warn", f"{words} for space", detail, url, "Requests", url, oldest.created_at)


def _failed(failures: queues.Failures) -> Iterator[Attention]:
    if not failures.total:
        return
    more = "" if failures.exact else "+"
    url = reverse("admin:pools_event_changelist", query={"type": "failed"})
    words = "allocation was" if failures.total == 1 else "allocations were"
    text = f"{display.digits(failures.total)}{more} {words} refused within 24 hours"
    newest = min(row.hours_ago for row in failures.rows)
    since = timezone.now() - timedelta(hours=newest)
    yield Attention("warn", text, "", url, "Events", url, since)


def _draining(summary: PoolSummary) -> Iterator[Attention]:
    full = {measured.pool.pk for measured in summary.pools if measured.state == "full"}
    draining = [cidr for cidr in summary.draining if cidr.pool_id not in full]
    for cidr in draining[:SHOWN]:
        yield Attention(
            "info",
            f"{cidr} of {cidr.pool} is draining",
            "It is wholly reserved; what is held there leaves one by one.",
            display.url_of(cidr.pool),
            "Migration",
            reverse(
                "admin:pools_pool_migrations", args=[cidr.pool_id], query={"cidr": str(cidr.cidr)}
            ),
        )
    pools = len({cidr.pool_id for cidr in draining[SHOWN:]})
    yield from _rest_line("info", pools, "with a CIDR that drains", "draining")


def _overlapping() -> Iterator[Attention]:
    all_overlaps = overlaps.find_overlaps()
    if not all_overlaps:
        return
    count = len({name for overlap in all_overlaps for name in overlap.clusters})
    words = (
        "1 network is"
        if len(all_overlaps) == 1
        else f"{display.digits(len(all_overlaps))} networks are"
    )
    detail = f"In {count} clusters." if count > 1 else "By isolated networks of one cluster."
    url = reverse("admin:overlaps")
    yield Attention("info", f"{words} used more than once", detail, url, "Overlaps", url)


def _cooling(pools: Sequence[MeasuredPool]) -> Iterator[Attention]:
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
        detail = f"The next may be handed out {ahead}."
    text = f"{display.digits(count)} released blocks are cooling down"
    yield Attention("info", text, detail, url, "Blocks", url)
