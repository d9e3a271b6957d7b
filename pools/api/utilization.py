"""utilization/ and pools/{}/forecast/: how full, over time, and until when."""

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
# What tells the samples of one row from those of others: pool id, or organisation and name; family.
Key = tuple[Any, ...]


class Utilization(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**utilization.UTILIZATION)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        ways = query.choice(*SampleSum.By.values, BY_POOL)
        by = parameters.parse("by", ways) or str(SampleSum.By.CATEGORY)
        if by in _TENANTS:
            views.require(request, "pools.view_environment")
        days = parameters.parse("days", query.integer(1, MOST_DAYS))
        if days:  # read again by the page, which allows more
            parameters.parse("limit", query.integer(1, MOST_WITH_HISTORY))
        rows = _of_pools(parameters) if by == BY_POOL else _sums(by, parameters)
        newest = rows.order_by().aggregate(day=Max("day"))["day"]
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows.filter(day=newest),
                orderings=_ORDERINGS[by == BY_POOL],
                fields=utilization.FIELDS,
                shape=partial(_shapes, by, rows, days),
                default="name",
            )
        )


class Forecast(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**utilization.FORECAST)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        query.Query(request).done()
        pool = pools.get(pool_id)
        used = usage.pool_usage(pool)
        told = forecasts.forecast_pool(pool, used)
        today = database.now().date()
        return views.answer(
            {
                "pool_id": pool.pk,
                "pool": pool.name,
                "cluster": pool.cluster.name,
                "today": today.isoformat(),
                "share": forecast.CONFIDENCE,
                "families": [
                    _forecast(family, one, used[family], today) for family, one in told.items()
                ],
            }
        )


def _forecast(family: int, one: forecasts.DatedForecast, used: usage.Usage, today: date) -> Row:
    return {
        "family": family,
        "state": str(one.state),
        "summary": forecast_text.describe(
            one.state,
            today=today,
            missing=one.missing,
            day=one.day,
            earliest=one.earliest,
            latest=one.latest,
        ),
        "day": _iso(one.day),
        "earliest": _iso(one.earliest),
        "latest": _iso(one.latest),
        "per_day": round(one.per_day, 3),
        "history_days": one.history,
        "missing_days": one.missing,
        "used": str(used.used),
        "free": str(used.free),
    }


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


# --- rows -----------------------------------------------------------------------------------------


def _of_pools(parameters: query.Query) -> QuerySet[Any]:
    rows: QuerySet[Any] = Sample.objects.all()
    if cluster := parameters.parse("cluster", lookups.cluster):
        rows = rows.filter(cluster=cluster.name)
    if category := parameters.parse("category", query.choice(*Category.values)):
        rows = rows.filter(category=category)
    if name := parameters.text("name"):
        rows = rows.filter(pool=name)
    return rows


def _sums(by: str, parameters: query.Query) -> QuerySet[Any]:
    rows: QuerySet[Any] = SampleSum.objects.filter(by=by)
    if name := parameters.text("name"):
        rows = rows.filter(name=name)
    if by == SampleSum.By.ENV and (org := parameters.text("org")):
        rows = rows.filter(org=org)
    return rows


def _shapes(by: str, samples: QuerySet[Any], days: int | None, rows: list[Row]) -> list[Row]:
    counts = partial(_counts, tenants=by in _TENANTS)
    keyed = _of_pool if by == BY_POOL else _of_sum
    past = _past(samples, days, rows, keyed, counts) if days and rows else {}
    return [
        {
            "by": by,
            "day": row["day"].isoformat(),
            "taken_at": block_fields.time(row["taken_at"]),
            "org": row.get("org", ""),
            "name": row["pool"] if by == BY_POOL else row["name"],
            "cluster": row.get("cluster", ""),
            "category": row.get("category", ""),
            "pool_id": row.get("pool_id"),
            "family": row["family"],
            "rest": row.get("rest", False),
            "members": row.get("members", 1),
            **counts(row),
            "history": past.get(keyed(row), []) if days else None,
        }
        for row in rows
    ]


def _past(
    samples: QuerySet[Any],
    days: int,
    rows: list[Row],
    keyed: Callable[[Row], Key],
    counts: Callable[[Row], Row],
) -> dict[Key, list[Row]]:
    """The samples of so many days until today of these rows, oldest first."""
    names = ("pool_id",) if "pool_id" in rows[0] else ("org", "name")
    wanted = {f"{name}__in": {row[name] for row in rows} for name in names}
    first = database.now().date() - timedelta(days=days - 1)
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in samples.filter(**wanted, day__gte=first).order_by("day").values().iterator():
        found[keyed(row)].append({"day": row["day"].isoformat(), **counts(row)})
    return found


def _of_pool(row: Row) -> Key:
    return row["pool_id"], row["family"]


def _of_sum(row: Row) -> Key:
    return row["org"], row["name"], row["rest"], row["family"]


def _counts(row: Row, *, tenants: bool) -> Row:
    """In blocks; organisations and environments have no capacity of their own."""
    one = utilization_samples.to_usage(
        Sample(**{name: row[name] for name in utilization_samples.COUNTS})
    )
    return {
        "capacity": None if tenants else str(one.capacity),
        "held": str(one.held),
        "cooling": str(one.cooling),
        "reserved": None if tenants else str(one.reserved),
        "free": None if tenants else str(one.free),
        "ratio": None if tenants else round(one.ratio, 6),
    }
