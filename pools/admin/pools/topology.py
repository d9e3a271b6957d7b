"""Topology: a cluster, its pools and who holds their blocks as a drawing whose shapes are links, and as a nested list.

A page of an app makes a tree of `Branch`es, of at most MOST shapes, and shows it with `page`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from pools.admin.pools import usage_bars
from pools.models import Cluster, Pool
from pools.models.blocks import BlockState
from pools.platform import database
from pools.platform.admin import display, pages
from pools.register import usage

MOST = 200  # shapes of a drawing
_MOST_POOLS = 40
_MOST_HOLDERS = 8  # of each pool, beside other pools
_LETTERS = 30  # of a name in a shape; all of it on hover
_ROW, _HEIGHT = 30, 24  # units of the drawing from shape to shape, and of a shape
_COLUMN, _WIDTH = 330, 240
_FEW_BLOCKS = """
    SELECT few.pool_id, few.holder_kind, few.holder_id, count(*)
    FROM unnest(%s::bigint[]) AS pool (id) CROSS JOIN LATERAL (
        SELECT pool_id, holder_kind, holder_id FROM pools_block
        WHERE pool_id = pool.id AND state = %s LIMIT %s
    ) AS few GROUP BY 1, 2, 3 ORDER BY 2, 3
"""


@dataclass
class Branch:
    """An object or a group with its link; `usage` stands at the edge that leads to it."""

    name: str
    url: str = ""
    kind: str = ""
    usage: str = ""
    children: list[Branch] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The name with its kind and usage, for hover and screen readers."""
        return ", ".join(filter(None, (f"{self.kind} {self.name}".strip(), self.usage)))


def rest(number: int, url: str) -> list[Branch]:
    """Return the shape of those that are not shown, with a link to the list of all; none for no rest."""
    name = gettext("+ %(number)s more") % {"number": display.digits(number)}
    return [Branch(name, url)] if number > 0 else []


def page(
    request: HttpRequest, row: Model, root: Branch, columns: Sequence[str], **context: Any
) -> HttpResponse:
    """Return the page of a tree; `columns` names its levels."""
    title = gettext("Where is %(object)s?") % {"object": row}
    drawing = _draw(root, columns, title)
    return pages.page(
        request, "topology.html", row, title=title, root=root, drawing=drawing, **context
    )


# --- clusters and pools ---------------------------------------------------------------------------


def of_cluster(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Show the cluster, its pools and who holds their blocks."""
    return _of_pools(request, cluster, cluster, list(Pool.objects.filter(cluster=cluster)))


def of_pool(request: HttpRequest, pool: Pool) -> HttpResponse:
    """Show the pool in its cluster, and who holds its blocks."""
    return _of_pools(request, pool, pool.cluster, [pool])


def _of_pools(
    request: HttpRequest, row: Cluster | Pool, cluster: Cluster, pools: list[Pool]
) -> HttpResponse:
    shown = sorted(pools, key=lambda pool: pool.name)[:_MOST_POOLS]
    usages = usage.usage_by_pool(shown)
    holders = _holders(shown) if request.user.has_perm("pools.view_block") else {}
    root = Branch(cluster.name, display.url_of(cluster), gettext("cluster"))
    for pool in shown:
        families = usages[pool.pk]
        held = sum(counts.held for counts in families.values())
        few = holders.get(pool.pk, [])
        children = [_holder_shape(*holder) for holder in few]
        if few:
            query = {"pool": pool.pk, "state": BlockState.HELD}
            url = reverse("admin:pools_block_changelist", query=query)
            children += rest(held - sum(number for _, _, number in few), url)
        utilization = usage_bars.highest_utilization(families)
        root.children.append(
            Branch(pool.name, display.url_of(pool), gettext("pool"), utilization, children)
        )
    all_pools = reverse("admin:pools_pool_changelist", query={"cluster": cluster.pk})
    root.children += rest(len(pools) - len(shown), all_pools)
    columns = (gettext("Cluster"), gettext("Pools"), gettext("Nodes, VMs and others that hold"))
    return page(request, row, root, columns)


def _holders(pools: Sequence[Pool]) -> dict[int, list[tuple[str, str, int]]]:
    """Return (kind, id, blocks) of the holders of some blocks of each pool, in one query."""
    if not pools:
        return {}
    # The cluster, its pools, what is left out of them and of each of them.
    most = (MOST - 2 - 2 * len(pools)) // len(pools)
    if len(pools) > 1:
        most = min(most, _MOST_HOLDERS)
    values = ([pool.pk for pool in pools], BlockState.HELD.value, most)
    holders: dict[int, list[tuple[str, str, int]]] = {}
    for pool_id, kind, holder_id, number in database.rows(_FEW_BLOCKS, values):
        holders.setdefault(pool_id, []).append((kind, holder_id, number))
    return holders


def _holder_shape(kind: str, holder_id: str, number: int) -> Branch:
    text = ngettext("%(number)s block", "%(number)s blocks", number)
    words = text % {"number": display.digits(number)}
    return Branch(holder_id, reverse("admin:find", query={"q": holder_id}), kind, words)


# --- drawing --------------------------------------------------------------------------------------


def _draw(root: Branch, columns: Sequence[str], title: str) -> SafeString:
    """Return the tree as SVG, from left to right; colours and patterns are in cadastre.css."""
    parts: list[SafeString] = []
    rows = _place(root, 0, 1, parts)
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


def _place(shape: Branch, level: int, first: int, parts: list[SafeString]) -> int:
    """Draw a shape in the row `first`, beside its first child; return the rows that it takes with its children."""
    x, rows, ends = level * _COLUMN + 1, 0, []
    for child in shape.children:
        taken = _place(child, level + 1, first + rows, parts)
        ends.append((first + rows, child.usage))
        rows += taken
    parts += _edges(x + _WIDTH, first, ends)
    parts.append(_box(shape, x, first))
    return max(1, rows)


def _edges(x: int, row: int, ends: Sequence[tuple[int, str]]) -> Iterator[SafeString]:
    middle, start, end = x + 12, row * _ROW + _HEIGHT // 2, x + _COLUMN - _WIDTH
    for other, words in ends:
        y = other * _ROW + _HEIGHT // 2
        yield format_html(
            '<path class="t-edge" d="M{} {}H{}V{}H{}"/><text class="t-usage" x="{}" y="{}">{}</text>',
            x, start, middle, y, end, end - 4, y - 3, words,
        )  # fmt: skip


def _box(shape: Branch, x: int, row: int) -> SafeString:
    name = shape.name if len(shape.name) <= _LETTERS else f"{shape.name[: _LETTERS - 1]}…"
    y = row * _ROW
    body = format_html(
        '<title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="4"/><text x="{}" y="{}">{}</text>',
        shape.label, x, y, _WIDTH, _HEIGHT, x + 8, y + 16, name,
    )  # fmt: skip
    if not shape.url:
        return format_html(
            '<g class="t-shape" role="img" aria-label="{}">{}</g>', shape.label, body
        )
    return format_html(
        '<a class="t-shape" href="{}" aria-label="{}">{}</a>', shape.url, shape.label, body
    )
