"""Progress of an import: rows done, and the estimated remaining time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pools.models import RegisterImport
from pools.models.register_imports import ImportStatus as Status

UNDER_WAY = frozenset({Status.QUEUED, Status.DRAFTING, Status.COMMITTING})


@dataclass(frozen=True)
class ImportProgress:
    """Rows done and total; `remaining` is in seconds. A value is None while it is unknown."""

    done: int
    total: int | None
    percent: int | None
    remaining: int | None


def is_working(register_import: RegisterImport) -> bool:
    """Return True if a worker processes the import, or will as soon as one is free."""
    return register_import.status in UNDER_WAY or register_import.undo_wanted


def import_progress(register_import: RegisterImport, now: datetime) -> ImportProgress:
    done, total = register_import.rows_done, register_import.rows_total
    if not is_working(register_import):
        return ImportProgress(done, total, 100, None)
    percent = min(100, 100 * done // total) if total else None
    remaining = None
    if total and done and register_import.started_at:
        elapsed = (now - register_import.started_at).total_seconds()
        remaining = max(0, round(elapsed * (total - done) / done))
    return ImportProgress(done, total, percent, remaining)
