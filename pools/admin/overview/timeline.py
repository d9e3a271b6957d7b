"""Charts of the overview and of pools, drawn from daily samples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.models import Category, Cluster, Pool
from pools.platform.admin import display
from pools.platform.admin.charts import COLOURS, Chart, Series
from pools.register import usage
from pools.register.allocator import queues
from pools.register.utilization import series as utilization_series
from pools.register.utilization.series import Key

RANGES = (7, 30, 90, 365)
DEFAULT_DAYS = 30
LINES = COLOURS - 1  # series with a name; all others share one
_DIMENSION_LABELS = {
    "category": _("category"),
    "cluster": _("cluster"),
    "org": _("organization"),
    "env": _("environment"),
}
_USED_TITLES = {
    "category": _("Used blocks by category"),
    "cluster": _("Used blocks by cluster"),
    "org": _("Used blocks by organization"),
    "env": _("Used blocks by environment"),
}


@dataclass(frozen=True)
class ChartChoice:
    """Range and grouping of the charts, from the query string; invalid values mean the default."""

    days: int
    dimension: str
    dimensions: tuple[str, ...]  # those that the user may group by

    def links(self) -> dict[str, list[tuple[str, str, bool]]]:
        """Return the links (label, query string, is it chosen) of the ranges and of the groupings."""
        return {
            "ranges": [
                (
                    _days_label(days),
                    f"?days={days}&by={self.dimension}#over-time",
                    days == self.days,
                )
                for days in RANGES
            ],
            "dimensions": [
                (
                    str(_DIMENSION_LABELS[dimension]),
                    f"?days={self.days}&by={dimension}#over-time",
                    dimension == self.dimension,
                )
                for dimension in self.dimensions
            ],
        }


def _days_label(days: int) -> str:
    return ngettext("%(number)s day", "%(number)s days", days) % {"number": days}


def range_links(days: int) -> list[tuple[str, str, bool]]:
    """Return the range links of a page without groupings."""
    return [(_days_label(length), f"?days={length}#over-time", length == days) for length in RANGES]


def parse_days(request: HttpRequest) -> int:
    days = request.GET.get("days", "")
    return int(days) if days in {str(length) for length in RANGES} else DEFAULT_DAYS


def parse_choice(request: HttpRequest) -> ChartChoice:
    dimensions = ["category", "cluster"]
    if request.user.has_perm("pools.view_environment"):
        dimensions += ["org", "env"]
    dimension = request.GET.get("by", "")
    return ChartChoice(
        parse_days(request), dimension if dimension in dimensions else "category", tuple(dimensions)
    )


def build_charts(choice: ChartChoice, keys: Sequence[Key]) -> list[Chart]:
    """Return the charts of used blocks and, by category, of utilization.

    The first `keys` get a series each; all others share one.
    """
    days = utilization_series.chart_days(choice.days)
    charts = [_in_use(choice, list(keys)[:LINES], days)]
    if choice.dimension == "category":
        charts.append(_ratios(days))
    return [chart for chart in charts if not chart.empty]


def largest_keys(dimension: str) -> list[Key]:
    """Return the keys with used blocks, those with the most first."""
    entries, _counted_at = utilization_series.usage_by(dimension)
    return [(entry.org, entry.name) for entry in entries if not entry.rest]


def _in_use(choice: ChartChoice, names: Sequence[Key], days: Sequence[date]) -> Chart:
    values_by_key = utilization_series.used_over_time(choice.dimension, names, days)
    rest = values_by_key.pop(None)
    sampled_days = set(rest)  # a day without samples has no sum either
    urls = _urls(choice.dimension, names)
    series = [
        Series(
            display_name(choice.dimension, key),
            _values(values, days, sampled_days),
            urls.get(key, ""),
        )
        for key, values in values_by_key.items()
        if key
    ]
    if any(rest.values()):
        series.append(Series(gettext("Other"), _values(rest, days, sampled_days), rest=True))
    title = str(_USED_TITLES[choice.dimension])
    return Chart("used", title, _points(days), series, areas=True, note=_note(days))


def _ratios(days: Sequence[date]) -> Chart:
    labels = dict(Category.choices)
    ratios = sorted(
        utilization_series.ratios_over_time(days).items(), key=lambda item: -_last(item[1])
    )[:COLOURS]
    series = [
        Series(
            f"{labels.get(category, category)} IPv{family}",
            [100 * values[day] if day in values else None for day in days],
        )
        for (category, family), values in ratios
    ]
    title = gettext("Utilization over time, by category")
    return Chart("ratio", title, _points(days), series, percent=True, note=_note(days))


def pool_charts(pool: Pool, days: Sequence[date]) -> list[Chart]:
    """Return one chart per IP family: held and cooling blocks, stacked."""
    usage_by_family = utilization_series.pool_usage_over_time(pool.pk, days)
    return [
        Chart(
            f"v{family}",
            gettext("Used IPv%(family)s blocks") % {"family": family},
            _points(days),
            [Series(str(label), _counts(rows, days, read), url="") for label, read in _STATES],
            areas=True,
            note=_note(days),
        )
        for family, rows in usage_by_family.items()
    ]


_STATES: tuple[tuple[Any, Callable[[usage.Usage], int]], ...] = (
    (_("allocated"), lambda counts: counts.held),
    (_("in cooldown"), lambda counts: counts.cooling),
)


def refusal_chart(failures: queues.RecentRefusals) -> Chart:
    """Return the chart of failed allocations in the last 24 hours, by reason."""
    hours = range(queues.HOURS - 1, -1, -1)
    codes = sorted({row.code for row in failures.rows})
    counted: dict[tuple[str, int], int] = dict.fromkeys(
        ((code, hour) for code in codes for hour in hours), 0
    )
    for row in failures.rows:
        if (row.code, row.hours_ago) in counted:
            counted[row.code, row.hours_ago] += row.count
    series = [Series(code, [counted[code, hour] for hour in hours]) for code in codes]
    points = [
        gettext("%(hours)s h ago") % {"hours": hour + 1} if hour else gettext("last hour")
        for hour in hours
    ]
    return Chart(
        "failed",
        gettext("Failed allocations by reason"),
        points,
        series,
        areas=True,
        over=gettext("Hour"),
    )


def _counts(
    rows: Mapping[date, usage.Usage], days: Sequence[date], read: Callable[[usage.Usage], int]
) -> list[int | None]:
    return [read(rows[day]) if day in rows else None for day in days]


def _values(
    values: Mapping[date, int], days: Sequence[date], sampled_days: set[date]
) -> list[int | None]:
    return [values.get(day, 0) if day in sampled_days else None for day in days]


def _last(values: Mapping[date, float]) -> float:
    return values[max(values)]


def _points(days: Sequence[date]) -> list[str]:
    """Return a label for each day; it has a year if that differs from the year of the last day."""
    end = days[-1].year
    return [f"{day.day} {day:%b}" if day.year == end else f"{day.day} {day:%b %Y}" for day in days]


def _note(days: Sequence[date]) -> str:
    step = (days[1] - days[0]).days if len(days) > 1 else 1
    return (
        ngettext("One point per %(number)s day.", "One point per %(number)s days.", step)
        % {"number": step}
        if step > 1
        else ""
    )


def display_name(dimension: str, key: Key) -> str:
    org, name = key
    if dimension == "category":
        return str(dict(Category.choices).get(name, name))
    if dimension == "env":
        return f"{org}/{name}" if org else name
    return name or gettext("no organization")


def _urls(dimension: str, names: Sequence[Key]) -> dict[Key, str]:
    if dimension == "cluster":
        rows = Cluster.objects.filter(name__in=[name for _org, name in names])
        return {("", row.name): display.url_of(row) for row in rows}
    if dimension == "category":
        pools = "admin:pools_pool_changelist"
        return {key: reverse(pools, query={"category": key[1]}) for key in names}
    return {key: reverse("admin:find", query={"q": key[1]}) for key in names if key[1]}


def sections(request: HttpRequest) -> dict[str, Any]:
    """Return the template context of the section "Over time"."""
    choice = parse_choice(request)
    return {
        "charts": build_charts(choice, largest_keys(choice.dimension)),
        "choices": choice.links(),
    }
