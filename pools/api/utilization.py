"""utilization/ and pools/{}/forecast/: utilization over time and its forecast."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Any

from django.db.models import Max, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups, pools
from pools.api.schemas import utilization
from pools.core import block_fields, forecast, forecast_text
from pools.models import Sample, SampleSum
from pools.models.pools import Category
from pools.platform import database
from pools.platform.rest import pagination, query, views
from pools.register import usage
from pools.register.utilization import forecasts
from pools.register.utilization import samples as utilization_samples

MOST_DAYS = 400
MOST_WITH_HISTORY = 100  # rows on a page
BY_POOL = "pool"
_TENANTS = {"org", "env"}
_ORDERINGS = {
    True: {"name": ("cluster", "pool", "family", "id"), "held": ("held", "id")},
    False: {"name": ("org", "name", "family", "id"), "held": ("held", "id")},
}

Row = dict[str, Any]
# Identifies the samples of one row: (pool id, family), or (org, name, rest, family).
Key = tuple[Any, ...]


class Utilization(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**utilization.UTILIZATION)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        group_choices = query.choice(*SampleSum.By.values, BY_POOL)
        group_by = parameters.parse("by", group_choices) or str(SampleSum.By.CATEGORY)
        if group_by in _TENANTS:
            views.require(request, "pools.view_environment")
        days = parameters.parse("days", query.integer(1, MOST_DAYS))
        if days:  # pagination.page parses it again, with a higher limit
            parameters.parse("limit", query.integer(1, MOST_WITH_HISTORY))
        rows = _pool_rows(parameters) if group_by == BY_POOL else _sum_rows(group_by, parameters)
        newest = rows.order_by().aggregate(day=Max("day"))["day"]
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows.filter(day=newest),
                orderings=_ORDERINGS[group_by == BY_POOL],
                fields=utilization.FIELDS,
                shape=partial(_shapes, group_by, rows, days),
                default="name",
            )
        )


class Forecast(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**utilization.FORECAST)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        query.Query(request).done()
        pool = pools.get_pool(pool_id)
        used = usage.pool_usage(pool)
        pool_forecasts = forecasts.forecast_pool(pool, used)
        today = database.now().date()
        return views.answer(
            {
                "pool_id": pool.pk,
                "pool": pool.name,
                "cluster": pool.cluster.name,
                "today": today.isoformat(),
                "share": forecast.CONFIDENCE,
                "families": [
                    _forecast(family, family_forecast, used[family], today)
                    for family, family_forecast in pool_forecasts.items()
                ],
            }
        )


def _forecast(
    family: int, family_forecast: forecasts.DatedForecast, used: usage.Usage, today: date
) -> Row:
    return {
        "family": family,
        "state": str(family_forecast.state),
        "summary": forecast_text.describe(
            family_forecast.state,
            today=today,
            missing=family_forecast.missing,
            day=family_forecast.day,
            earliest=family_forecast.earliest,
            latest=family_forecast.latest,
        ),
        "day": _iso(family_forecast.day),
        "earliest": _iso(family_forecast.earliest),
        "latest": _iso(family_forecast.latest),
        "per_day": round(family_forecast.per_day, 3),
        "history_days": family_forecast.history,
        "missing_days": family_forecast.missing,
        "used": str(used.used),
        "free": str(used.free),
    }


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


# --- rows -----------------------------------------------------------------------------------------


def _pool_rows(parameters: query.Query) -> QuerySet[Any]:
    rows: QuerySet[Any] = Sample.objects.all()
    if cluster := parameters.parse("cluster", lookups.cluster):
        rows = rows.filter(cluster=cluster.name)
    if category := parameters.parse("category", query.choice(*Category.values)):
        rows = rows.filter(category=category)
    if name := parameters.text("name"):
        rows = rows.filter(pool=name)
    return rows


def _sum_rows(group_by: str, parameters: query.Query) -> QuerySet[Any]:
    rows: QuerySet[Any] = SampleSum.objects.filter(by=group_by)
    if name := parameters.text("name"):
        rows = rows.filter(name=name)
    if group_by == SampleSum.By.ENV and (org := parameters.text("org")):
        rows = rows.filter(org=org)
    return rows


def _shapes(group_by: str, samples: QuerySet[Any], days: int | None, rows: list[Row]) -> list[Row]:
    counts = partial(_counts, tenants=group_by in _TENANTS)
    row_key = _pool_key if group_by == BY_POOL else _sum_key
    history = _history_by_key(samples, days, rows, row_key, counts) if days and rows else {}
    return [
        {
            "by": group_by,
            "day": row["day"].isoformat(),
            "taken_at": block_fields.time(row["taken_at"]),
            "org": row.get("org", ""),
            "name": row["pool"] if group_by == BY_POOL else row["name"],
            "cluster": row.get("cluster", ""),
            "category": row.get("category", ""),
            "pool_id": row.get("pool_id"),
            "family": row["family"],
            "rest": row.get("rest", False),
            "members": row.get("members", 1),
            **counts(row),
            "history": history.get(row_key(row), []) if days else None,
        }
        for row in rows
    ]


def _history_by_key(
    samples: QuerySet[Any],
    days: int,
    rows: list[Row],
    row_key: Callable[[Row], Key],
    counts: Callable[[Row], Row],
) -> dict[Key, list[Row]]:
    """Return the samples of the last `days` days by row key, oldest first."""
    names = ("pool_id",) if "pool_id" in rows[0] else ("org", "name")
    filters = {f"{name}__in": {row[name] for row in rows} for name in names}
    first = database.now().date() - timedelta(days=days - 1)
    history: dict[Key, list[Row]] = defaultdict(list)
    for row in samples.filter(**filters, day__gte=first).order_by("day").values().iterator():
        history[row_key(row)].append({"day": row["day"].isoformat(), **counts(row)})
    return history


def _pool_key(row: Row) -> Key:
    return row["pool_id"], row["family"]


def _sum_key(row: Row) -> Key:
    return row["org"], row["name"], row["rest"], row["family"]


def _counts(row: Row, *, tenants: bool) -> Row:
    """Return the counts of a row in blocks; organizations and environments have no capacity."""
    sample_usage = utilization_samples.to_usage(
        Sample(**{name: row[name] for name in utilization_samples.COUNTS})
    )
    return {
        "capacity": None if tenants else str(sample_usage.capacity),
        "held": str(sample_usage.held),
        "cooling": str(sample_usage.cooling),
        "reserved": None if tenants else str(sample_usage.reserved),
        "free": None if tenants else str(sample_usage.free),
        "ratio": None if tenants else round(sample_usage.ratio, 6),
    }
