"""Forecasts as text: `full in about 5 weeks, between 12 Dec and 3 Feb`."""

from __future__ import annotations

from datetime import date

from pools.core import forecast
from pools.core.forecast import ForecastState

_UNITS = ((3 * 365, 365, "year"), (100, 30, "month"), (21, 7, "week"))  # from, days, name


def describe(
    state: ForecastState,
    *,
    today: date,
    missing: int = 0,
    day: date | None = None,
    earliest: date | None = None,
    latest: date | None = None,
) -> str:
    """Return a forecast with its interval as part of a sentence, without a full stop."""
    if state == ForecastState.FULL:
        return "exhausted now"
    if state == ForecastState.TOO_LITTLE_HISTORY:
        available = forecast.MIN_HISTORY - missing
        return f"no forecast yet: {_format_count(available, 'day')} of history, {forecast.MIN_HISTORY} are needed"
    if day is not None:
        between = _format_range(earliest, latest, today)
        return f"{summarize(state, today=today, day=day)}, {between}"
    base = summarize(state, today=today)
    return f"{base}, {_format_date(earliest, today)} at the earliest" if earliest else base


def summarize(state: ForecastState, *, today: date, day: date | None = None) -> str:
    """Return a forecast without its interval, for a table column."""
    if day is not None and state != ForecastState.FULL:
        return f"full in about {_format_duration((day - today).days)}"
    return {
        ForecastState.FULL: "exhausted now",
        ForecastState.TOO_LITTLE_HISTORY: "not enough history",
        ForecastState.NOT_GROWING: "no growth",
    }.get(state, f"not full within {_format_count(forecast.HORIZON // 365, 'year')}")


def _format_range(earliest: date | None, latest: date | None, today: date) -> str:
    first = _format_date(earliest or today, today)
    if latest is None:
        return f"{first} at the earliest, perhaps never"
    last = _format_date(latest, today)
    return f"on {first}" if first == last else f"between {first} and {last}"


def _format_date(day: date, today: date) -> str:
    """Return `12 Dec`; a day more than half a year away has its year."""
    near = abs((day - today).days) < 183
    return f"{day.day} {day:%b}" if near else f"{day.day} {day:%b %Y}"


def _format_duration(days: int) -> str:
    for least, size, unit in _UNITS:
        if days >= least:
            return _format_count(round(days / size), unit)
    return _format_count(max(days, 1), "day")


def _format_count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"
