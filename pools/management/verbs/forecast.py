"""`ipam forecast`: forecast when pools will be full (docs/reference/utilization.md)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, TextIO

from django.db.models import F, QuerySet

from pools.core import errors
from pools.management import output
from pools.models import Cluster, PoolForecast
from pools.platform import database
from pools.register.utilization import forecasts

HELP = "Forecast when pools will be full (status 3 when a pool is full within --within days)."
_COLUMNS = (
    "cluster",
    "pool",
    "family",
    "state",
    "day",
    "earliest",
    "latest",
    "per_day",
    "forecast",
)
_MOST_DAYS = 5 * 365


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--within", type=_days, metavar="DAYS", help="only pools that are full within this time"
    )
    parser.add_argument("--cluster", metavar="NAME", help="only pools of this cluster")
    output.add_format(parser)


def run(options: Mapping[str, Any], out: TextIO) -> int:
    within = options["within"]
    rows = PoolForecast.objects.select_related("pool__cluster").order_by(
        F("day").asc(nulls_last=True), "pool__cluster__name", "pool__name", "family"
    )
    if within is not None:
        rows = forecasts.forecasts_within(within)
    if options["cluster"]:
        rows = rows.filter(pool__cluster=_cluster(options["cluster"]))
    count = output.write(_rows(rows, database.now().date()), _COLUMNS, options["output"], out)
    if not count and options["output"] == "table":
        out.write(f"{_empty_message(within)}\n")
    return output.FOUND if count and within is not None else output.DONE


def _empty_message(within: int | None) -> str:
    if within is None or not PoolForecast.objects.exists():
        return "No forecasts yet: a worker computes them every ten minutes."
    return f"No pool is forecast to be full within {within} days."


def _rows(rows: QuerySet[PoolForecast], today: date) -> Iterator[dict[str, Any]]:
    for row in rows.iterator():
        dated = forecasts.to_dated(row)
        yield {
            "cluster": row.pool.cluster.name,
            "pool": row.pool.name,
            "family": row.family,
            "state": row.state,
            "day": dated.day,
            "earliest": dated.earliest,
            "latest": dated.latest,
            "per_day": round(dated.per_day, 3),
            "forecast": forecasts.describe(
                dated.state,
                today=today,
                missing=dated.missing,
                day=dated.day,
                earliest=dated.earliest,
                latest=dated.latest,
            ),
        }


def _cluster(name: str) -> Cluster:
    cluster = Cluster.objects.filter(name=name).first() if "\0" not in name else None
    if cluster is None:
        raise errors.NotFound(f"There is no cluster {name}.")
    return cluster


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= _MOST_DAYS):
        raise argparse.ArgumentTypeError(f"must be a number of days, 0 to {_MOST_DAYS}")
    return int(text)
