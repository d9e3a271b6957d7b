"""Progress of an import: rows done, and the estimated remaining time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pools.models.register_imports import Import
from pools.models.register_imports import ImportStatus as Status

_UNDER_WAY = frozenset({Status.QUEUED, Status.DRAFTING, Status.COMMITTING})


@dataclass(frozen=True)
class ImportProgress:
    """Rows done and total; `remaining` is in seconds. A value is None while it is unknown."""

    done: int
    total: int | None
    percent: int | None
    remaining: int | None


def is_working(row: Import) -> bool:
    """Return True if a worker processes the import, or will as soon as one is free."""
    return row.status in _UNDER_WAY or row.undo_wanted


def import_progress(row: Import, now: datetime) -> ImportProgress:
    done, total = row.rows_done, row.rows_total
    if not is_working(row):
        return ImportProgress(done, total, 100, None)
    percent = min(100, 100 * done // total) if total else None
    remaining = None
    if total and done and row.started_at:
        elapsed = (now - row.started_at).total_seconds()
        remaining = max(0, round(elapsed * (total - done) / done))
    return ImportProgress(done, total, percent, remaining)
