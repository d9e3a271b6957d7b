"""Topology: a cluster, its pools, who holds their blocks and what runs there, drawn with links, and as a nested list.

A page of an app makes a tree of `Branch`es, of at most MOST shapes, and shows it with `page`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from pools.admin.pools import usage_bars
from pools.cilium.node_status import HOLDER as NODE
from pools.models import LIVE, Block, BlockState, Cluster, Pool
from pools.platform import database
from pools.platform.admin import display, lists, pages
from pools.register import usage
from pools.sql import statements

MOST = 200  # shapes of a drawing
_MOST_POOLS = 40
_MOST_HOLDERS = 8  # of each pool, beside other pools or the object from which the drawing starts
_LETTERS = 24  # of a name in a shape; all of it on hover
_ROW, _HEIGHT = 30, 24  # units of the drawing from shape to shape, and of a shape
_COLUMN, _WIDTH = 285, 195  # four columns fit on a laptop
_FIND_HOLDERS = statements.read("pools/holders_of_pools")


@dataclass
class Branch:
    """An object or a group with its link; `usage` stands at the edge that leads to it.

    The path to each `start`, from which somebody came, is drawn thick; the first is the anchor `here`.
    """

    name: str
    url: str = ""
    kind: str = ""
    usage: str = ""
    children: list[Branch] = field(default_factory=list)
    start: bool = False

    @property
    def path(self) -> list[Branch]:
        """The shapes from this one to the start; none if it is not below."""
        below = next((child.path for child in self.children if child.path), [])
        return [self, *below] if below or self.start else []

    @property
    def label(self) -> str:
        """The name with its kind and usage, for hover and screen readers."""
        return ", ".join(filter(None, (f"{self.kind} {self.name}".strip(), self.usage)))


# Returns what runs on nodes of a cluster and the user may see: at most so many of each, and their rest.
Guests = Callable[[HttpRequest, Cluster, Sequence[str], int], Mapping[str, list[Branch]]]
GUESTS: list[Guests] = []  # filled by pools.extension


def rest(number: int, url: str) -> list[Branch]:
    """Return the shape of those that are not shown, with a link to the list of all; none for no rest."""
    name = gettext("+ %(number)s more") % {"number": display.digits(number)}
    return [Branch(name, url)] if number > 0 else []


def page(
    request: HttpRequest, row: Model, root: Branch, columns: Sequence[str], **context: Any
) -> HttpResponse:
    """Return the page of a tree; `columns` names its levels."""
    start = root.path[-1].name if root.path else row
    title = gettext("Where is %(object)s?") % {"object": start}
    drawing = _draw(root, columns, title)
    return pages.page(
        request, "topology.html", row, title=title, root=root, drawing=drawing, **context
    )


# --- clusters and pools ---------------------------------------------------------------------------


def of_cluster(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Show the cluster, its pools, who holds their blocks, and what runs there; of a `node` its pools."""
    node = request.GET.get("node", "").replace("\0", "")
    pools = Pool.objects.filter(cluster=cluster)
    holder = (NODE, node) if node and request.user.has_perm("pools.view_block") else None
    if holder:
        held = Block.objects.filter(holder_kind=NODE, holder_id=node, state=BlockState.HELD)
        pools = pools.filter(pk__in=held.values("pool"))
    return _of_pools(request, cluster, cluster, list(pools), holder)


def of_pool(request: HttpRequest, pool: Pool) -> HttpResponse:
    """Show the pool in its cluster, who holds its blocks, and what runs there; or where a `block` of it is."""
    rows = Block.objects.filter(pool=pool, pk=lists.parse_id(request.GET.get("block", "")))
    block = (
        rows.filter(state__in=LIVE).first() if request.user.has_perm("pools.view_block") else None
    )
    holder = (block.holder_kind, block.holder_id) if block else None
    return _of_pools(request, pool, pool.cluster, [pool], holder, block)


def _of_pools(
    request: HttpRequest,
    row: Cluster | Pool,
    cluster: Cluster,
    pools: list[Pool],
    start: tuple[str, str] | None = None,
    block: Block | None = None,
) -> HttpResponse:
    """Return the page of pools that starts at the row, at a holder, or at a block of a holder."""
    shown = sorted(pools, key=lambda pool: pool.name)[:_MOST_POOLS]
    usages = usage.usage_by_pool(shown)
    holders = _holders(shown, start) if request.user.has_perm("pools.view_block") else {}
    root = Branch(cluster.name, display.url_of(cluster), gettext("cluster"))
    nodes: dict[str, Branch] = {}
    for pool in shown:
        families = usages[pool.pk]
        utilization = usage_bars.highest_utilization(families)
        shape = Branch(pool.name, display.url_of(pool), gettext("pool"), utilization)
        shape.start = row == pool and block is None
        few = holders.get(pool.pk, [])
        for kind, holder_id, number in few:
            holder = _holder_shape(kind, holder_id, number)
            holder.start = (kind, holder_id) == start and block is None
            shape.children.append(holder)
            if kind == NODE:
                nodes.setdefault(holder_id, holder)
        if block is not None:
            held_by_start = block.state == BlockState.HELD and shape.children
            around = shape.children[0] if held_by_start else shape
            around.children.insert(0, _block_shape(block))
        if few:
            held = sum(counts.held for counts in families.values())
            query = {"pool": pool.pk, "state": BlockState.HELD}
            url = reverse("admin:pools_block_changelist", query=query)
            shape.children += rest(held - sum(number for _, _, number in few), url)
        root.children.append(shape)
    all_pools = reverse("admin:pools_pool_changelist", query={"cluster": cluster.pk})
    root.children += rest(Pool.objects.filter(cluster=cluster).count() - len(shown), all_pools)
    if isinstance(row, Pool):
        del root.children[1:]
    _add_guests(request, cluster, root, nodes)
    columns = [gettext("Cluster"), gettext("Pools"), gettext("Holders")]
    if any(holder.children for pool_shape in root.children for holder in pool_shape.children):
        columns.append(gettext("Pods, VMs and blocks"))
    return page(request, row, root, columns)


