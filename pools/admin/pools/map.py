"""The map of an address range: counts per cell, and an SVG drawing of the cells.

This module does not read the database. A view (a CIDR of a pool, or an aligned part of one) is
divided into at most 1,024 equal cells; the counts of a cell sum to its capacity.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.core import addresses, blocks
from pools.platform.admin import display
from pools.register.occupancy import UsedBlocks

CELL_BITS = 10  # at most 1,024 cells
LEAST_BITS = 6  # 64 cells around a few used blocks
COLUMNS = 32
STEP, SIDE = 20, 18  # units of the drawing from cell to cell, and of a cell
MOST_RUNS = 64
STATES = ("held", "cooling", "reserved", "free")
STATE_LABELS = {
    "held": _("allocated"),
    "cooling": _("in cooldown"),
    "reserved": _("reserved"),
    "free": _("free"),
}
_HOLDER_TEXTS = {
    "held": _("%(address)s: allocated to %(holder)s"),
    "cooling": _("%(address)s: in cooldown, last held by %(holder)s"),
}
KIND_LABELS = {**STATE_LABELS, "mixed": _("mixed"), "unusable": _("unusable")}
Href = Callable[["Cell"], str]


@dataclass(frozen=True)
class Cell:
    """One cell of a view; its counts are blocks and sum to its usable capacity.

    `holder` is the kind and the id of who holds, or held last, the block of the cell.
    """

    network: addresses.Network
    held: int
    cooling: int
    reserved: int
    free: int
    one_block: bool
    holder: str = ""

    @property
    def capacity(self) -> int:
        return self.held + self.cooling + self.reserved + self.free

    @property
    def kind(self) -> str:
        """held, cooling, reserved, free, mixed, or unusable (a network or broadcast address)."""
        if not self.capacity:
            return "unusable"
        whole = [state for state in STATES if getattr(self, state) == self.capacity]
        return whole[0] if whole else "mixed"

    @property
    def kind_label(self) -> str:
        return str(KIND_LABELS[self.kind])

    @property
    def name(self) -> str:
        """The tooltip and accessible name of the cell."""
        address = display.plain_cidr(self.network)
        if self.kind == "unusable":
            return gettext("%(address)s: not allocated (network or broadcast address)") % {
                "address": address
            }
        if self.kind != "mixed":
            if self.one_block and self.holder:
                holder_text = str(_HOLDER_TEXTS[self.kind])
                return holder_text % {"address": address, "holder": self.holder}
            if self.one_block:
                return f"{address}: {self.kind_label}"
            text = ngettext(
                "%(address)s: %(state)s (%(number)s block)",
                "%(address)s: %(state)s (%(number)s blocks)",
                self.capacity,
            )
            return text % {
                "address": address,
                "state": self.kind_label,
                "number": display.digits(self.capacity),
            }
        parts = (
            f"{display.digits(getattr(self, state))} {STATE_LABELS[state]}"
            for state in STATES
            if getattr(self, state)
        )
        return f"{address}: {', '.join(parts)}"


@dataclass(frozen=True)
class View:
    """The cells and totals of a map; `exact` is False if the counts are estimates."""

    network: addresses.Network
    cells: tuple[Cell, ...]
    exact: bool = True
    totals: Mapping[str, int] = field(default_factory=dict)


def share_prefix(grid: blocks.Layout, view: addresses.Network) -> int:
    """Return the prefix length of the cells of a view."""
    return min(grid.mask_size, view.prefixlen + CELL_BITS)


def build(
    grid: blocks.Layout,
    view: addresses.Network,
    *,
    used: Mapping[int, UsedBlocks],
    ranges: Iterable[addresses.AddressRange],
    exact: bool = True,
) -> View:
    """Return the cells of a view of the CIDR `grid`; `used` is keyed by cell number, from 0.

    `ranges` are the reserved ranges of the CIDR. The view lies inside the CIDR and is not smaller
    than a block.
    """
    prefix = share_prefix(grid, view)
    number = 1 << (prefix - view.prefixlen)
    size = 1 << (grid.mask_size - prefix)
    first = grid.index_of_address(view.network_address)
    usable = grid.usable()
    withheld = blocks.subtract(usable, grid.allocatable(ranges))
    capacities = _count_by_share(usable, first=first, size=size, number=number)
    reserved = _count_by_share(withheld, first=first, size=size, number=number)
    bits = view.max_prefixlen - prefix
    base = int(view.network_address)
    cells = tuple(
        _cell(
            ip_network((base + (share << bits), prefix)),
            capacities[share],
            reserved[share],
            used.get(share, UsedBlocks()),
            one_block=size == 1,
        )
        for share in range(number)
    )
    totals = {state: sum(getattr(cell, state) for cell in cells) for state in STATES}
    return View(view, cells, exact=exact, totals=totals)


def _cell(
    network: addresses.Network, capacity: int, reserved: int, used: UsedBlocks, *, one_block: bool
) -> Cell:
    held = min(used.held, capacity)
    cooling = min(used.cooling, capacity - held)
    reserved = min(max(0, reserved - used.withheld), capacity - held - cooling)
    free = capacity - held - cooling - reserved
    return Cell(network, held, cooling, reserved, free, one_block, used.holder)


def _count_by_share(
    spans: Iterable[blocks.Span], *, first: int, size: int, number: int
) -> dict[int, int]:
    """Return the number of block indexes of the (disjoint) spans in each cell."""
    counts = dict.fromkeys(range(number), 0)
    for span in spans:
        low, high = max(span.first, first), min(span.last, first + size * number - 1)
        if low > high:
            continue
        for share in range((low - first) // size, (high - first) // size + 1):
            start = first + share * size
            counts[share] += min(high, start + size - 1) - max(low, start) + 1
    return counts


# --- drawing --------------------------------------------------------------------------------------


def svg(view: View, *, href: Href) -> SafeString:
    """Return the drawing. `href` returns the link of a cell ("": none). Colours are in cadastre.css."""
    return draw_cells(view.network, view.cells, lambda cell, x, y: _shape(cell, x, y, href(cell)))


def draw_cells(
    view: addresses.Network, cells: Sequence[Any], shape: Callable[[Any, int, int], SafeString]
) -> SafeString:
    """Return the cells of a view in rows, each with its first address beside it; `shape` draws one at a place."""
    columns = min(COLUMNS, len(cells))
    drawn = format_html_join(
        "",
        "{}",
        (
            (shape(cell, position % COLUMNS * STEP + 1, position // COLUMNS * STEP + 1),)
            for position, cell in enumerate(cells)
        ),
    )
    labels = format_html_join(
        "", "<span>{}</span>", ((cell.network.network_address,) for cell in cells[::COLUMNS])
    )
    return format_html(
        '<div class="cad-map-rows"><div class="cad-map-labels" aria-hidden="true">{}</div>'
        '<svg class="cad-map" viewBox="0 0 {} {}" role="group" aria-label="{}"'
        ' data-columns="{}" data-share="{}">{}</svg></div>',
        labels,
        columns * STEP,
        -(-len(cells) // COLUMNS) * STEP,
        gettext("Map of %(network)s") % {"network": view},
        columns,
        min(1, round(columns / COLUMNS, 3)),
        drawn,
    )


def named_shape(name: str, href: str, drawing: SafeString) -> SafeString:
    """Return a shape with its name for hover and screen readers, as a link if there is one."""
    if href:
        shape = '<a href="{}" aria-label="{}"><title>{}</title>{}</a>'
        return format_html(shape, href, name, name, drawing)
    shape = '<g tabindex="0" role="img" aria-label="{}"><title>{}</title>{}</g>'
    return format_html(shape, name, name, drawing)


def _shape(cell: Cell, x: int, y: int, href: str) -> SafeString:
    # Only constants and numbers, so no escaping: a thousand calls of format_html would take
    # longer than the query.
    parts = (
        f'<rect class="m-{kind}" x="{x}" y="{top}" width="{SIDE}" height="{height}"/>'
        for kind, top, height in _layers(cell, y)
    )
    return named_shape(cell.name, href, SafeString("".join(parts)))


def _layers(cell: Cell, y: int) -> list[tuple[str, float, float]]:
    """Return (kind, top, height) of the layers; a mixed cell is filled from the bottom up."""
    if cell.kind != "mixed":
        return [(cell.kind, y, SIDE)]
    layers: list[tuple[str, float, float]] = [("free", y, SIDE)]
    bottom = y + SIDE
    for state in ("held", "cooling", "reserved"):
        count = getattr(cell, state)
        if count:
            # A minimum height keeps small shares visible.
            height = max(3, round(SIDE * count / cell.capacity))
            height = min(height, bottom - y)
            bottom -= height
            layers.append((state, bottom, height))
    return layers


def runs(view: View) -> list[tuple[addresses.Network, addresses.Network, Cell]]:
    """Return the cells as table rows (first, last, sum); equal neighbours share a row.

    If that makes more than 64 rows, each row of the map is one row of the table.
    """
    groups: list[list[Cell]] = []
    for cell in view.cells:
        if groups and cell.kind == groups[-1][0].kind and cell.kind != "mixed":
            groups[-1].append(cell)
        else:
            groups.append([cell])
    if len(groups) > MOST_RUNS:
        cells = view.cells
        groups = [list(cells[start : start + COLUMNS]) for start in range(0, len(cells), COLUMNS)]
    return [(cells[0].network, cells[-1].network, _sum(cells)) for cells in groups]


def _sum(cells: list[Cell]) -> Cell:
    counts = {state: sum(getattr(cell, state) for cell in cells) for state in STATES}
    return replace(cells[0], **counts, one_block=cells[0].one_block and len(cells) == 1)
