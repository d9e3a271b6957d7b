"""How far the work on an import is, and how long it will still take at this pace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from claims.models import VMImport
from claims.models.imports import Status

UNDER_WAY = frozenset({Status.QUEUED, Status.DRAFTING, Status.COMMITTING})


@dataclass(frozen=True)
class ImportProgress:
    """Rows done and in all; None where nobody knows. `remaining` is in seconds."""

    done: int
    total: int | None
    percent: int | None
    remaining: int | None


def is_working(vm_import: VMImport) -> bool:
    """Whether somebody works on it, or will as soon as a worker is free."""
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
