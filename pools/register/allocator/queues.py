"""Blocks in cooldown, and the refused allocations of the last 24 hours."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from pools.models import FailureEvent
from pools.sql import statements

MOST_COOLDOWNS = 10_000  # the count of ending cooldowns stops here
MOST_REFUSALS = 20_000  # only the newest refusals are read
_PERIODS = (("hour", 1), ("day", 24), ("week", 7 * 24))  # hours
HOURS = 24


@dataclass(frozen=True)
class CooldownEnds:
    """The number of cooldowns that end within an hour, day or week.

    If `exact` is False, at least `count` cooldowns end.
    """

    unit: str
    count: int
    exact: bool


def count_cooldown_ends() -> list[CooldownEnds]:
    """Return how many cooldowns end within the next hour, day and week."""
    count_sql = (
        "(SELECT count(*) FROM (SELECT FROM pools_block WHERE state = 'cooling'"
        " AND available_from > ipam_now() AND available_from <= ipam_now() + make_interval(hours => %s) LIMIT %s) AS soon)"
    )
    with connection.cursor() as cursor:
        values = [value for _, hours in _PERIODS for value in (hours, MOST_COOLDOWNS + 1)]
        cursor.execute(f"SELECT {', '.join([count_sql] * len(_PERIODS))}", values)
        counts = cursor.fetchone()
    return [
        CooldownEnds(unit, min(count, MOST_COOLDOWNS), count <= MOST_COOLDOWNS)
        for (unit, _), count in zip(_PERIODS, counts, strict=True)
    ]


def next_cooldown_ends(pool_ids: Collection[int]) -> dict[int, datetime]:
    """Return the end of the next cooldown by pool id."""
    if not pool_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_NEXT_COOLDOWN_ENDS, {"pools": list(pool_ids)})
        return dict(cursor.fetchall())


# For each pool and family: the first entry of the allocator's queue that lies in the future.
_NEXT_COOLDOWN_ENDS = statements.read("pools/next_cooldown_ends")


@dataclass(frozen=True)
class RefusalCount:
    """The number of refusals with one code by one pool in one hour; `hours_ago` is 0 to 23."""

    hours_ago: int
    code: str
    pool_id: int
    count: int


@dataclass(frozen=True)
class RecentRefusals:
    """The refusals of the last 24 hours; `exact` is False if there were more than MOST_REFUSALS."""

    rows: list[RefusalCount]
    exact: bool = True

    @property
    def total(self) -> int:
        return sum(refusal.count for refusal in self.rows)


def recent_refusals() -> RecentRefusals:
    """Return the refused allocations of the last 24 hours."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_REFUSALS, {"most": MOST_REFUSALS, "hours": HOURS})
        rows = [RefusalCount(*row) for row in cursor.fetchall()]
    return RecentRefusals(rows, sum(refusal.count for refusal in rows) < MOST_REFUSALS)


# Event numbers follow the order of time: the highest numbers are the newest refusals.
_COUNT_REFUSALS = f"""
SELECT floor(extract(epoch FROM ipam_now() - pgh_created_at) / 3600)::int AS ago, code, pgh_obj_id,
       count(*)
  FROM (SELECT pgh_created_at, code, pgh_obj_id FROM {FailureEvent._meta.db_table}
         ORDER BY pgh_id DESC LIMIT %(most)s) AS newest
 WHERE pgh_created_at > ipam_now() - make_interval(hours => %(hours)s)
   AND pgh_created_at <= ipam_now() AND pgh_obj_id IS NOT NULL
 GROUP BY ago, code, pgh_obj_id
 ORDER BY ago, code, pgh_obj_id
"""  # noqa: S608  # the table's own name
