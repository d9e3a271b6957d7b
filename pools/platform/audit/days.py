"""The days of the audit chain with their last digests, which people and programs keep as anchors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from pools.platform import database
from pools.platform.audit import verification
from pools.sql import statements

STATES = ("open", "sealed", "purged", "broken")


@dataclass(frozen=True)
class Day:
    """A day of the audit chain; `digest` is that of its last segment, the day's anchor.

    `state` is `open` (today), `sealed`, `purged` (the retention deleted events, `retained` of them remain) or
    `broken` (by the last verification).
    """

    day: date
    state: str
    segments: int
    events: int
    retained: int
    first_number: int
    last_number: int
    last_segment: int
    digest: str
    sealed_at: datetime


def days(*, before: date | None = None, limit: int = 31) -> list[Day]:
    """Return the newest days before `before`, newest first; days without events are left out."""
    rows = database.rows(_DAYS, {"before": before or date.max, "n": limit}, prepare=False)
    broken = _broken()
    today = database.now().astimezone(UTC).date()
    return [_day(row, broken, today) for row in rows]


def _broken() -> set[str]:
    last = verification.latest()
    return {fault["day"] for fault in last.faults if fault["day"]} if last else set()


def _day(row: tuple[object, ...], broken: set[str], today: date) -> Day:
    day, segments, purged, *rest = row
    state = "open" if day == today else "purged" if purged else "sealed"
    if str(day) in broken:
        state = "broken"
    return Day(day, state, segments, *rest)  # type: ignore[arg-type]


# Goes from day to day by the index over (day, id), so that every page costs the same.
_DAYS = statements.read("pools/audit_days")
