"""The states that an import goes through: what each of them writes into its row."""

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


def _nothing(_done: int) -> None:
    return


def draft(
    vm_import: VMImport,
    rows: Iterable[VMInterface],
    reading: formats.FileReading,
    work: Work | None,
) -> None:
    """Its rows are read, judged and counted."""
    vm_import.rows_total = vm_import.rows_done = import_rows.store(
        vm_import, rows, work.step if work else _nothing
    )
    validation.validate(vm_import)
    vm_import.left_out = dict(reading.skipped)
    vm_import.notes += [{"code": note.code, "message": note.message} for note in reading.notes]
    vm_import.notes += _left_out(reading.skipped)
    _drafted(vm_import)
    if work is not None:
        leases.end(work)
    ImportFile.objects.filter(vm_import=vm_import).delete()
    vm_import.save(update_fields=["rows_total", "rows_done", "left_out", "notes", *_DRAFTED])


# Of which people look for a VM that is not among the rows.
_LEFT_OUT = {
    "template": "Templates",
    "srm_placeholder": "Placeholders of Site Recovery Manager",
    "vcls": "VMs of vSphere Cluster Services",
    "guest_only_interface": "Interfaces that only the guest has, of the VMs",
}


def _left_out(skipped: Skipped) -> list[dict[str, str]]:
    """A note for each reason, with the names of its VMs."""
    notes = []
    for reason, names in skipped.names.items():
        if names and reason in _LEFT_OUT:
            listed = ", ".join(map(import_rows.clean, names))
            more = f" and more, {skipped[reason]} in all" if skipped[reason] > MAX_NAMES else ""
            message = f"{_LEFT_OUT[reason]} are left out: {listed}{more}"
            notes.append({"code": f"left_out_{reason}", "message": message})
    return notes


_DRAFTED = ("status", "counts", "drafted_at", "error_code", "error")


def _drafted(vm_import: VMImport) -> None:
    vm_import.status = Status.DRAFTED
    vm_import.counts = validation.count(vm_import)
    vm_import.drafted_at = Now()
    vm_import.error_code = vm_import.error = ""


def tell(import_id: int, error: errors.IpamError) -> None:
    """Why a draft was not written."""
    VMImport.objects.filter(pk=import_id, status=Status.DRAFTED).update(
        error_code=error.code[:63], error=error.message[:1000]
    )


def revalidate(vm_import: VMImport, numbers: list[int] | None = None) -> None:
    """Judge a draft again, or some of its rows, and count."""
    validation.validate(vm_import, numbers)
    _drafted(vm_import)
    vm_import.save(update_fields=_DRAFTED)


def to_commit(vm_import: VMImport, author: events.Author, *, skip_bad: bool) -> None:
    """It waits for a worker to write it."""
    vm_import.status, vm_import.skip_bad, vm_import.tries = Status.COMMITTING, skip_bad, 0
    vm_import.rows_done, vm_import.leased_until, vm_import.started_at = 0, None, None
    vm_import.actor, vm_import.source, vm_import.request_id = (
        author.actor,
        author.source,
        author.request_id,
    )
    vm_import.save(
        update_fields=[
            "status", "skip_bad", "tries", "rows_done", "leased_until", "started_at", "actor",
            "source", "request_id",
        ]
    )  # fmt: skip


def committed(vm_import: VMImport) -> None:
    """All of it was written."""
    vm_import.status = Status.COMMITTED
    vm_import.committed_at = Now()
    vm_import.rows_done = vm_import.rows_total or 0
    vm_import.error_code = vm_import.error = ""
    vm_import.save(
        update_fields=[
            "status", "counts", "committed_at", "rows_done", "skip_bad", "error_code", "error"
        ]
    )  # fmt: skip


def undone(vm_import: VMImport) -> None:
    """What it wrote was taken back."""
    vm_import.status = Status.UNDONE
    vm_import.undone_at = Now()
    vm_import.rows_done = vm_import.rows_total or 0
    vm_import.error_code = vm_import.error = ""
    vm_import.save(update_fields=["status", "undone_at", "rows_done", "error_code", "error"])


def cancelled(import_id: int, author: events.Author) -> None:
    """It ended before it was written; nothing of it stays."""
    with events.recorded(author):
        VMImport.objects.filter(pk=import_id).update(
            status=Status.CANCELLED, leased_until=None, cancel_wanted=True
        )
        leases.forget(import_id)
