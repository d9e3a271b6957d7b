"""The page of a pool: usage, map, CIDRs, holders, events and actions; the pool as YAML, Helm values and API requests."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin import time_bars
from pools.admin.clusters import field as cluster_fields
from pools.admin.overview import timeline
from pools.admin.pools import blocks as block_list, map as maps, usage_bars
from pools.cilium import pool_sync
from pools.core import addresses, errors
from pools.core.cilium import podippool
from pools.models import (
    LIVE,
    AllocationRequest,
    Block,
    Category,
    Cluster,
    Event,
    Pending,
    Pool,
    PoolCIDR,
)
from pools.platform.admin import display, live, pages
from pools.platform.alerts import open_alerts
from pools.register import (
    block_lists,
    event_filters,
    manifests,
    occupancy,
    orphans,
    pool_cidrs,
    usage,
)
from pools.register.allocator import window
from pools.register.utilization import forecasts, series

MAPS = 4  # maps on one page; the other CIDRs have links
FIRST = 10


@dataclass(frozen=True)
class DrawnMap:
    """A map with its legend, table and links."""

    cidr: PoolCIDR
    view: maps.View
    svg: SafeString
    rows: list[tuple[addresses.Network, addresses.Network, maps.Cell]]
    parents: list[addresses.Network]
    used_part: addresses.Network | None

    @property
    def legend(self) -> list[tuple[str, str, int]]:
        """(state, its label, number of blocks)."""
        return [
            (state, str(maps.STATE_LABELS[state]), self.view.totals[state]) for state in maps.STATES
        ]

    @property
    def capacity(self) -> int:
        return sum(self.view.totals.values())

    @property
    def mixed(self) -> int:
        return sum(cell.kind == "mixed" for cell in self.view.cells)

    @property
    def unusable(self) -> int:
        return sum(cell.kind == "unusable" for cell in self.view.cells)

    @property
    def cell_size(self) -> str:
        """What one cell of the map stands for."""
        first = self.view.cells[0]
        length = {"length": first.network.prefixlen}
        if not first.one_block:
            return gettext("Each cell is a /%(length)s.") % length
        if first.network.prefixlen == first.network.max_prefixlen:
            return gettext("Each cell is one address.")
        return gettext("Each cell is one /%(length)s block.") % length


def view(request: HttpRequest, pool: Pool, **links: Any) -> HttpResponse:
    families = usage.usage_by_pool([pool])[pool.pk]
    drawn = map_context(request, pool, allocating=request.user.has_perm("pools.allocate"))
    cidrs = drawn["cidrs"]
    live = block_lists.filter_by_pool(Block.objects.filter(state__in=LIVE), pool.pk)
    counts = usage.usage_by_cidr(cidrs)
    days = timeline.parse_days(request)
    return pages.page(
        request,
        "pool.html",
        pool,
        title=pool.name,
        families=families,
        state=pool_state(families, draining=any(map(orphans.is_reserved, cidrs))),
        forecasts={
            family: usage_bars.forecast_sentence(forecast)
            for family, forecast in forecasts.forecast_pool(pool, families).items()
        },
        charts=timeline.pool_charts(pool, series.chart_days(days)),
        ranges=timeline.range_links(days),
        bar=_holder_bar(request, pool),
        cooldown=display.duration(pool.cooldown_seconds),
        alerts=open_alerts.alerts_about(f"pool/{pool.pk}")[: open_alerts.SHOWN],
        owned_elsewhere=pool_sync.conflicts_of_pool(pool),
        cidr_states=[(cidr, cidr_state(cidr), counts[cidr.pk]) for cidr in cidrs],
        blocks=list(live.order_by("space_id", "cidr")[:FIRST]),
        events=event_filters.of_pools(Event.objects.all(), [pool.pk]).order_by("-id")[:FIRST],
        waiting=AllocationRequest.objects.filter(pool=pool, state="pending").count(),
        **drawn,
        **cooldown_context(request, pool, families),
        **_formats(request, pool),
        **links,
    )


def _holder_bar(request: HttpRequest, pool: Pool) -> time_bars.TimeBar | None:
    """Return the bar of the largest holders; live parts of the page do not have it."""
    if live.is_asked(request) or not request.user.has_perm("pools.view_block"):
        return None
    return time_bars.of_pool(request, pool)


def cooldown_context(
    request: HttpRequest, pool: Pool, families: Mapping[int, usage.Usage]
) -> dict[str, Any]:
    """Return what says that nothing but cooldowns keeps a pool in use or full; nothing while there is no need."""
    held = sum(counts.held for counts in families.values())
    cooling = sum(counts.cooling for counts in families.values())
    if not cooling or (held and all(counts.free for counts in families.values())):
        return {}
    count, until = pool_cidrs.cooldown_left(Block.objects.filter(pool=pool))
    return {
        "cooling": count,
        "cooling_until": until,
        "only_cooling": not held,
        "end_cooldown": block_list.end_cooldown_url(request, pool),
    }


def measure(
    rows: Iterable[Pool],
) -> Iterator[tuple[Pool, dict[int, usage.Usage], str]]:
    """Yield pools with their usage and their state."""
    pools = list(rows)
    families = usage.usage_by_pool(pools)
    drained = orphans.draining_pools(families)
    for pool in pools:
        counts = families[pool.pk]
        yield pool, counts, pool_state(counts, draining=pool.pk in drained)


def pool_state(families: dict[int, usage.Usage], *, draining: bool) -> str:
    """Return full (a family has no free block), pending (the cluster does not have the pool yet), draining
    (a CIDR is fully reserved) or active.
    """
    if any(not counts.free and not counts.waits_for_cluster for counts in families.values()):
        return "full"
    if any(counts.waits_for_cluster for counts in families.values()):
        return "pending"
    return "draining" if draining else "active"


def cidr_state(cidr: PoolCIDR) -> str:
    """Return the state of a CIDR: orphaned, a pending change, draining or active."""
    if cidr.orphaned_at is not None:
        return "orphaned"
    if cidr.pending:
        return (
            gettext("addition pending")
            if cidr.pending == Pending.ADDITION
            else gettext("removal pending")
        )
    return "draining" if orphans.is_reserved(cidr) else "active"


# --- maps -----------------------------------------------------------------------------------------


def map_context(request: HttpRequest, pool: Pool, *, allocating: bool) -> dict[str, Any]:
    """Return the CIDRs of a pool, and the map of the chosen one or a part of it; by default of the first CIDRs.

    With `allocating`, a free block links to the allocation form; for who may see it, a block names its holder.
    """
    rows = pool.cidrs.select_related("pool").prefetch_related("reserved_ranges")
    cidrs, chosen = list(rows.order_by("position")), request.GET.get("map", "")
    with_holders = request.user.has_perm("pools.view_block")
    draw = partial(_draw_map, pool, allocating=allocating, with_holders=with_holders)
    share = _parse_share(cidrs, chosen) if chosen else None
    shares = [share] if share else [(cidr, cidr.cidr) for cidr in cidrs[:MAPS]]
    return {"cidrs": cidrs, "chosen_map": chosen, "maps": [draw(*share) for share in shares]}


def _parse_share(cidrs: list[PoolCIDR], chosen: str) -> tuple[PoolCIDR, addresses.Network] | None:
    try:
        network = addresses.parse_cidr(chosen, allow_short=True)
    except errors.InvalidInput:
        return None
    for cidr in cidrs:
        parent = cidr.cidr
        same_family = parent.version == network.version
        if same_family and network.subnet_of(parent) and network.prefixlen <= _mask_size(cidr):
            return cidr, network
    return None


def _mask_size(cidr: PoolCIDR) -> int:
    return window.layout(cidr).mask_size


def _draw_map(
    pool: Pool,
    cidr: PoolCIDR,
    network: addresses.Network,
    *,
    allocating: bool,
    with_holders: bool,
) -> DrawnMap:
    grid = window.layout(cidr)
    occupied = occupancy.count_by_share(
        cidr, network, maps.share_prefix(grid, network), with_holders=with_holders
    )
    built = maps.build(
        grid,
        network,
        used=occupied.shares,
        ranges=_withheld_ranges(cidr),
        exact=occupied.exact,
    )
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

    return DrawnMap(
        cidr=cidr,
        view=built,
        svg=maps.svg(built, href=href),
        rows=maps.runs(built),
        parents=_parents(cidr.cidr, network),
        used_part=_used_part(cidr, network),
    )


def _withheld_ranges(cidr: PoolCIDR) -> list[addresses.AddressRange]:
    """Return the reserved ranges; all of a CIDR from which nothing is allocated (usage.py counts it so, too)."""
    if cidr.orphaned_at or cidr.pending:
        return [addresses.AddressRange(cidr.cidr.network_address, cidr.cidr.broadcast_address)]
    return orphans.reserved_ranges(cidr)


def _parents(whole: addresses.Network, network: addresses.Network) -> list[addresses.Network]:
    """Return the larger views, from the whole CIDR down to this one."""
    steps = list(range(whole.prefixlen, network.prefixlen, maps.CELL_BITS))
    return [network.supernet(new_prefix=length) for length in steps]


def _used_part(cidr: PoolCIDR, view: addresses.Network) -> addresses.Network | None:
    """Return the smallest part with all used blocks, for a link that zooms in; None if that shows no more."""
    mask_size = _mask_size(cidr)
    if mask_size - view.prefixlen <= maps.CELL_BITS:  # each cell is one block
        return None
    used = occupancy.used_part(cidr, view)
    if used is None or used.prefixlen == view.prefixlen:
        return None
    # A single block would be a map of one cell.
    return used.supernet(new_prefix=min(used.prefixlen, mask_size - maps.LEAST_BITS))


_NAMES = {
    podippool.Shape.V2.value: _("CiliumPodIPPool, cilium.io/v2 (Cilium release)"),
    podippool.Shape.V2_PROPOSAL.value: _("CiliumPodIPPool, cilium.io/v2 with reservedRange"),
    podippool.Shape.V2ALPHA1.value: _("CiliumPodIPPool, cilium.io/v2alpha1"),
    manifests.HELM: _("Helm values, autoCreateCiliumPodIPPools"),
}
# Bodies that the pool takes: an instance and a public IPv4 address need their owner.
_NODE = {"holder": {"kind": "node", "id": "worker-1"}}
_DEMANDS = {
    Category.POD: _NODE,
    Category.NODE: _NODE,
    Category.INSTANCE: {"holder": {"kind": "instance", "id": "i-1"}, "org": "acme", "env": "shop"},
    Category.IPV4: {"holder": {"kind": "env", "id": "shop"}, "org": "acme"},
    Category.VM: {"holder": {"kind": "vm", "id": "web-1"}},
}


@dataclass(frozen=True)
class RenderedManifest:
    """A manifest in one format, or the reason why the format cannot hold the pool; `url` downloads it."""

    name: str
    text: str = ""
    why_not: str = ""
    url: str = ""


class ShapeForm(forms.Form):
    cluster = cluster_fields.cluster_field(
        queryset=Cluster.objects.exclude(connection=None),
        label=_("Format for cluster"),
        empty_label=_("all formats"),
        required=False,
    )


def _formats(request: HttpRequest, pool: Pool) -> dict[str, Any]:
    """Return all formats, or that of the cluster in the query string, and requests, for `pool_yaml.html`."""
    form = ShapeForm(request.GET)
    cluster = form.cleaned_data["cluster"] if form.is_valid() else None
    cluster_field: Any = form.fields["cluster"]
    is_pod = pool.category == Category.POD
    shapes = (
        [_render_for_cluster(pool, cluster)]
        if cluster
        else [_render(pool, shape) for shape in _NAMES]
    )
    return {
        "shape_form": form if is_pod and cluster_field.queryset.exists() else None,
        "manifests": shapes if is_pod else [],
        "calls": _calls(pool, request.build_absolute_uri("/").rstrip("/")),
    }


def _render(pool: Pool, shape: str) -> RenderedManifest:
    name = str(_NAMES[shape])
    try:
        text = manifests.render_yaml([manifests.pool_manifest(pool)], shape)
    except errors.InvalidInput as error:
        return RenderedManifest(name, why_not=error.message)
    return RenderedManifest(
        name, text, url=reverse("api:manifest", args=[pool.pk], query={"shape": shape})
    )


def _render_for_cluster(pool: Pool, cluster: Cluster) -> RenderedManifest:
    try:
        return _render(pool, manifests.fetch_shape(cluster).value)
    except errors.IpamError as error:
        return RenderedManifest(
            gettext("CiliumPodIPPool in the format of %(cluster)s") % {"cluster": cluster},
            why_not=error.message,
        )


def _calls(pool: Pool, here: str) -> list[tuple[str, str]]:
    allocation = json.dumps(_DEMANDS[Category(pool.category)])
    head = 'curl -H "Authorization: Bearer $TOKEN"'  # no text: a command
    return [
        (gettext("Read this pool"), f"{head} {here}/api/v1/pools/{pool.pk}/"),
        (gettext("List its blocks"), f"{head} '{here}/api/v1/blocks/?pool={pool.pk}'"),
        (
            gettext("Allocate"),
            f"{head} -H 'Content-Type: application/json' \\\n  -d '{allocation}' \\\n"
            f"  {here}/api/v1/pools/{pool.pk}/allocations/",  # no text: a command
        ),
    ]
