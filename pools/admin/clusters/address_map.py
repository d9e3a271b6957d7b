"""The map of a cluster's addresses: its pools, and what its objects use, as cells of equal size."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext
from django_stubs_ext import StrOrPromise

from pools.admin.pools import map as maps
from pools.core import addresses, cidr_sets
from pools.core.observed.uses import Role
from pools.models import Cluster
from pools.platform.admin import display
from pools.register import overlaps as register_overlaps
from pools.register.overlaps import Owned

CELL_BITS = 8  # at most 256 cells of a view
MOST_VIEWS = 6
MOST_NAMES = 4  # in the tooltip of a cell
_GROUP = {4: 8, 6: 32}  # prefix lengths: a view lies in one network of this length

# What a cell shows if several uses are in it: the first one. Those of one name have one colour.
_POOL, _PODS, _EXTERNAL = "pool", "pods", "external"
COLORS = {
    Role.NODE: "nodes",
    Role.LOAD_BALANCER: _EXTERNAL,
    Role.EGRESS: _EXTERNAL,
    Role.SECONDARY: "secondary",
    Role.POD_POOL: _PODS,
    Role.PODS: _PODS,
    Role.SERVICES: "services",
}
LABELS: dict[str, StrOrPromise] = {
    "clash": _("clash"),
    _POOL: _("pools"),
    "nodes": _("node addresses"),
    _EXTERNAL: _("load balancers, egress"),
    "secondary": _("secondary networks"),
    _PODS: _("pod CIDRs"),
    "services": _("Services"),
    "none": _("not used"),
}
_ORDER = list(LABELS)


@dataclass
class Cell:
    """An equal part of a view, and the uses that touch it."""

    network: addresses.Network
    uses: list[Owned] = field(default_factory=list)
    clashing: bool = False

    @property
    def color(self) -> str:
        if self.clashing:
            return "clash"
        colors = {color_of(owner) for _, owner in self.uses}
        return min(colors, key=_ORDER.index, default="none")

    @property
    def name(self) -> str:
        """The tooltip and accessible name of the cell."""
        names = list(dict.fromkeys(f"{network} {owner}" for network, owner in self.uses))
        text = ", ".join(names[:MOST_NAMES]) or gettext("not used")
        if (more := len(names) - MOST_NAMES) > 0:
            text += ngettext(" and %(more)s more", " and %(more)s more", more) % {"more": more}
        address = display.plain_cidr(self.network)
        return f"{address}: {gettext('clash')}: {text}" if self.clashing else f"{address}: {text}"


@dataclass(frozen=True)
class MapView:
    """A view with its drawing, and the number of cells of each color."""

    network: addresses.Network
    cell_length: int
    svg: SafeString
    legend: list[tuple[str, StrOrPromise, int]]


def color_of(owner: register_overlaps.NetworkOwner) -> str:
    """Return the name of the color of a use."""
    return COLORS[Role(owner.category)] if owner.kind else _POOL


def read_views(cluster: Cluster, chosen: addresses.Network | None = None) -> list[MapView]:
    """Return the views of a cluster's own address space, or the chosen one.

    The cluster's prefix is the frame of a view, and uses none of its addresses.
    """
    networks = [
        (network, owner)
        for network, owner in register_overlaps.read_networks(cluster.pk)
        if not owner.space
    ]
    views = [chosen] if chosen else list(_choose_views([network for network, _ in networks]))
    uses = [(network, owner) for network, owner in networks if owner.kind or owner.pool_id]
    return [_view(view, uses) for view in views[:MOST_VIEWS]]


def _choose_views(networks: Sequence[addresses.Network]) -> Iterator[addresses.Network]:
    """Yield the smallest network around all that lie in one large network, in address order."""
    groups: dict[addresses.Network, list[addresses.Network]] = defaultdict(list)
    for network in networks:
        length = min(network.prefixlen, _GROUP[network.version])
        groups[network.supernet(new_prefix=length)].append(network)
    for group in sorted(groups, key=cidr_sets.sort_key):
        ordered = sorted(groups[group], key=cidr_sets.sort_key)
        yield _common(ordered[0], max(ordered, key=lambda each: int(each.broadcast_address)))


def _common(first: addresses.Network, last: addresses.Network) -> addresses.Network:
    differing = int(first.network_address) ^ int(last.broadcast_address)
    length = min(first.prefixlen, first.max_prefixlen - differing.bit_length())
    return first.supernet(new_prefix=length)


def _view(view: addresses.Network, networks: Iterable[Owned]) -> MapView:
    length = min(view.prefixlen + CELL_BITS, view.max_prefixlen)
    bits, base = view.max_prefixlen - length, int(view.network_address)
    cells = [
        Cell(ip_network((base + (number << bits), length)))
        for number in range(1 << (length - view.prefixlen))
    ]
    inside = [(network, owner) for network, owner in networks if _touch(network, view)]
    for network, owner in inside:
        for cell in _cells_of(cells, base, bits, network):
            cell.uses.append((network, owner))
    for _outer, inner in register_overlaps.clashing_pairs(inside):
        for cell in _cells_of(cells, base, bits, inner[0]):
            cell.clashing = True
    colors = [cell.color for cell in cells]
    legend = [(name, LABELS[name], colors.count(name)) for name in LABELS if name in colors]
    return MapView(view, length, maps.draw_cells(view, cells, _draw_cell), legend)


def _touch(network: addresses.Network, view: addresses.Network) -> bool:
    return network.version == view.version and (
        cidr_sets.contains(view, network) or cidr_sets.contains(network, view)
    )


def _cells_of(cells: list[Cell], base: int, bits: int, network: addresses.Network) -> list[Cell]:
    first = max(int(network.network_address) - base, 0) >> bits
    last = (int(network.broadcast_address) - base) >> bits
    return cells[first : last + 1]


def _draw_cell(cell: Cell, x: int, y: int) -> SafeString:
    shape = '<rect class="m-use-{}" x="{}" y="{}" width="{}" height="{}"/>'
    href = ""
    if any(cell.network.prefixlen < network.prefixlen for network, _ in cell.uses):
        href = f"?map={cell.network}#map"
    elif cell.uses:
        href = reverse("admin:find", query={"q": str(cell.network)})
    return maps.named_shape(
        cell.name, href, format_html(shape, cell.color, x, y, maps.SIDE, maps.SIDE)
    )
