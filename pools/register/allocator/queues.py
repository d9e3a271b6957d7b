"""What waits and what failed: blocks that cool down, and refused allocations of the last day."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from pools.models import FailureEvent
from pools.sql import statements

MOST_COOLDOWNS = 10_000  # blocks that end their cooldown soon are counted so far
MOST_REFUSALS = 20_000  # the newest refusals looked at
_AHEAD = (("hour", 1), ("day", 24), ("week", 7 * 24))  # hours
HOURS = 24


@dataclass(frozen=True)
class CooldownEnds:
    """So many cooldowns end within an hour, day or week; not `exact`: at least so many."""

    unit: str
    count: int
    exact: bool


def count_cooldown_ends() -> list[CooldownEnds]:
    """How many cooling blocks may be handed out soon."""
    counted = (
        "(SELECT count(*) FROM (SELECT FROM pools_block WHERE state = 'cooling'"
        " AND available_from > ipam_now() AND available_from <= ipam_now() + make_interval(hours => %s) LIMIT %s) AS soon)"
    )
    with connection.cursor() as cursor:
        values = [value for _, ahead in _AHEAD for value in (ahead, MOST_COOLDOWNS + 1)]
        cursor.execute(f"SELECT {', '.join([counted] * len(_AHEAD))}", values)
        counts = cursor.fetchone()
    return [
        CooldownEnds(unit, min(count, MOST_COOLDOWNS), count <= MOST_COOLDOWNS)
        for (unit, _), count in zip(_AHEAD, counts, strict=True)
    ]


def next_cooldown_ends(pool_ids: Collection[int]) -> dict[int, datetime]:
    """Pool id -> when the next of its cooling blocks may be handed out."""
    if not pool_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"pools": list(pool_ids)})
        return dict(cursor.fetchall())


# A look into the allocator's queue for each pool and family: its first entry in the future.
_NEXT = statements.read("pools/next_cooldown_ends")


@dataclass(frozen=True)
class RefusalCount:
    """Refusals of one code by one pool in one hour, `hours_ago` 0 to 23."""

    hours_ago: int
    code: str
    pool_id: int
    count: int


@dataclass(frozen=True)
class RecentRefusals:
    """Of the last 24 hours; not `exact` when there were more than are looked at."""

    rows: list[RefusalCount]
    exact: bool = True

    @property
    def total(self) -> int:
        return sum(refusal.count for refusal in self.rows)


def recent_refusals() -> RecentRefusals:
    """The refused allocations of the last 24 hours."""
    with connection.cursor() as cursor:
        cursor.execute(_REFUSED, {"most": MOST_REFUSALS, "hours": HOURS})
        rows = [RefusalCount(*row) for row in cursor.fetchall()]
    return RecentRefusals(rows, sum(refusal.count for refusal in rows) < MOST_REFUSALS)


# Numbered in the order of time: the newest by number are the newest.
_REFUSED = f"""
SELECT floor(extract(epoch FROM ipam_now() - pgh_created_at) / 3600)::int AS ago, code, pgh_obj_id,
       count(*)
  FROM (SELECT pgh_created_at, code, pgh_obj_id FROM {FailureEvent._meta.db_table}
         ORDER BY pgh_id DESC LIMIT %(most)s) AS newest
 WHERE pgh_created_at > ipam_now() - make_interval(hours => %(hours)s)
   AND pgh_created_at <= ipam_now() AND pgh_obj_id IS NOT NULL
 GROUP BY ago, code, pgh_obj_id
 ORDER BY ago, code, pgh_obj_id
"""  # noqa: S608  # the table's own name
