"""The map of a level of the address plan: its CIDRs as rectangles in address order, drawn as SVG.

This module does not read the database. A rectangle grows with the size of its CIDR, but not in proportion: a /24
beside a /9 would be a dot. What is used of a CIDR fills its rectangle from the bottom up.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.admin.clusters import address_map
from pools.core import forecast
from pools.core.observed.uses import Role
from pools.platform.admin import display
from pools.register.plan.tree import PlanRow

WIDTH = 480  # units of the drawing: about the pixels that it has beside the tree
HEIGHT, HEIGHT_OF_ROW, GREATEST_HEIGHT = 280, 8, 640
GAP, EDGE = 2, 6  # between rectangles; of the mark of what objects use
LINE, LETTER = 14, 6.8  # height of a line of text, width of a letter
STEPS_TO_HALF = 4  # prefix lengths by which a CIDR is longer that has half the area
LEAST = 1 / 16  # of the largest area
HIGH, FULL = 0.8, 1.0  # utilization from which a rectangle has another colour

LEGEND = (
    ("t-free", _("free")),
    ("t-fill", _("used")),
    ("t-high", _("80 % used or more")),
    ("t-full", _("full")),
    ("t-isolated", _("◇ isolated VM network")),
    ("t-overlap", _("▲ overlap")),
)
Url = Callable[[PlanRow], str]


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float


def draw(rows: Sequence[PlanRow], url: Url) -> SafeString:
    """Return the drawing of some rows. `url` returns the link of a rectangle."""
    height = min(HEIGHT + HEIGHT_OF_ROW * len(rows), GREATEST_HEIGHT)
    rectangles = divide(weights(rows), WIDTH, height)
    shapes = (
        (_draw_row(row, place, url(row)),) for row, place in zip(rows, rectangles, strict=True)
    )
    return format_html(
        '<svg class="cad-map cad-plan-map" viewBox="0 0 {} {}" role="group" aria-label="{}" data-columns="1">{}</svg>',
        WIDTH,
        height,
        gettext("Map of this level"),
        format_html_join("", "{}", shapes),
    )


def weights(rows: Sequence[PlanRow]) -> list[float]:
    """Return the areas of rows relative to the largest one, which is 1; those of IPv6 as if of 32 bits."""
    lengths = [row.cidr.prefixlen * 32 / row.cidr.max_prefixlen for row in rows]
    shortest = min(lengths, default=0)
    return [max(LEAST, 2 ** ((shortest - length) / STEPS_TO_HALF)) for length in lengths]


def divide(areas: Sequence[float], width: float, height: float) -> Iterator[Rectangle]:
    """Yield a rectangle for each area, in their order: strips from the top, each from the left (a strip treemap)."""
    scale = width * height / (sum(areas) or 1)
    strips: list[list[float]] = [[]]
    for area in (scale * area for area in areas):
        if strips[-1] and _aspect([*strips[-1], area], width) > _aspect(strips[-1], width):
            strips.append([])
        strips[-1].append(area)
    if len(strips) > 1 and _aspect(strips[-1], width) > _aspect(strips[-2] + strips[-1], width):
        strips[-2:] = [strips[-2] + strips[-1]]  # what is left over would be a line
    top = 0.0
    for strip in strips:
        yield from _place(strip, top, width)
        top += sum(strip) / width


def _aspect(strip: Sequence[float], width: float) -> float:
    """Return how far the rectangles of a strip are from squares on average; 1: they are squares."""
    height = sum(strip) / width
    return sum(max(area / height**2, height**2 / area) for area in strip) / len(strip)


def _place(strip: Sequence[float], top: float, width: float) -> Iterator[Rectangle]:
    height, left = sum(strip) / width, 0.0
    for area in strip:
        yield Rectangle(left, top, area / height, height)
        left += area / height


def name(row: PlanRow) -> str:
    """Return what has a CIDR, in a few words."""
    if row.free:
        return gettext("free")
    names = [container.name or gettext("container") for container in row.containers]
    names += [str(cluster) for cluster in row.clusters]
    names += [cidr.pool.name for cidr in row.pool_cidrs]
    names += [observed.object_name for observed in row.observed_cidrs]
    names += [reserved.reason or gettext("reserved") for reserved in row.reserved_ranges]
    names += [f"{counts.cluster} {counts.label}" for counts in row.address_counts]
    more = len(names) - 1 + row.more_pool_cidrs + row.more_observed_cidrs
    first = names[0] if names else ""
    return f"{first} +{more}" if more > 0 else first


def _title(row: PlanRow) -> str:
    """The tooltip and accessible name of a rectangle."""
    parts = [f"{display.plain_cidr(row.cidr)}: {name(row)}"]
    if row.isolated:
        parts.append(gettext("isolated VM network"))
    if row.utilization is not None:
        parts.append(gettext("%(percent)s used") % {"percent": _percent(row.utilization)})
    if row.overlaps:
        parts.append(gettext("overlap"))
    if row.free:
        size = display.size(row.cidr.num_addresses, row.cidr.version)
        parts.append(
            ngettext("%(size)s address", "%(size)s addresses", row.cidr.num_addresses)
            % {"size": size}
        )
    return ", ".join(parts)


def _percent(share: float) -> str:
    return "<1 %" if 0 < share < 0.01 else f"{forecast.whole_percent(share)} %"


def _draw_row(row: PlanRow, place: Rectangle, url: str) -> SafeString:
    title = _title(row)
    return format_html(
        '<a href="{}" aria-label="{}"><title>{}</title>{}{}</a>',
        url,
        title,
        title,
        SafeString("".join(_layers(row, place))),  # of constants and numbers
        format_html_join("", '<text x="{}" y="{}">{}</text>', _texts(row, place)),
    )


def _layers(row: PlanRow, place: Rectangle) -> Iterator[str]:
    left, top = place.x + GAP / 2, place.y + GAP / 2
    width, height = max(place.width - GAP, 1), max(place.height - GAP, 1)

    def rectangle(style: str, top: float, width: float, height: float) -> str:
        return f'<rect class="{style}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"/>'

    yield rectangle("t-free" if row.free else "t-used", top, width, height)
    if row.utilization:
        # A container that is divided wholly is no fault.
        fullest = row.utilization if row.usages else 0
        style = "t-full" if fullest >= FULL else "t-high" if fullest >= HIGH else "t-fill"
        filled = max(2, row.utilization * height)
        yield rectangle(style, top + height - filled, width, filled)
    if row.observed_cidrs or row.address_counts:
        role = row.observed_cidrs[0].role if row.observed_cidrs else row.address_counts[0].role
        yield rectangle(f"m-use-{address_map.COLORS[Role(role)]}", top, min(EDGE, width), height)
    if row.isolated:
        yield rectangle("t-isolated", top, width, height)
    if row.overlaps:
        yield rectangle("t-overlap", top, width, height)


def _texts(row: PlanRow, place: Rectangle) -> Iterator[tuple[str, str, str]]:
    """Yield (x, y, text) of the lines for which a rectangle has room; a name may be cut."""
    letters = int((place.width - EDGE - 8) / LETTER)
    marks = f"{'▲ ' if row.overlaps else ''}{'◇ ' if row.isolated else ''}"
    lines = [display.plain_cidr(row.cidr), f"{marks}{name(row)}"]
    if row.utilization is not None:
        lines.append(_percent(row.utilization))
    for number, line in enumerate(lines[: int((place.height - 6) / LINE)]):
        if len(line) > letters and (number != 1 or letters < 4):  # half a CIDR would be another one
            continue
        text = line if len(line) <= letters else f"{line[: letters - 1]}…"
        yield f"{place.x + EDGE + 4:.1f}", f"{place.y + LINE * (number + 1):.1f}", text
