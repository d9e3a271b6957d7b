"""The start page: is anything wrong, and where is room?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from pools import usage
from pools.admin import attention, find, pool_page, show
from pools.admin.attention import Attention
from pools.models import AllocationRequest, Block, Cluster, Environment, Event, FailureEvent, Pool
from pools.models.blocks import State
from pools.models.pools import Category
from pools.services import overlaps

FULLEST = 8
ENVIRONMENTS = 5
FAILURES = 1000  # newest refusals looked at


# What somebody who may not see the pools begins with; apps that use this one add theirs.
START_PAGES: list[Callable[[HttpRequest], Iterable[find.Section]]] = []


@dataclass(frozen=True)
class Measured:
    """A pool with its numbers."""

    pool: Pool
    families: dict[int, usage.Usage]
    state: str
    ratio: float = field(init=False)

    def __post_init__(self) -> None:
        ratio = max((one.ratio for one in self.families.values()), default=0.0)
        object.__setattr__(self, "ratio", ratio)


def context(request: HttpRequest, frame: dict[str, Any]) -> dict[str, Any]:
    """What the template of the start page shows."""
    if not request.user.has_perm("pools.view_pool"):
        sections = [one for page in START_PAGES for one in page(request)]
        return {**frame, "sections": sections, "forbidden": not sections}
    pools = _measured()
    return {
        **frame,
        "empty": not pools,
        "clusters": Cluster.objects.count(),
        "pools": len(pools),
        "attention": list(_attention(request, pools)),
        "categories": _categories(pools),
        "fullest": sorted(pools, key=lambda one: -one.ratio)[:FULLEST],
        "events": Event.objects.order_by("-id")[:10],
    }


def _measured() -> list[Measured]:
    pools = list(
        Pool.objects.select_related("cluster").prefetch_related(
            "cidrs__reserved_ranges", "cidrs__pool"
        )
    )
    found = usage.of_pools(pools)
    return [
        Measured(pool, found[pool.pk], pool_page.state_of(found[pool.pk], list(pool.cidrs.all())))
        for pool in pools
    ]


def _categories(pools: list[Measured]) -> list[tuple[str, str, int, usage.Usage]]:
    """(category, its name, family, sum) as far as there are pools."""
    rows = []
    for category in Category:
        for family in (4, 6):
            parts = [
                one.families[family]
                for one in pools
                if one.pool.category == category and family in one.families
            ]
            if parts:
                rows.append((str(category), str(category.label), family, _sum(parts)))
    return rows


def _sum(parts: list[usage.Usage]) -> usage.Usage:
    total = usage.Usage(0)
    for part in parts:
        total = replace(
            total,
            capacity=total.capacity + part.capacity,
            held=total.held + part.held,
            cooling=total.cooling + part.cooling,
            reserved=total.reserved + part.reserved,
            approximate=total.approximate or part.approximate,
        )
    return total


# --- what needs attention -------------------------------------------------------------------------


def _attention(request: HttpRequest, pools: list[Measured]) -> Iterator[Attention]:
    if request.user.has_perm("pools.view_connection"):
        yield from attention.of_clusters()
    for source in attention.SOURCES:
        yield from source(request)
    yield from _full(pools)
    yield from _degraded()
    yield from _waiting()
    yield from _failed()
    yield from _nearly_full(pools)
    yield from _draining(pools)
    yield from _overlapping()
    yield from _cooling(pools)


def _full(pools: list[Measured]) -> Iterator[Attention]:
    for one in pools:
        if one.state == "full":
            yield Attention(
                "bad",
                f"{one.pool} has no free block",
                "",
                show.url_of(one.pool),
                "Add a CIDR",
                reverse("admin:pools_pool_add_cidr", args=[one.pool.pk]),
            )


def _degraded() -> Iterator[Attention]:
    rows = Environment.objects.exclude(degraded_since=None).select_related("cluster")
    newest = list(rows.order_by("-degraded_since")[: ENVIRONMENTS + 1])
    all_of_them = reverse("admin:pools_environment_changelist", query={"state": "degraded"})
    for one in newest[:ENVIRONMENTS]:
        yield Attention(
            "bad",
            f"Environment {one} lacks addresses",
            one.message,
            show.url_of(one),
            "Environments",
            all_of_them,
            one.degraded_since,
        )
    if len(newest) > ENVIRONMENTS:
        count = rows.count()
        yield Attention(
            "bad", f"{count} environments lack addresses", "", all_of_them, "All", all_of_them
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


def _failed() -> Iterator[Attention]:
    day_ago = timezone.now() - timedelta(days=1)
    newest = FailureEvent.objects.order_by("-pgh_id").values_list("pgh_created_at", flat=True)
    times = [at for at in newest[:FAILURES] if at > day_ago]
    if times:
        more = "+" if len(times) == FAILURES else ""
        url = reverse("admin:pools_event_changelist", query={"type": "failed"})
        words = "allocation was" if len(times) == 1 else "allocations were"
        yield Attention(
            "warn",
            f"{len(times)}{more} {words} refused within 24 hours",
            "",
            url,
            "Events",
            url,
            times[0],
        )


def _nearly_full(pools: list[Measured]) -> Iterator[Attention]:
    for one in sorted(pools, key=lambda each: -each.ratio):
        if one.state != "full" and one.ratio > show.NEARLY_FULL:
            free = min(part.free for part in one.families.values())
            yield Attention(
                "warn",
                f"{one.pool} is {round(100 * one.ratio)} % full",
                f"{show.digits(free)} blocks are free.",
                show.url_of(one.pool),
                "Add a CIDR",
                reverse("admin:pools_pool_add_cidr", args=[one.pool.pk]),
            )


def _draining(pools: list[Measured]) -> Iterator[Attention]:
    for one in pools:
        for cidr in one.pool.cidrs.all() if one.state == "draining" else ():
            if pool_page.drained(cidr):
                query = {"cidr": str(cidr.cidr)}
                yield Attention(
                    "info",
                    f"{cidr} of {one.pool} is draining",
                    "It is wholly reserved; what is held there leaves one by one.",
                    show.url_of(one.pool),
                    "Migration",
                    reverse("admin:pools_pool_migrations", args=[one.pool.pk], query=query),
                )


def _overlapping() -> Iterator[Attention]:
    found = overlaps.found()
    if not found:
        return
    count = len({name for one in found for name in one.clusters})
    words = "1 network is" if len(found) == 1 else f"{show.digits(len(found))} networks are"
    detail = f"In {count} clusters." if count > 1 else "By isolated networks of one cluster."
    url = reverse("admin:overlaps")
    yield Attention("info", f"{words} used more than once", detail, url, "Overlaps", url)


def _cooling(pools: list[Measured]) -> Iterator[Attention]:
    count = sum(part.cooling for one in pools for part in one.families.values())
    if not count:
        return
    rows = Block.objects.filter(state=State.COOLING, available_from__gt=timezone.now())
    following = rows.order_by("available_from").values_list("available_from", flat=True).first()
    url = reverse("admin:pools_block_changelist", query={"state": "cooling"})
    detail = ""
    if following is not None:
        ahead = show.relative((timezone.now() - following).total_seconds())
        detail = f"The next may be handed out {ahead}."
    yield Attention(
        "info",
        f"{show.digits(count)} released blocks are cooling down",
        detail,
        url,
        "Blocks",
        url,
    )
