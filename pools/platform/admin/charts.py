"""Charts over time, drawn on the server: an SVG of lines or stacked areas, its scales, legend and table.

The SVG is stretched to the width of the page and therefore contains no text; scales and legend are HTML
around it. Series differ in colour, lightness and, for lines, in their dashes (cadastre.css).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from pools.core import forecast
from pools.platform.admin import display

WIDTH, HEIGHT = 1000, 240  # units of the drawing
COLOURS = 6  # series with distinct colours
Value = float | int | None


@dataclass(frozen=True)
class Series:
    """The values of one line or area, one per point in time; None where the value is unknown."""

    name: str
    values: Sequence[Value]
    url: str = ""
    rest: bool = False  # the sum of all series that have none of their own; drawn in grey


@dataclass(frozen=True)
class Chart:
    """A chart. `points` are the labels of the points in time, oldest first; `areas` are stacked."""

    key: str  # unique on its page
    title: str
    points: Sequence[str]
    series: Sequence[Series]
    areas: bool = False
    percent: bool = False
    note: str = ""
    over: str = field(
        default_factory=lambda: _("Day")
    )  # heading of the column of points in the table

    @property
    def empty(self) -> bool:
        return all(value is None for series in self.series for value in series.values)

    @property
    def top(self) -> float:
        """The upper end of the scale: a round number that is not below any value."""
        stacks = [
            [value for value in column if value is not None]
            for column in zip(*(series.values for series in self.series), strict=True)
        ]
        greatest = max(
            (sum(stack) if self.areas else max(stack) for stack in stacks if stack), default=0
        )
        return _round_up(greatest, 100 if self.percent else None)

    @property
    def scale(self) -> list[str]:
        """The labels of the scale, from top to bottom."""
        return [self.words(self.top * part) for part in (1, 0.5, 0)]

    @property
    def ends(self) -> list[str]:
        """The labels of the first, a middle and the last point."""
        points = self.points
        return (
            [points[0], points[len(points) // 2], points[-1]] if len(points) > 2 else list(points)
        )

    @property
    def legend(self) -> list[tuple[Series, str, str]]:
        """(series, its CSS class, its newest value) of each series."""
        return [
            (series, _class(series, number), self.newest(series))
            for number, series in enumerate(self.series)
        ]

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The chart as table rows, newest first, without points at which no series has a value."""
        columns = zip(*(series.values for series in self.series), strict=True)
        rows = [
            (point, [self.words(value) for value in values])
            for point, values in zip(self.points, columns, strict=True)
            if any(value is not None for value in values)
        ]
        return rows[::-1]

    @property
    def summary(self) -> str:
        """The description of the drawing for screen readers."""
        values = "; ".join(f"{series.name} {self.newest(series)}" for series in self.series)
        return _("From %(first)s to %(last)s. Newest values: %(values)s.") % {
            "first": self.points[0],
            "last": self.points[-1],
            "values": values,
        }

    def newest(self, series: Series) -> str:
        return self.words(
            next((value for value in reversed(series.values) if value is not None), None)
        )

    def words(self, value: Value) -> str:
        if value is None:
            return "\N{EN DASH}"
        if self.percent:
            percent = forecast.whole_percent(value / 100)
            return "<1 %" if value > 0 and not percent else f"{percent} %"
        return display.digits(int(value)) if value == int(value) else f"{value:.1f}"

    def svg(self) -> SafeString:
        """Return the drawing; each point shows its values on hover."""
        drawn = self._areas() if self.areas else self._lines()
        return format_html(
            '<svg class="cad-lines" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"'
            ' aria-labelledby="{}-t {}-d"><title id="{}-t">{}</title><desc id="{}-d">{}</desc>'
            '<g class="c-grid">{}</g>{}{}</svg>',
            WIDTH,
            HEIGHT,
            self.key,
            self.key,
            self.key,
            self.title,
            self.key,
            self.summary,
            format_html_join(
                "", '<path d="M0 {}H{}"/>', ((HEIGHT * n // 4, WIDTH) for n in range(5))
            ),
            format_html_join("", '<path class="{}" d="{}"/>', drawn),
            format_html_join(
                "",
                '<rect class="c-hover" x="{}" width="{}" height="{}"><title>{}</title></rect>',
                self._hovers(),
            ),
        )

    def _x(self, index: int) -> float:
        return round(WIDTH * index / max(1, len(self.points) - 1), 1)

    def _y(self, value: float) -> float:
        return round(HEIGHT * (1 - value / self.top), 1)

    def _lines(self) -> Iterator[tuple[str, str]]:
        for number, series in enumerate(self.series):
            path = "".join(_line(run) for run in self._runs(series.values))
            yield f"c-line {_class(series, number)}", path

    def _areas(self) -> Iterator[tuple[str, str]]:
        """Yield (CSS class, path) from the bottom up; each area starts at the sum of those below it."""
        below = [0.0] * len(self.points)
        for number, series in enumerate(self.series):
            sums = [low + (value or 0) for low, value in zip(below, series.values, strict=True)]
            tops = [
                None if value is None else total
                for total, value in zip(sums, series.values, strict=True)
            ]
            path = ""
            for run in self._runs(tops):
                baseline = [(x, self._y(below[index])) for index, x, _ in reversed(run)]
                path += _line(run) + "".join(f"L{x} {y}" for x, y in baseline) + "Z"
            yield f"c-area {_class(series, number)}", path
            below = sums

    def _runs(self, values: Sequence[Value]) -> Iterator[list[tuple[int, float, float]]]:
        """Yield runs of consecutive known values as (index, x, y)."""
        tops = enumerate(values)
        for has_values, run in itertools.groupby(tops, key=lambda point: point[1] is not None):
            if has_values:
                yield [
                    (index, self._x(index), self._y(value))
                    for index, value in run
                    if value is not None
                ]

    def _hovers(self) -> Iterator[tuple[float, float, int, str]]:
        wide = WIDTH / max(1, len(self.points) - 1)
        for index, point in enumerate(self.points):
            shown = [series for series in self.series if series.values[index] is not None]
            if shown:
                labels = "\n".join(
                    f"{series.name}: {self.words(series.values[index])}" for series in shown
                )
                yield (
                    round(self._x(index) - wide / 2, 1),
                    round(wide, 1),
                    HEIGHT,
                    f"{point}\n{labels}",
                )


def _class(series: Series, number: int) -> str:
    return "c-rest" if series.rest else f"c-{number % COLOURS}"


def _line(run: list[tuple[int, float, float]]) -> str:
    """Return an SVG path through the points; a single point becomes a very short line."""
    path = "".join(f"{'L' if index else 'M'}{x} {y}" for index, (_, x, y) in enumerate(run))
    return path if len(run) > 1 else f"{path}h0.1"


def _round_up(value: float, limit: int | None) -> float:
    """Return 1, 2 or 5 times a power of ten that is at least `value`, at most `limit` if value is."""
    size: float = 1
    while size < value:
        size *= 10
    steps: tuple[Callable[[float], float], ...] = (lambda s: s / 5, lambda s: s / 2, lambda s: s)
    rounded = next(step(size) for step in steps if step(size) >= value or step(size) == size)
    return min(max(rounded, 1), limit) if limit and value <= limit else max(rounded, 1)
