"""How far the work on an import is, and how long it will still take at this pace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from claims.models import VMImport
from claims.models.imports import Status

UNDER_WAY = frozenset({Status.QUEUED, Status.DRAFTING, Status.COMMITTING})


@dataclass(frozen=True)
class Progress:
    """Rows done and in all; None where nobody knows. `remaining` is in seconds."""

    done: int
    total: int | None
    percent: int | None
    remaining: int | None


def working(one: VMImport) -> bool:
    """Whether somebody works on it, or will as soon as a worker is free."""
    return one.status in UNDER_WAY or one.undo_wanted


def of(one: VMImport, now: datetime) -> Progress:
    done, total = one.rows_done, one.rows_total
    if not working(one):
        return Progress(done, total, 100, None)
    percent = min(100, 100 * done // total) if total else None
    remaining = None
    if total and done and one.started_at:
        passed = (now - one.started_at).total_seconds()
        remaining = max(0, round(passed * (total - done) / done))
    return Progress(done, total, percent, remaining)
