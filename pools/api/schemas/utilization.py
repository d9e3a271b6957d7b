"""What OpenAPI says of utilization and forecasts."""

from __future__ import annotations

from typing import Any

from pools.core.forecast import ForecastState
from pools.platform.rest.openapi import (
    FLAG,
    NUMBER,
    PAGED,
    TEXT,
    TIME,
    WHOLE,
    listed,
    nullable,
    page,
    query,
    says,
    shape,
)

_DAY: dict[str, Any] = {"type": "string", "format": "date"}
_RATIO: dict[str, Any] = {"type": "number", "nullable": True}
_COUNTS: dict[str, Any] = {
    "capacity": nullable(NUMBER), "held": NUMBER, "cooling": NUMBER, "reserved": nullable(NUMBER),
    "free": nullable(NUMBER), "ratio": _RATIO,
}  # fmt: skip
_COUNTED = "capacity held cooling reserved free ratio"
_ROW = shape(
    f"by day taken_at org name cluster category pool_id family rest members {_COUNTED} history",
    author={"type": "string", "enum": ["category", "cluster", "org", "env", "pool"]},
    day=_DAY, taken_at=TIME, org=TEXT, name=TEXT, cluster=TEXT, category=TEXT,
    pool_id=nullable(WHOLE), family=WHOLE, rest=FLAG, members=WHOLE, **_COUNTS,
    history=nullable(listed(shape(f"day {_COUNTED}", day=_DAY, **_COUNTS))),
)  # fmt: skip
FIELDS = tuple(_ROW["properties"])
UTILIZATION = says(
    "Utilization now and over time",
    {200: page(_ROW)},
    parameters=query(
        author="category, cluster, org, env, pool (category)",
        days="also the samples of so many days, 1 to 400; at most 100 rows on a page then",
        name="only this one", org="of environments: of this organisation",
        cluster="of pools: name or id", category="of pools", **PAGED,
    ),
)  # fmt: skip
FORECAST = says(
    "When a pool will be full",
    {
        200: shape(
            "pool_id pool cluster today share families",
            pool_id=WHOLE, pool=TEXT, cluster=TEXT, today=_DAY, share={"type": "number"},
            families=listed(
                shape(
                    "family state summary day earliest latest per_day history_days missing_days"
                    " used free",
                    family=WHOLE, state={"type": "string", "enum": [str(state) for state in ForecastState]},
                    summary=TEXT, day=nullable(_DAY), earliest=nullable(_DAY), latest=nullable(_DAY),
                    per_day={"type": "number"}, history_days=WHOLE, missing_days=WHOLE,
                    used=NUMBER, free=NUMBER,
                )
            ),
        )
    },
    fails="404",
)  # fmt: skip
