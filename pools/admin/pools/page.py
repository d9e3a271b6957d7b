"""A pool as one reads it: numbers, map, CIDRs, holders, events, and what can be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.safestring import SafeString

from pools.admin.overview import timeline
from pools.admin.pools import forecasts as pool_forecasts
from pools.admin.pools import map as maps
from pools.cilium import drift
from pools.core import addresses, errors
from pools.models import AllocationRequest, Block, Event, Pool, PoolCIDR
from pools.models.blocks import LIVE
from pools.platform.admin import display, pages
from pools.register import block_lists, occupancy, usage
from pools.register.allocator import window
from pools.register.utilization import forecasts, series

MAPS = 4  # drawn on one page; more CIDRs have a link each
FIRST = 10


@dataclass(frozen=True)
class Drawn:
    """A map and what stands around it."""

    cidr: PoolCIDR
    view: maps.View
    svg: SafeString
    rows: list[tuple[addresses.Network, addresses.Network, maps.Cell]]
    parents: list[addresses.Network]
    used_part: addresses.Network | None

    @property
    def legend(self) -> list[tuple[str, int]]:
        return [(state, self.view.totals[state]) for state in maps.STATES]

    @property
    def capacity(self) -> int:
        return sum(self.view.totals.values())

    @property
    def mixed(self) -> int:
        return sum(cell.kind == "mixed" for cell in self.view.cells)

    @property
    def cell(self) -> str:
        """What one cell of it is."""
        first = self.view.cells[0]
        if first.one_block:
            host_sized = first.network.prefixlen == first.network.max_prefixlen
            return "one address" if host_sized else f"one /{first.network.prefixlen} block"
        return f"a /{first.network.prefixlen}"


def view(request: HttpRequest, pool: Pool, **links: Any) -> HttpResponseBase:
    families = usage.usage_by_pool([pool])[pool.pk]
    cidrs = list(
        pool.cidrs.select_related("pool").prefetch_related("reserved_ranges").order_by("position")
    )
    live = block_lists.filter_by_pool(Block.objects.filter(state__in=LIVE), pool.pk)
    days = timeline.chosen_days(request)
    return pages.page(
        request,
        "pool.html",
        title=pool.name,
        pool=pool,
        opts=Pool._meta,
        original=pool,
        families=families,
        state=state_of(families, cidrs),
        forecasts={
            family: pool_forecasts.sentence(one)
            for family, one in forecasts.forecast_pool(pool, families).items()
        },
        charts=timeline.of_pool(pool, series.chart_days(days)),
        ranges=timeline.ranges(days),
        cooldown=display.duration(pool.cooldown_seconds),
        maps=drawn(
            pool,
            cidrs,
            request.GET.get("map", ""),
            allocating=request.user.has_perm("pools.allocate"),
        ),
        chosen_map=request.GET.get("map", ""),
        cidrs=cidrs,
        owned_elsewhere=drift.conflicts_of_pool(pool),
        cidr_states=[(cidr, cidr_state(cidr)) for cidr in cidrs],
        blocks=list(live.order_by("space_id", "cidr")[:FIRST]),
        events=Event.objects.filter(pool_id=pool.pk).order_by("-id")[:FIRST],
        waiting=AllocationRequest.objects.filter(pool=pool, state="pending").count(),
        **links,
    )


def state_of(families: dict[int, usage.Usage], cidrs: list[PoolCIDR]) -> str:
    """full (a family has nothing left), draining (a CIDR is wholly reserved) or active."""
    if any(not one.free for one in families.values()):
        return "full"
    return "draining" if any(drained(cidr) for cidr in cidrs) else "active"


def cidr_state(cidr: PoolCIDR) -> str:
    """What stands beside a CIDR: whether blocks of it are handed out, or why not."""
    if cidr.orphaned_at is not None:
        return "orphaned"
    if cidr.pending:
        return f"{cidr.get_pending_display()} pending"
    return "draining" if drained(cidr) else "active"


def drained(cidr: PoolCIDR) -> bool:
    """Whether reserved ranges keep the whole CIDR from being handed out."""
    return not window.layout(cidr).allocatable(_ranges(cidr))


def _ranges(cidr: PoolCIDR) -> list[addresses.AddressRange]:
    return [addresses.AddressRange(one.first, one.last) for one in cidr.reserved_ranges.all()]


# --- maps -----------------------------------------------------------------------------------------


def drawn(pool: Pool, cidrs: list[PoolCIDR], chosen: str, *, allocating: bool) -> list[Drawn]:
    """The map of a chosen CIDR or share of one, else those of the first CIDRs.

    `allocating`: a free block leads to the form that hands it out.
    """
    if chosen:
        found = _chosen(cidrs, chosen)
        if found is not None:
            return [_draw(pool, *found, allocating=allocating)]
    return [_draw(pool, cidr, cidr.cidr, allocating=allocating) for cidr in cidrs[:MAPS]]


def _chosen(cidrs: list[PoolCIDR], chosen: str) -> tuple[PoolCIDR, addresses.Network] | None:
    try:
        wanted = addresses.parse_cidr(chosen, allow_short=True)
    except errors.InvalidInput:
        return None
    for cidr in cidrs:
        own = cidr.cidr
        same_family = own.version == wanted.version
        if same_family and wanted.subnet_of(own) and wanted.prefixlen <= _mask_size(cidr):
            return cidr, wanted
    return None


def _mask_size(cidr: PoolCIDR) -> int:
    return window.layout(cidr).mask_size


def _draw(pool: Pool, cidr: PoolCIDR, network: addresses.Network, *, allocating: bool) -> Drawn:
    grid = window.layout(cidr)
    found = occupancy.count_by_share(cidr, network, maps.share_prefix(grid, network))
    built = maps.build(grid, network, used=found.shares, ranges=_ranges(cidr), exact=found.exact)
    page = display.url_of(pool)
    form = reverse("admin:pools_pool_allocate", args=[pool.pk])

    def href(cell: maps.Cell) -> str:
        if not cell.one_block:
            return f"{page}?map={cell.network}#map"
        if cell.kind in {"held", "cooling"}:
            return reverse("admin:find", query={"q": str(cell.network)})
        if cell.kind == "free" and allocating:
            return f"{form}?exact={cell.network}"
        return ""

    return Drawn(
        cidr=cidr,
        view=built,
        svg=maps.svg(built, href=href),
        rows=maps.runs(built),
        parents=_parents(cidr.cidr, network),
        used_part=_used_part(built),
    )


def _parents(whole: addresses.Network, network: addresses.Network) -> list[addresses.Network]:
    """The views from the whole CIDR down to this one."""
    steps = list(range(whole.prefixlen, network.prefixlen, maps.CELL_BITS))
    return [network.supernet(new_prefix=length) for length in steps]


def _used_part(view: maps.View) -> addresses.Network | None:
    """The one share in use, when all the rest is empty: where to look closer."""
    used = [cell for cell in view.cells if cell.held or cell.cooling]
    return used[0].network if len(used) == 1 and not used[0].one_block else None
