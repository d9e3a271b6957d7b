"""When pools will be full: what their samples and today's exact numbers tell (pools.core.forecast)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.models import Max, QuerySet

from pools.core import forecast
from pools.core.forecast import ForecastState
from pools.models import Pool, PoolForecast, Sample
from pools.platform import database
from pools.register import usage
from pools.register.utilization import samples

POOLS = 500  # pools whose history is read by one query
SOON = timedelta(days=14)


@dataclass(frozen=True)
class Dated:
    """A forecast of one family of a pool, in days of the calendar (UTC)."""

    state: ForecastState
    history: int
    per_day: float
    day: date | None = None
    earliest: date | None = None
    latest: date | None = None

    @property
    def missing(self) -> int:
        """Days of history that are still needed."""
        return max(0, forecast.MIN_HISTORY - self.history)


def of_pool(pool: Pool, used: Mapping[int, usage.Usage]) -> dict[int, Dated]:
    """By family, from the pool's samples and its numbers as they are now."""
    today = database.now().date()
    histories = _histories([pool.pk], today)
    return {
        family: _dated(histories.get((pool.pk, family), {}), family_usage, today)
        for family, family_usage in used.items()
    }


def stored(pool_ids: Iterable[int]) -> dict[int, dict[int, Dated]]:
    """As last worked out, by pool id and family; a pool that is new has none yet."""
    forecasts_by_pool: dict[int, dict[int, Dated]] = defaultdict(dict)
    for row in PoolForecast.objects.filter(pool__in=list(pool_ids)):
        forecasts_by_pool[row.pool_id][row.family] = as_dated(row)
    return forecasts_by_pool


def as_dated(row: PoolForecast) -> Dated:
    return Dated(
        ForecastState(row.state), row.history, row.per_day, row.day, row.earliest, row.latest
    )


def within(days: int) -> QuerySet[PoolForecast]:
    """Forecasts of pools that are full now or that are to be full in so many days, first first."""
    until = database.now().date() + timedelta(days=days)
    rows = PoolForecast.objects.select_related("pool__cluster").filter(day__lte=until)
    return rows.order_by("day", "pool_id", "family")


def work_out() -> int:
    """Forecast all pools from their newest samples; how many rows were written."""
    now = database.now()
    day = Sample.objects.aggregate(day=Max("day"))["day"]
    ids = list(Pool.objects.order_by("pk").values_list("pk", flat=True))
    count = 0
    for start in range(0, len(ids), POOLS):
        count += _store(ids[start : start + POOLS], day or now.date(), now)
    return count


def _store(ids: list[int], day: date, now: datetime) -> int:
    histories = _histories(ids, day)
    newest = Sample.objects.filter(day=day, pool_id__in=ids)
    rows = []
    for sample in newest:
        history = histories[sample.pool_id, sample.family]
        pool_forecast = _dated(history, samples.as_usage(sample), day)
        rows.append(
            PoolForecast(
                pool_id=sample.pool_id, family=sample.family, state=pool_forecast.state,
                history=pool_forecast.history, per_day=pool_forecast.per_day, day=pool_forecast.day, earliest=pool_forecast.earliest,
                latest=pool_forecast.latest, made_at=now,
            )
        )  # fmt: skip
    with transaction.atomic():
        # A pool may have gone meanwhile.
        alive = set(
            Pool.objects.filter(pk__in=ids)
            .select_for_update(no_key=True)
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        PoolForecast.objects.bulk_create(
            [row for row in rows if row.pool_id in alive],
            update_conflicts=True,
            unique_fields=["pool", "family"],
            update_fields=["state", "history", "per_day", "day", "earliest", "latest", "made_at"],
        )
    return len(rows)


def _histories(ids: list[int], day: date) -> dict[tuple[int, int], dict[int, int]]:
    """(pool id, family) -> number of the day -> blocks in use, as far back as is looked at."""
    first = day - timedelta(days=forecast.LOOK_BACK)
    rows = Sample.objects.filter(pool_id__in=ids, day__gt=first, day__lte=day)
    histories: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for pool_id, family, on, held, cooling in rows.order_by().values_list(
        "pool_id", "family", "day", "held", "cooling"
    ):
        histories[pool_id, family][on.toordinal()] = held + cooling
    return histories


def _dated(history: Mapping[int, int], family_usage: usage.Usage, today: date) -> Dated:
    used = {**history, today.toordinal(): family_usage.used}
    fill_forecast = forecast.forecast(used, today=today.toordinal(), free=family_usage.free)
    day, earliest, latest = (
        None if days is None else today + timedelta(days=days)
        for days in (fill_forecast.days, fill_forecast.earliest, fill_forecast.latest)
    )
    return Dated(
        fill_forecast.state, fill_forecast.history, fill_forecast.per_day, day, earliest, latest
    )
