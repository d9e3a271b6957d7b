"""Progress of an import: rows done, and the estimated remaining time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from claims.models import VMImport
from claims.models.imports import Status

UNDER_WAY = frozenset({Status.QUEUED, Status.DRAFTING, Status.COMMITTING})


@dataclass(frozen=True)
class ImportProgress:
    """Rows done and total; `remaining` is in seconds. A value is None while it is unknown."""

    done: int
    total: int | None
    percent: int | None
    remaining: int | None


def is_working(vm_import: VMImport) -> bool:
    """Return True if a worker processes the import, or will as soon as one is free."""
    return vm_import.status in UNDER_WAY or vm_import.undo_wanted


def import_progress(vm_import: VMImport, now: datetime) -> ImportProgress:
    done, total = vm_import.rows_done, vm_import.rows_total
    if not is_working(vm_import):
        return ImportProgress(done, total, 100, None)
    percent = min(100, 100 * done // total) if total else None
    remaining = None
    if total and done and vm_import.started_at:
        elapsed = (now - vm_import.started_at).total_seconds()
        remaining = max(0, round(elapsed * (total - done) / done))
    return ImportProgress(done, total, percent, remaining)
