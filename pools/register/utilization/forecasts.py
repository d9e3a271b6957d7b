"""Forecast when pools will be exhausted, from their samples and today's counts (pools.core.forecast).

Beside it: forecasts as translated text: `full in about 5 weeks, between 2026-12-12 and 2027-02-03`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils.translation import gettext, ngettext

from pools.core import forecast
from pools.core.forecast import ForecastState
from pools.models import Pool, PoolForecast, Sample
from pools.platform import database
from pools.register import usage
from pools.register.utilization import samples

POOLS = 500  # pools whose samples are read by one query


@dataclass(frozen=True)
class DatedForecast:
    """A forecast of one family of a pool, with calendar days (UTC)."""

    state: ForecastState
    history: int
    per_day: float
    day: date | None = None
    earliest: date | None = None
    latest: date | None = None

    @property
    def missing(self) -> int:
        """Days of history that are still missing for a forecast."""
        return max(0, forecast.MIN_HISTORY - self.history)


def forecast_pool(pool: Pool, used: Mapping[int, usage.Usage]) -> dict[int, DatedForecast]:
    """Return forecasts by family from the pool's samples and its present usage."""
    today = database.now().date()
    histories = _histories([pool.pk], today)
    return {
        family: _forecast_family(histories.get((pool.pk, family), {}), family_usage, today)
        for family, family_usage in used.items()
    }


def stored_forecasts(pool_ids: Iterable[int]) -> dict[int, dict[int, DatedForecast]]:
    """Return the stored forecasts by pool id and family; a new pool has none yet."""
    forecasts_by_pool: dict[int, dict[int, DatedForecast]] = defaultdict(dict)
    for row in PoolForecast.objects.filter(pool__in=list(pool_ids)):
        forecasts_by_pool[row.pool_id][row.family] = to_dated(row)
    return forecasts_by_pool


def to_dated(row: PoolForecast) -> DatedForecast:
    return DatedForecast(
        ForecastState(row.state), row.history, row.per_day, row.day, row.earliest, row.latest
    )


def forecasts_within(days: int) -> QuerySet[PoolForecast]:
    """Return forecasts of pools that are exhausted or will be within `days`, earliest first."""
    until = database.now().date() + timedelta(days=days)
    rows = PoolForecast.objects.select_related("pool__cluster").filter(day__lte=until)
    return rows.order_by("day", "pool_id", "family")


def refresh_forecasts() -> int:
    """Forecast all pools from their newest samples; return the number of rows written."""
    now = database.now()
    day = Sample.objects.aggregate(day=Max("day"))["day"]
    ids = list(Pool.objects.order_by("pk").values_list("pk", flat=True))
    count = 0
    for start in range(0, len(ids), POOLS):
        count += _store_forecasts(ids[start : start + POOLS], day or now.date(), now)
    return count


def _store_forecasts(ids: list[int], day: date, now: datetime) -> int:
    histories = _histories(ids, day)
    newest = Sample.objects.filter(day=day, pool_id__in=ids)
    waiting = usage.waiting_pools(ids)
    rows = []
    for sample in newest:
        history = histories[sample.pool_id, sample.family]
        waits = (sample.pool_id, sample.family) in waiting
        pool_forecast = _forecast_family(history, samples.to_usage(sample, waits=waits), day)
        rows.append(
            PoolForecast(
                pool_id=sample.pool_id,
                family=sample.family,
                state=pool_forecast.state,
                history=pool_forecast.history,
                per_day=pool_forecast.per_day,
                day=pool_forecast.day,
                earliest=pool_forecast.earliest,
                latest=pool_forecast.latest,
                made_at=now,
            )
        )
    with transaction.atomic():
        # A pool may have been deleted meanwhile.
        existing_ids = set(
            Pool.objects.filter(pk__in=ids)
            .select_for_update(no_key=True)
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        PoolForecast.objects.bulk_create(
            [row for row in rows if row.pool_id in existing_ids],
            update_conflicts=True,
            unique_fields=["pool", "family"],
            update_fields=["state", "history", "per_day", "day", "earliest", "latest", "made_at"],
        )
    return len(rows)


def _histories(ids: list[int], day: date) -> dict[tuple[int, int], dict[int, int]]:
    """Return blocks in use by (pool id, family) and ordinal of the day, for the last LOOK_BACK days."""
    first = day - timedelta(days=forecast.LOOK_BACK)
    rows = Sample.objects.filter(pool_id__in=ids, day__gt=first, day__lte=day)
    histories: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for pool_id, family, sample_day, held, cooling in rows.order_by().values_list(
        "pool_id", "family", "day", "held", "cooling"
    ):
        histories[pool_id, family][sample_day.toordinal()] = held + cooling
    return histories


def _forecast_family(
    history: Mapping[int, int], family_usage: usage.Usage, today: date
) -> DatedForecast:
    used = {**history, today.toordinal(): family_usage.used}
    # What waits for its cluster is not exhausted: the blocks are free as soon as the object has them.
    free = family_usage.pending if family_usage.waits_for_cluster else family_usage.free
    fill_forecast = forecast.forecast(used, today=today.toordinal(), free=free)
    day, earliest, latest = (
        None if days is None else today + timedelta(days=days)
        for days in (fill_forecast.days, fill_forecast.earliest, fill_forecast.latest)
    )
    return DatedForecast(
        fill_forecast.state, fill_forecast.history, fill_forecast.per_day, day, earliest, latest
    )


def describe(dated: DatedForecast, *, today: date) -> str:
    """Return a forecast with its interval as part of a sentence, without a full stop."""
    if dated.state == ForecastState.TOO_LITTLE_HISTORY:
        available = forecast.MIN_HISTORY - dated.missing
        return ngettext(
            "no forecast yet: %(count)d day of history, %(needed)d are needed",
            "no forecast yet: %(count)d days of history, %(needed)d are needed",
            available,
        ) % {"count": available, "needed": forecast.MIN_HISTORY}
    base = summarize(dated, today=today)
    if dated.state == ForecastState.FULL:
        return base
    if dated.day is not None:
        between = describe_range(dated.earliest, dated.latest, today)
        return gettext("%(forecast)s, %(range)s") % {"forecast": base, "range": between}
    if not dated.earliest:
        return base
    return gettext("%(forecast)s, %(day)s at the earliest") % {
        "forecast": base,
        "day": dated.earliest.isoformat(),
    }


def summarize(dated: DatedForecast, *, today: date) -> str:
    """Return a forecast without its interval, for a table column."""
    if dated.state == ForecastState.FULL:
        return gettext("exhausted now")
    if dated.day is not None:
        return _format_exhaustion((dated.day - today).days)
    if dated.state == ForecastState.TOO_LITTLE_HISTORY:
        return gettext("not enough history")
    if dated.state == ForecastState.NOT_GROWING:
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