def _add_guests(
    request: HttpRequest, cluster: Cluster, root: Branch, nodes: Mapping[str, Branch]
) -> None:
    """Draw below each node what runs on it, as far as there is room for shapes."""
    room = MOST - 1 - sum(1 + len(pool.children) for pool in root.children) - 1
    if nodes and room >= len(nodes):
        for guests in GUESTS:
            for name, shapes in guests(request, cluster, list(nodes), room // len(nodes)).items():
                nodes[name].children += shapes


def _holders(
    pools: Sequence[Pool], start: tuple[str, str] | None
) -> dict[int, list[tuple[str, str, int]]]:
    """Return (kind, id, blocks) of some holders of each pool, that of the start first, in one query."""
    if not pools:
        return {}
    # The cluster, its pools, what is left out of them and of each of them; half of the rest is for what runs on nodes.
    most = (MOST - 2 - 2 * len(pools)) // len(pools) // 2
    if len(pools) > 1 or start:
        most = min(most, _MOST_HOLDERS)
    kind, holder_id = start or ("", "")
    values = {
        "pools": [pool.pk for pool in pools],
        "kind": kind,
        "holder": holder_id,
        "most": most,
    }
    holders: dict[int, list[tuple[str, str, int]]] = {}
    for pool_id, *holder in database.rows(_FIND_HOLDERS, values, prepare=False):
        holders.setdefault(pool_id, []).append((holder[0], holder[1], holder[2]))
    return holders


def _holder_shape(kind: str, holder_id: str, number: int) -> Branch:
    text = ngettext("%(number)s block", "%(number)s blocks", number)
    words = text % {"number": display.digits(number)}
    return Branch(holder_id, reverse("admin:find", query={"q": holder_id}), kind, words)


def _block_shape(block: Block) -> Branch:
    state = str(display.state_label(block.state))
    name = display.plain_cidr(block.cidr)
    return Branch(name, display.url_of(block), gettext("block"), state, start=True)


# --- drawing --------------------------------------------------------------------------------------


def _draw(root: Branch, columns: Sequence[str], title: str) -> SafeString:
    """Return the tree as SVG, from left to right; colours and patterns are in cadastre.css."""
    parts: list[SafeString] = []
    rows = _place(root, 0, 1, parts, root.path[-1] if root.path else None)
    height = (rows + 1) * _ROW
    width = (len(columns) - 1) * _COLUMN + _WIDTH + 2
    headings = format_html_join(
        "",
        '<text class="t-heading" x="{}" y="16">{}</text>',
        ((level * _COLUMN + 1, name) for level, name in enumerate(columns)),
    )
    return format_html(
        '<svg class="cad-topology" viewBox="0 0 {} {}" width="{}" height="{}" role="group" aria-label="{}">{}{}</svg>',
        width, height, width, height, title, headings, SafeString("".join(parts)),
    )  # fmt: skip


def _place(
    shape: Branch, level: int, first: int, parts: list[SafeString], here: Branch | None
) -> int:
    """Draw a shape in the row `first`, beside its first child; return the rows that it takes with its children."""
    x, rows = level * _COLUMN + 1, 0
    parts.append(_box(shape, x, first, is_here=shape is here))
    edges = []
    for child in shape.children:
        edges.append((bool(child.path), _edge(x + _WIDTH, first, first + rows, child)))
        rows += _place(child, level + 1, first + rows, parts, here)
    parts += [edge for _on_path, edge in sorted(edges)]  # the path above the others
    return max(1, rows)


def _edge(x: int, row: int, other: int, shape: Branch) -> SafeString:
    middle, end = x + 12, x + _COLUMN - _WIDTH
    start, y = (at_row * _ROW + _HEIGHT // 2 for at_row in (row, other))
    return format_html(
        '<path class="t-edge{}" d="M{} {}H{}V{}H{}"/><text class="t-usage" x="{}" y="{}">{}</text>',
        " t-path" * bool(shape.path), x, start, middle, y, end, end - 4, y - 3, shape.usage,
    )  # fmt: skip


def _box(shape: Branch, x: int, row: int, *, is_here: bool) -> SafeString:
    name = shape.name if len(shape.name) <= _LETTERS else f"{shape.name[: _LETTERS - 1]}…"
    y = row * _ROW
    body = format_html(
        '<title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="4"/><text x="{}" y="{}">{}</text>',
        shape.label, x, y, _WIDTH, _HEIGHT, x + 8, y + 16, name,
    )  # fmt: skip
    place = ' id="here"' * is_here + ' aria-current="location"' * shape.start
    return format_html(
        '<{} class="t-shape{}" {} aria-label="{}"{}>{}</{}>',
        "a" if shape.url else "g",
        " t-path" * bool(shape.path),
        format_html('href="{}"', shape.url) if shape.url else SafeString('role="img"'),
        shape.label,
        SafeString(place),
        body,
        "a" if shape.url else "g",
    )
