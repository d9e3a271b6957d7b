"""A forecast as people say it: `full in about 5 weeks, between 12 Dec and 3 Feb`."""

from __future__ import annotations

from datetime import date

from pools.core import forecast
from pools.core.forecast import ForecastState

_UNITS = ((3 * 365, 365, "year"), (100, 30, "month"), (21, 7, "week"))  # from, days, name


def sentence(
    state: ForecastState,
    *,
    today: date,
    missing: int = 0,
    day: date | None = None,
    earliest: date | None = None,
    latest: date | None = None,
) -> str:
    """What a forecast says, with its range; a part of a sentence, without a full stop."""
    if state == ForecastState.FULL:
        return "full now"
    if state == ForecastState.TOO_LITTLE_HISTORY:
        had = forecast.NEEDED - missing
        return f"no forecast yet: {_count(had, 'day')} of history, {forecast.NEEDED} are needed"
    if day is not None:
        between = _range(earliest, latest, today)
        return f"{short(state, today=today, day=day)}, {between}"
    base = short(state, today=today)
    return f"{base}, {_on(earliest, today)} at the earliest" if earliest else base


def short(state: ForecastState, *, today: date, day: date | None = None) -> str:
    """The same without the range, for a column."""
    if day is not None and state != ForecastState.FULL:
        return f"full in about {_ahead((day - today).days)}"
    return {
        ForecastState.FULL: "full now",
        ForecastState.TOO_LITTLE_HISTORY: "too little history",
        ForecastState.NOT_GROWING: "not growing",
    }.get(state, f"not full within {_count(forecast.HORIZON // 365, 'year')}")


def _range(earliest: date | None, latest: date | None, today: date) -> str:
    first = _on(earliest or today, today)
    if latest is None:
        return f"{first} at the earliest, perhaps never"
    last = _on(latest, today)
    return f"on {first}" if first == last else f"between {first} and {last}"


def _on(day: date, today: date) -> str:
    """`12 Dec`, with the year when it is not this or the coming half year's."""
    near = abs((day - today).days) < 183
    return f"{day.day} {day:%b}" if near else f"{day.day} {day:%b %Y}"


def _ahead(days: int) -> str:
    for least, size, unit in _UNITS:
        if days >= least:
            return _count(round(days / size), unit)
    return _count(max(days, 1), "day")


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"
