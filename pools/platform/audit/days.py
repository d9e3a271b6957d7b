"""The days of the audit chain with their last digests, for people and programs that keep them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from pools.platform import database
from pools.platform.audit import verification
from pools.sql import statements


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
_DAYS = statements.read("pools/audit_days")
