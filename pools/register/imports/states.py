"""Status changes of an import, and the fields that each of them writes."""

from __future__ import annotations

from pools.core import errors
from pools.models import RegisterFile, RegisterImport
from pools.models.fields import Now
from pools.models.register_imports import ImportStatus as Status
from pools.platform import events
from pools.register.imports import files, leases, validation
from pools.register.imports import rows as import_rows

_DRAFTED = ("status", "fingerprint", "counts", "drafted_at", "error_code", "error")


def bad_rows_error(counts: dict[str, int]) -> errors.ImportHasBadRows:
    error = errors.ImportHasBadRows(
        f"Rows in conflict: {counts['conflict']}, refused: {counts['refused']}. Correct or skip them,"
        " or commit the other rows only (skip_bad)."
    )
    error.extra = {"counts": counts}
    return error


def store_draft(
    register_import: RegisterImport, reading: files.Reading, work: leases.Work | None = None
) -> None:
    """Store, validate and count the rows of an import, and set its status to drafted."""
    register_import.fingerprint = import_rows.fingerprint(register_import)
    rows = import_rows.read_rows(register_import, reading.rows)
    if work is not None:
        work.step(len(rows) // 2)
    import_rows.store(rows)
    validation.validate(register_import)
    register_import.rows_total = register_import.rows_done = len(rows)
    register_import.format = reading.format
    register_import.notes = [*register_import.notes, *reading.notes]
    _set_drafted(register_import)
    if work is not None:
        leases.end(work)
    RegisterFile.objects.filter(register_import=register_import).delete()
    register_import.save(update_fields=["rows_total", "rows_done", "format", "notes", *_DRAFTED])


def _set_drafted(register_import: RegisterImport) -> None:
    register_import.status = Status.DRAFTED
    register_import.counts = validation.count_rows(register_import)
    register_import.drafted_at = Now()
    register_import.error_code = register_import.error = ""


def revalidate(register_import: RegisterImport) -> None:
    """Resolve and validate all rows of a draft again, and count them."""
    register_import.fingerprint = import_rows.fingerprint(register_import)
    rows = import_rows.load(register_import)
    import_rows.save(import_rows.reread(rows, register_import))
    validation.validate(register_import)
    mark_drafted(register_import)


def mark_drafted(register_import: RegisterImport) -> None:
    """Count the rows of a draft again."""
    _set_drafted(register_import)
    register_import.save(update_fields=_DRAFTED)


def record_error(import_id: int, error: errors.IpamError) -> None:
    """Record why a draft could not be committed."""
    RegisterImport.objects.filter(pk=import_id, status=Status.DRAFTED).update(
        error_code=error.code[:63], error=error.message[:1000]
    )


def queue(register_import: RegisterImport, author: events.Author, **changes: object) -> None:
    """Queue the next step of an import for a worker."""
    values = {
        "tries": 0,
        "rows_done": 0,
        "leased_until": None,
        "started_at": None,
        "actor": author.actor,
        "source": author.source,
        "request_id": author.request_id,
        **changes,
    }
    for name, value in values.items():
        setattr(register_import, name, value)
    register_import.save(update_fields=list(values))


def mark_committed(register_import: RegisterImport) -> None:
    """Set the status of an import to committed."""
    register_import.status = Status.COMMITTED
    register_import.committed_at = Now()
    _end(register_import, "counts", "committed_at", "skip_bad")


def mark_undone(register_import: RegisterImport) -> None:
    """Set the status of an import to undone."""
    register_import.status = Status.UNDONE
    register_import.undone_at = Now()
    _end(register_import, "undone_at")


def _end(register_import: RegisterImport, *fields: str) -> None:
    register_import.rows_done = register_import.rows_total or 0
    register_import.error_code = register_import.error = ""
    register_import.save(update_fields=["status", "rows_done", "error_code", "error", *fields])


def mark_cancelled(import_id: int, author: events.Author) -> None:
    """Set the status of an import to cancelled, and delete its rows and its files."""
    with events.recorded_by(author):
        RegisterImport.objects.filter(pk=import_id).update(
            status=Status.CANCELLED, leased_until=None, cancel_wanted=True
        )
        leases.discard(import_id)
