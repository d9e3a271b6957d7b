"""The days of the audit chain with their last digests, for people and programs that keep them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from pools.platform import database
from pools.platform.audit import verification


@dataclass(frozen=True)
class Day:
    """`digest` is that of its last segment, the day's anchor. `state`: `open` today, `sealed`, `purged`
    (events went with the retention; `kept` are left) or `broken` by the last verification."""

    day: date
    state: str
    segments: int
    events: int
    kept: int
    first_number: int
    last_number: int
    last_segment: int
    digest: str
    sealed_at: datetime


def days(*, before: date | None = None, limit: int = 31) -> list[Day]:
    """The newest days before one, newest first; a day without events has none."""
    rows = database.rows(_DAYS, {"before": before or date.max, "n": limit}, prepare=False)
    broken = _broken()
    today = database.now().astimezone(UTC).date()
    return [_day(row, broken, today) for row in rows]


def _broken() -> set[str]:
    last = verification.standing()
    return {fault["day"] for fault in last.faults if fault["day"]} if last else set()


def _day(row: tuple[object, ...], broken: set[str], today: date) -> Day:
    day, segments, purged, *rest = row
    state = "open" if day == today else "purged" if purged else "sealed"
    if str(day) in broken:
        state = "broken"
    return Day(day, state, segments, *rest)  # type: ignore[arg-type]


# Day after day by the index over (day, id), so that a page costs the same anywhere.
_DAYS = """
    WITH RECURSIVE d AS (
        (SELECT day, 1 AS n FROM pools_auditsegment WHERE day < %(before)s ORDER BY day DESC LIMIT 1)
        UNION ALL
        SELECT (SELECT s.day FROM pools_auditsegment s WHERE s.day < d.day
                ORDER BY s.day DESC LIMIT 1), d.n + 1
        FROM d WHERE d.day IS NOT NULL AND d.n < %(n)s)
    SELECT d.day, a.segments, a.purged, a.events, a.kept, a.first_number, l.last_id, l.id, l.digest,
        l.sealed_at
    FROM d CROSS JOIN LATERAL (
        SELECT count(*) AS segments, count(purged_at) AS purged, sum(count)::bigint AS events,
            sum(COALESCE(kept, count))::bigint AS kept, min(after_id) + 1 AS first_number
        FROM pools_auditsegment s WHERE s.day = d.day) a
    CROSS JOIN LATERAL (SELECT id, last_id, digest, sealed_at FROM pools_auditsegment s
        WHERE s.day = d.day ORDER BY id DESC LIMIT 1) l
    WHERE d.day IS NOT NULL ORDER BY d.day DESC
"""
