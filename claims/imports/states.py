"""Status changes of an import, and the fields that each of them writes."""

from __future__ import annotations

from collections.abc import Iterable

from claims.core.vm_import.vm_interface import MAX_NAMES, Skipped, VMInterface
from claims.imports import leases, validation
from claims.imports import rows as import_rows
from claims.imports.files import formats
from claims.imports.leases import Work
from claims.models import ImportFile, VMImport
from claims.models.imports import Status
from pools.core import errors
from pools.models.fields import Now
from pools.platform import events


def _ignore_progress(_rows_done: int) -> None:
    return


def store_draft(
    vm_import: VMImport,
    rows: Iterable[VMInterface],
    reading: formats.FileReading,
    work: Work | None,
) -> None:
    """Store, validate and count the rows of an import, and set its status to drafted."""
    vm_import.rows_total = vm_import.rows_done = import_rows.store(
        vm_import, rows, work.step if work else _ignore_progress
    )
    validation.validate(vm_import)
    vm_import.left_out = dict(reading.skipped)
    vm_import.notes += [{"code": note.code, "message": note.message} for note in reading.notes]
    vm_import.notes += _left_out_notes(reading.skipped)
    _set_drafted(vm_import)
    if work is not None:
        leases.end(work)
    ImportFile.objects.filter(vm_import=vm_import).delete()
    vm_import.save(update_fields=["rows_total", "rows_done", "left_out", "notes", *_DRAFTED])


# Reasons that need a note: a user may miss such a VM among the rows.
_LEFT_OUT = {
    "template": "Templates",
    "srm_placeholder": "Placeholders of Site Recovery Manager",
    "vcls": "VMs of vSphere Cluster Services",
    "guest_only_interface": "Interfaces that only the guest has, of the VMs",
}


def _left_out_notes(skipped: Skipped) -> list[dict[str, str]]:
    """Return a note for each reason, with the names of the VMs that were left out."""
    notes = []
    for reason, names in skipped.names.items():
        if names and reason in _LEFT_OUT:
            vm_names = ", ".join(map(import_rows.clean, names))
            suffix = f" and more, {skipped[reason]} in all" if skipped[reason] > MAX_NAMES else ""
            message = f"{_LEFT_OUT[reason]} are left out: {vm_names}{suffix}"
            notes.append({"code": f"left_out_{reason}", "message": message})
    return notes


_DRAFTED = ("status", "counts", "drafted_at", "error_code", "error")


def _set_drafted(vm_import: VMImport) -> None:
    vm_import.status = Status.DRAFTED
    vm_import.counts = validation.count_rows(vm_import)
    vm_import.drafted_at = Now()
    vm_import.error_code = vm_import.error = ""


def record_error(import_id: int, error: errors.IpamError) -> None:
    """Record why a draft could not be committed."""
    VMImport.objects.filter(pk=import_id, status=Status.DRAFTED).update(
        error_code=error.code[:63], error=error.message[:1000]
    )


def revalidate(vm_import: VMImport, numbers: list[int] | None = None) -> None:
    """Validate all rows of a draft, or the given ones, and count them."""
    validation.validate(vm_import, numbers)
    _set_drafted(vm_import)
    vm_import.save(update_fields=_DRAFTED)


def queue_commit(vm_import: VMImport, author: events.Author, *, skip_bad: bool) -> None:
    """Queue a draft for a worker that commits it."""
    vm_import.status, vm_import.skip_bad, vm_import.tries = Status.COMMITTING, skip_bad, 0
    vm_import.rows_done, vm_import.leased_until, vm_import.started_at = 0, None, None
    vm_import.actor, vm_import.source, vm_import.request_id = (
        author.actor,
        author.source,
        author.request_id,
    )
    vm_import.save(
        update_fields=[
            "status",
            "skip_bad",
            "tries",
            "rows_done",
            "leased_until",
            "started_at",
            "actor",
            "source",
            "request_id",
        ]
    )


def mark_committed(vm_import: VMImport) -> None:
    """Set the status of an import to committed."""
    vm_import.status = Status.COMMITTED
    vm_import.committed_at = Now()
    vm_import.rows_done = vm_import.rows_total or 0
    vm_import.error_code = vm_import.error = ""
    vm_import.save(
        update_fields=[
            "status",
            "counts",
            "committed_at",
            "rows_done",
            "skip_bad",
            "error_code",
            "error",
        ]
    )


def mark_undone(vm_import: VMImport) -> None:
    """Set the status of an import to undone."""
    vm_import.status = Status.UNDONE
    vm_import.undone_at = Now()
    vm_import.rows_done = vm_import.rows_total or 0
    vm_import.error_code = vm_import.error = ""
    vm_import.save(update_fields=["status", "undone_at", "rows_done", "error_code", "error"])


def mark_cancelled(import_id: int, author: events.Author) -> None:
    """Set the status of an import to cancelled, and delete its rows and its upload."""
    with events.recorded_by(author):
        VMImport.objects.filter(pk=import_id).update(
            status=Status.CANCELLED, leased_until=None, cancel_wanted=True
        )
        leases.discard(import_id)
