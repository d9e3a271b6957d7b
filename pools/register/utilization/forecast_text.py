"""Forecasts as translated text: `full in about 5 weeks, between 2026-12-12 and 2027-02-03`."""

from __future__ import annotations

from datetime import date

from django.utils.translation import gettext, ngettext

from pools.core import forecast
from pools.core.forecast import ForecastState


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
        return gettext("exhausted now")
    if state == ForecastState.TOO_LITTLE_HISTORY:
        available = forecast.MIN_HISTORY - missing
        return ngettext(
            "no forecast yet: %(count)d day of history, %(needed)d are needed",
            "no forecast yet: %(count)d days of history, %(needed)d are needed",
            available,
        ) % {"count": available, "needed": forecast.MIN_HISTORY}
    base = summarize(state, today=today, day=day)
    if day is not None:
        between = describe_range(earliest, latest, today)
        return gettext("%(forecast)s, %(range)s") % {"forecast": base, "range": between}
    if not earliest:
        return base
    return gettext("%(forecast)s, %(day)s at the earliest") % {
        "forecast": base,
        "day": earliest.isoformat(),
    }


def summarize(state: ForecastState, *, today: date, day: date | None = None) -> str:
    """Return a forecast without its interval, for a table column."""
    if state == ForecastState.FULL:
        return gettext("exhausted now")
    if day is not None:
        return _format_exhaustion((day - today).days)
    if state == ForecastState.TOO_LITTLE_HISTORY:
        return gettext("not enough history")
    if state == ForecastState.NOT_GROWING:
        return gettext("no growth")
    years = forecast.HORIZON // 365
    return ngettext("not full within %(count)d year", "not full within %(count)d years", years) % {
        "count": years
    }


def describe_range(earliest: date | None, latest: date | None, today: date) -> str:
    """Return the range of dates of a forecast that has a day."""
    first = (earliest or today).isoformat()
    if latest is None:
        return gettext("%(day)s at the earliest, perhaps never") % {"day": first}
    last = latest.isoformat()
    if first == last:
        return gettext("on %(day)s") % {"day": first}
    return gettext("between %(first)s and %(last)s") % {"first": first, "last": last}


def _format_exhaustion(days: int) -> str:
    """Return `full in about 5 weeks`, in the largest unit of which there are a few."""
    if days >= 3 * 365:
        count = round(days / 365)
        text = ngettext("full in about %(count)d year", "full in about %(count)d years", count)
    elif days >= 100:
        count = round(days / 30)
        text = ngettext("full in about %(count)d month", "full in about %(count)d months", count)
    elif days >= 21:
        count = round(days / 7)
        text = ngettext("full in about %(count)d week", "full in about %(count)d weeks", count)
    else:
        count = max(days, 1)
        text = ngettext("full in about %(count)d day", "full in about %(count)d days", count)
    return text % {"count": count}
