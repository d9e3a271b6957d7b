"""Status changes of an import with the fields that each of them writes, and the progress of a step."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, Case, Count, F, Func, QuerySet, Value, When

from pools.core import errors
from pools.models.fields import Clock, Now
from pools.models.imports import WAITING, Import, ImportStatus as Status, RowStatus
from pools.platform import events

SMALL = 2_000  # most rows of an import that is drafted and committed in the request
CANCELLABLE = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)
_UNDER_WAY = frozenset({Status.QUEUED, Status.DRAFTING, Status.COMMITTING})
_SHOWN = 5  # reasons against an undo
_SOMETIMES = {RowStatus.LEFT_OUT, RowStatus.VANISHED, RowStatus.RELEASED}


def is_large(row: Import) -> bool:
    return (row.rows_total or 0) > SMALL


def import_author(row: Import, author: events.Author) -> events.Author:
    """Return the author of the import's events; their reason names the import."""
    return dataclasses.replace(author, reason=str(row))


def author_fields(author: events.Author) -> dict[str, str]:
    """Return the fields of an import that keep for whom a worker processes it."""
    return {"actor": author.actor, "source": author.source, "request_id": author.request_id}


def recorded_author(row: Import) -> events.Author:
    """Return the author for whom a worker processes the import."""
    return events.Author(row.actor, row.source or "worker", row.request_id, str(row))


def count_rows(row: Import) -> dict[str, int]:
    """Return the number of rows by status; those of left out and vanished rows are keys only if there are any."""
    found = dict(row.rows.order_by().values_list("status").annotate(number=Count("*")))
    always = [status for status in RowStatus.values if status not in _SOMETIMES]
    return dict.fromkeys(always, 0) | found


def check_rows(row: Import, counts: dict[str, int]) -> None:
    """Raise ImportHasBadRows if rows are in conflict or invalid, unless they are left out."""
    if row.skip_bad or not counts["conflict"] + counts["invalid"]:
        return
    error = errors.ImportHasBadRows(
        f"Rows in conflict: {counts['conflict']}, invalid: {counts['invalid']}. Correct them or leave them out,"
        " or commit the other rows only (skip_bad)."
    )
    error.extra = {"counts": counts}
    raise error


def check_unused(reasons: Sequence[str]) -> None:
    """Raise ImportInUse if there are reasons against an undo: the first of them, and how many more."""
    if reasons:
        more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
        shown = "; ".join(reasons[:_SHOWN])
        raise errors.ImportInUse(f"The import cannot be undone: {shown}{more}.")


def _save(row: Import, *fields: str, **changes: object) -> None:
    """Store changes of an import, and the present values of `fields`."""
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=[*changes, *fields])


def mark_drafted(row: Import, *fields: str) -> None:
    """Count the rows of an import, and set its status to drafted; `fields` are stored, too."""
    changes = {"status": Status.DRAFTED, "counts": count_rows(row), "drafted_at": Now()}
    _save(row, *fields, **changes, error_code="", error="")


def record_error(row: Import, error: errors.IpamError) -> None:
    """Record why a draft could not be committed."""
    drafts = type(row)._default_manager.filter(pk=row.pk, status=Status.DRAFTED)
    drafts.update(error_code=error.code[:63], error=error.message[:1000])


def queue(row: Import, author: events.Author, **changes: object) -> None:
    """Queue the next step of an import for a worker."""
    _save(
        row,
        tries=0,
        rows_done=0,
        started_at=None,
        **author_fields(author),
        **changes,
    )


def start(row: Import) -> bool:
    """Count an attempt of a worker at the next step; return False if the import has none any more."""
    rows = type(row)._default_manager.filter(WAITING, pk=row.pk)
    drafting = When(status=Status.QUEUED, then=Value(Status.DRAFTING.value))
    return bool(
        rows.update(
            tries=F("tries") + 1,
            rows_done=0,
            status=Case(drafting, default=F("status")),
            started_at=Clock(),
        )
    )


def end(row: Import) -> bool:
    """Record that a worker's step is done, as its last change; return False if a user cancelled the import."""
    rows = type(row)._default_manager.filter(pk=row.pk, cancel_wanted=False)
    return bool(rows.update(tries=0, undo_wanted=False))


def mark_committed(row: Import) -> None:
    """Set the status of an import to committed."""
    _end(row, "counts", "skip_bad", status=Status.COMMITTED, committed_at=Now())


def mark_undone(row: Import) -> None:
    """Set the status of an import to undone."""
    _end(row, "counts", status=Status.UNDONE, undone_at=Now())


def _end(row: Import, *fields: str, **changes: object) -> None:
    _save(row, *fields, **changes, rows_done=row.rows_total or 0, error_code="", error="")


# --- warnings -------------------------------------------------------------------------------------

# Of rows of any status; what else a row in conflict or an invalid one says decides its status.
_WARNINGS = frozenset({"repeated_row", "reserved_subnet", "no_nad", "kept_address", "left_out"})
# What a change is, a name as MTV changes it, a prefix length that the file does not have, and that a VM is powered off.
_NOTES = ("differs", "vm_name_changed", "prefix_added", "powered_off")
_WRITTEN = (RowStatus.NEW, RowStatus.CHANGED)


class _HasWarning(Func):
    """Whether the reasons of a row have one that is a warning."""

    template = "jsonb_path_exists(%(expressions)s::jsonpath)"
    output_field = BooleanField()


def is_note(code: str) -> bool:
    """Return True for a reason that only explains what the row shows."""
    return code in _NOTES


def is_warning(status: str, code: str) -> bool:
    """Return True for a reason that does not decide the status of its row, and that somebody should read."""
    if is_note(code):
        return False
    return status in _WRITTEN or code in _WARNINGS or code.endswith("_set_aside")


def with_warnings(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the rows that a commit writes and that have a warning."""
    condition = " && ".join(f'@.code != "{code}"' for code in _NOTES)
    path = Value(f"$[*] ? ({condition})")
    return rows.filter(_HasWarning(F("reasons"), path), status__in=_WRITTEN)


# --- progress -------------------------------------------------------------------------------------


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
