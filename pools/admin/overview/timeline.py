"""The start page over time: charts from daily samples, for a range and a way to divide them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from pools.models import Cluster, Pool
from pools.models.pools import Category
from pools.platform.admin import display
from pools.platform.admin.charts import COLOURS, Chart, Series
from pools.register import usage
from pools.register.allocator import queues
from pools.register.utilization import series as utilization_series
from pools.register.utilization.series import Key

RANGES = (7, 30, 90, 365)
USUAL = 30
LINES = COLOURS - 1  # series with a name of their own; the others are one
_WORDS = {"category": "category", "cluster": "cluster", "org": "organisation", "env": "environment"}


@dataclass(frozen=True)
class Chosen:
    """What the page's address asks for; whatever else it says means the usual."""

    days: int
    by: str
    ways: tuple[str, ...]

    def links(self) -> dict[str, list[tuple[str, str, bool]]]:
        """(text, address, is it chosen) of the ranges and of the ways to divide."""
        return {
            "ranges": [
                (f"{days} days", f"?days={days}&by={self.by}#over-time", days == self.days)
                for days in RANGES
            ],
            "ways": [
                (_WORDS[by], f"?days={self.days}&by={by}#over-time", by == self.by)
                for by in self.ways
            ],
        }


def ranges(days: int) -> list[tuple[str, str, bool]]:
    """The links of a page that only has a range."""
    return [(f"{one} days", f"?days={one}#over-time", one == days) for one in RANGES]


def chosen_days(request: HttpRequest) -> int:
    days = request.GET.get("days", "")
    return int(days) if days in {str(one) for one in RANGES} else USUAL


def chosen(request: HttpRequest) -> Chosen:
    ways = ["category", "cluster"]
    if request.user.has_perm("pools.view_environment"):
        ways += ["org", "env"]
    by = request.GET.get("by", "")
    return Chosen(chosen_days(request), by if by in ways else "category", tuple(ways))


def charts(want: Chosen, largest: Sequence[Key]) -> list[Chart]:
    """Blocks in use, stacked, and how full the categories were; `largest` get a line each."""
    days = utilization_series.chart_days(want.days)
    found = [_in_use(want, list(largest)[:LINES], days)]
    if want.by == "category":
        found.append(_ratios(days))
    return [chart for chart in found if not chart.empty]


def largest(by: str) -> list[Key]:
    """Who has most in use now, most first."""
    found, _ = utilization_series.usage_by(by)
    return [(one.org, one.name) for one in found if not one.rest]


def _in_use(want: Chosen, names: Sequence[Key], days: Sequence[date]) -> Chart:
    found = utilization_series.used_over_time(want.by, names, days)
    others = found.pop(None)
    known = set(others)  # a day of which nothing is known has no sum at all
    urls = _urls(want.by, names)
    series = [
        Series(name_of(want.by, key), _values(values, days, known), urls.get(key, ""))
        for key, values in found.items()
        if key
    ]
    if any(others.values()):
        series.append(Series("all others", _values(others, days, known), rest=True))
    title = f"Blocks in use by {_WORDS[want.by]}"
    return Chart("used", title, _points(days), series, areas=True, note=_note(days))


def _ratios(days: Sequence[date]) -> Chart:
    labels = dict(Category.choices)
    found = sorted(
        utilization_series.ratios_over_time(days).items(), key=lambda item: -_last(item[1])
    )[:COLOURS]
    series = [
        Series(
            f"{labels.get(category, category)} IPv{family}",
            [100 * values[day] if day in values else None for day in days],
        )
        for (category, family), values in found
    ]
    title = "Utilization by category"
    return Chart("ratio", title, _points(days), series, percent=True, note=_note(days))


def of_pool(pool: Pool, days: Sequence[date]) -> list[Chart]:
    """A chart of each family: held and cooling blocks, stacked."""
    found = utilization_series.pool_usage_over_time(pool.pk, days)
    return [
        Chart(
            f"v{family}",
            f"IPv{family} blocks in use",
            _points(days),
            [Series(name, _counts(rows, days, read), url="") for name, read in _STATES],
            areas=True,
            note=_note(days),
        )
        for family, rows in found.items()
    ]


_STATES: tuple[tuple[str, Callable[[usage.Usage], int]], ...] = (
    ("held", lambda one: one.held),
    ("cooling", lambda one: one.cooling),
)


def failed(failures: queues.RecentRefusals) -> Chart:
    """Refusals of the last 24 hours by reason."""
    hours = range(queues.HOURS - 1, -1, -1)
    codes = sorted({one.code for one in failures.rows})
    counted: dict[tuple[str, int], int] = dict.fromkeys(
        ((code, hour) for code in codes for hour in hours), 0
    )
    for one in failures.rows:
        if (one.code, one.hours_ago) in counted:
            counted[one.code, one.hours_ago] += one.count
    series = [Series(code, [counted[code, hour] for hour in hours]) for code in codes]
    points = [f"{hour + 1} h ago" if hour else "the last hour" for hour in hours]
    return Chart("failed", "Refused allocations by reason", points, series, areas=True, over="Hour")


def _counts(
    rows: Mapping[date, usage.Usage], days: Sequence[date], read: Callable[[usage.Usage], int]
) -> list[int | None]:
    return [read(rows[day]) if day in rows else None for day in days]


def _values(values: Mapping[date, int], days: Sequence[date], known: set[date]) -> list[int | None]:
    return [values.get(day, 0) if day in known else None for day in days]


def _last(values: Mapping[date, float]) -> float:
    return values[max(values)]


def _points(days: Sequence[date]) -> list[str]:
    """As short as they are clear: the year where it is not that of the last day."""
    end = days[-1].year
    return [f"{day.day} {day:%b}" if day.year == end else f"{day.day} {day:%b %Y}" for day in days]


def _note(days: Sequence[date]) -> str:
    step = (days[1] - days[0]).days if len(days) > 1 else 1
    return f"Each point is one of {step} days." if step > 1 else ""


def name_of(by: str, key: Key) -> str:
    org, name = key
    if by == "category":
        return str(dict(Category.choices).get(name, name))
    if by == "env":
        return f"{org}/{name}" if org else name
    return name or "without an organisation"


def _urls(by: str, names: Sequence[Key]) -> dict[Key, str]:
    if by == "cluster":
        rows = Cluster.objects.filter(name__in=[name for _, name in names])
        return {("", row.name): display.url_of(row) for row in rows}
    if by == "category":
        pools = "admin:pools_pool_changelist"
        return {key: reverse(pools, query={"category": key[1]}) for key in names}
    return {key: reverse("admin:find", query={"q": key[1]}) for key in names if key[1]}


def sections(request: HttpRequest) -> dict[str, Any]:
    """What the template of the start page shows of the past."""
    want = chosen(request)
    return {"charts": charts(want, largest(want.by)), "chosen": want.links()}
