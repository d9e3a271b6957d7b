"""Status changes of an import, and the fields that each of them writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from django.db.models import Count

from pools.core import errors
from pools.models.fields import Now
from pools.models.register_imports import Import, RowStatus
from pools.models.register_imports import ImportStatus as Status
from pools.platform import events

SMALL = 2_000  # most rows of an import that is drafted and committed in the request
CANCELLABLE = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)
_SHOWN = 5  # reasons against an undo


def is_large(row: Import) -> bool:
    return (row.rows_total or 0) > SMALL


def import_author(row: Import, author: events.Author) -> events.Author:
    """Return the author of the import's events; their reason names the import."""
    return dataclasses.replace(author, reason=str(row))


def recorded_author(row: Import) -> events.Author:
    """Return the author for whom a worker processes the import."""
    return events.Author(row.actor, row.source or "worker", row.request_id, str(row))


def count_rows(row: Import) -> dict[str, int]:
    """Return the number of rows by status; `skipped` and `released` are keys only if there are such rows."""
    found = dict(row.rows.order_by().values_list("status").annotate(number=Count("*")))
    always = [status for status in RowStatus.values if status not in {"skipped", "released"}]
    return dict.fromkeys(always, 0) | found


def check_rows(row: Import, counts: dict[str, int]) -> None:
    """Raise ImportHasBadRows if rows are in conflict or refused, unless they are left out."""
    if row.skip_bad or not counts["conflict"] + counts["refused"]:
        return
    error = errors.ImportHasBadRows(
        f"Rows in conflict: {counts['conflict']}, refused: {counts['refused']}. Correct or skip them,"
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
        leased_until=None,
        started_at=None,
        actor=author.actor,
        source=author.source,
        request_id=author.request_id,
        **changes,
    )


def mark_committed(row: Import) -> None:
    """Set the status of an import to committed."""
    _end(row, "counts", "skip_bad", status=Status.COMMITTED, committed_at=Now())


def mark_undone(row: Import) -> None:
    """Set the status of an import to undone."""
    _end(row, "counts", status=Status.UNDONE, undone_at=Now())


def _end(row: Import, *fields: str, **changes: object) -> None:
    _save(row, *fields, **changes, rows_done=row.rows_total or 0, error_code="", error="")
