"""Lines and areas over time, drawn on the server: one SVG drawing, its scales, its legend, its table.

The drawing is stretched to the width of the page, so it holds no text: scales and legend stand around
it. Series differ in colour, lightness and, as lines, in their dashes (cadastre.css).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from pools.core import shares
from pools.platform.admin import display

WIDTH, HEIGHT = 1000, 240  # units of the drawing
COLOURS = 6  # series that can be told apart
Value = float | int | None


@dataclass(frozen=True)
class Series:
    """One value for each point in time; None where nothing is known."""

    name: str
    values: Sequence[Value]
    url: str = ""
    rest: bool = False  # the sum of many, drawn in grey


@dataclass(frozen=True)
class Chart:
    """`points` are the names of the points in time, oldest first; `areas` are stacked."""

    key: str  # unique on its page
    title: str
    points: Sequence[str]
    series: Sequence[Series]
    areas: bool = False
    percent: bool = False
    note: str = ""
    over: str = "Day"  # what a point is

    @property
    def empty(self) -> bool:
        return all(value is None for one in self.series for value in one.values)

    @property
    def top(self) -> float:
        """The upper end of the scale: a round number that all values fit below."""
        stacks = [
            [value for value in column if value is not None]
            for column in zip(*(one.values for one in self.series), strict=True)
        ]
        most = max((sum(one) if self.areas else max(one) for one in stacks if one), default=0)
        return _round_up(most, 100 if self.percent else None)

    @property
    def scale(self) -> list[str]:
        """Labels from top to bottom."""
        return [self.words(self.top * part) for part in (1, 0.5, 0)]

    @property
    def ends(self) -> list[str]:
        """The first, a middle and the last point's name."""
        points = self.points
        return (
            [points[0], points[len(points) // 2], points[-1]] if len(points) > 2 else list(points)
        )

    @property
    def legend(self) -> list[tuple[Series, str, str]]:
        """(series, its class, its newest value)."""
        return [(one, _class(one, at), self.newest(one)) for at, one in enumerate(self.series)]

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The same as a table, newest first, without the points of which nothing is known."""
        columns = zip(*(one.values for one in self.series), strict=True)
        found = [
            (point, [self.words(value) for value in values])
            for point, values in zip(self.points, columns, strict=True)
            if any(value is not None for value in values)
        ]
        return found[::-1]

    @property
    def summary(self) -> str:
        """What a screen reader tells of the drawing."""
        told = "; ".join(f"{one.name} {self.newest(one)}" for one in self.series)
        return f"From {self.points[0]} to {self.points[-1]}. At the end: {told}."

    def newest(self, one: Series) -> str:
        return self.words(
            next((value for value in reversed(one.values) if value is not None), None)
        )

    def words(self, value: Value) -> str:
        if value is None:
            return "\N{EN DASH}"
        if self.percent:
            whole = shares.whole_percent(value / 100)
            return "<1 %" if value > 0 and not whole else f"{whole} %"
        return display.digits(int(value)) if value == int(value) else f"{value:.1f}"

    def svg(self) -> SafeString:
        """The drawing; each point tells its values on hover."""
        drawn = self._areas() if self.areas else self._lines()
        return format_html(
            '<svg class="cad-lines" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"'
            ' aria-labelledby="{}-t {}-d"><title id="{}-t">{}</title><desc id="{}-d">{}</desc>'
            '<g class="c-grid">{}</g>{}{}</svg>',
            WIDTH, HEIGHT, self.key, self.key, self.key, self.title, self.key, self.summary,
            format_html_join("", '<path d="M0 {}H{}"/>', ((HEIGHT * n // 4, WIDTH) for n in range(5))),
            format_html_join("", '<path class="{}" d="{}"/>', drawn),
            format_html_join(
                "", '<rect class="c-hover" x="{}" width="{}" height="{}"><title>{}</title></rect>',
                self._hovers(),
            ),
        )  # fmt: skip

    def _x(self, at: int) -> float:
        return round(WIDTH * at / max(1, len(self.points) - 1), 1)

    def _y(self, value: float) -> float:
        return round(HEIGHT * (1 - value / self.top), 1)

    def _lines(self) -> Iterator[tuple[str, str]]:
        for number, one in enumerate(self.series):
            path = "".join(_line(run) for run in self._runs(one.values))
            yield f"c-line {_class(one, number)}", path

    def _areas(self) -> Iterator[tuple[str, str]]:
        """From the bottom up; each area reaches from the one below it to its own sum."""
        below = [0.0] * len(self.points)
        for number, one in enumerate(self.series):
            sums = [low + (value or 0) for low, value in zip(below, one.values, strict=True)]
            known = [
                None if value is None else total
                for total, value in zip(sums, one.values, strict=True)
            ]
            path = ""
            for run in self._runs(known):
                back = [(x, self._y(below[at])) for at, x, _ in reversed(run)]
                path += _line(run) + "".join(f"L{x} {y}" for x, y in back) + "Z"
            yield f"c-area {_class(one, number)}", path
            below = sums

    def _runs(self, values: Sequence[Value]) -> Iterator[list[tuple[int, float, float]]]:
        """(number, x, y) of points without a gap between them."""
        tops = enumerate(values)
        for known, run in itertools.groupby(tops, key=lambda point: point[1] is not None):
            if known:
                yield [(at, self._x(at), self._y(value)) for at, value in run if value is not None]

    def _hovers(self) -> Iterator[tuple[float, float, int, str]]:
        wide = WIDTH / max(1, len(self.points) - 1)
        for at, point in enumerate(self.points):
            known = [one for one in self.series if one.values[at] is not None]
            if known:
                told = "\n".join(f"{one.name}: {self.words(one.values[at])}" for one in known)
                yield round(self._x(at) - wide / 2, 1), round(wide, 1), HEIGHT, f"{point}\n{told}"


def _class(one: Series, number: int) -> str:
    return "c-rest" if one.rest else f"c-{number % COLOURS}"


def _line(run: list[tuple[int, float, float]]) -> str:
    """A path through the points; a single one is a dot (a line of hardly any length)."""
    path = "".join(f"{'L' if at else 'M'}{x} {y}" for at, (_, x, y) in enumerate(run))
    return path if len(run) > 1 else f"{path}h0.1"


def _round_up(most: float, limit: int | None) -> float:
    """1, 2 or 5 times a power of ten, at least `most`; between a percent and `limit`."""
    size: float = 1
    while size < most:
        size *= 10
    steps: tuple[Callable[[float], float], ...] = (lambda s: s / 5, lambda s: s / 2, lambda s: s)
    found = next(step(size) for step in steps if step(size) >= most or step(size) == size)
    return min(max(found, 1), limit) if limit and most <= limit else max(found, 1)
