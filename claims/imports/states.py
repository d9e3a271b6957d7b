"""The states that an import goes through: what each of them writes into its row."""

from __future__ import annotations

from collections.abc import Iterable

from claims.core.vm_import.vm_interface import MOST_NAMES, Found, Skipped
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


def draft(of: VMImport, rows: Iterable[Found], reading: formats.Reading, work: Work | None) -> None:
    """Its rows are read, judged and counted."""
    of.rows_total = of.rows_done = import_rows.store(of, rows, work.step if work else _nothing)
    validation.judge(of)
    of.left_out = dict(reading.skipped)
    of.notes += [{"code": one.code, "message": one.message} for one in reading.notes]
    of.notes += _left_out(reading.skipped)
    _drafted(of)
    if work is not None:
        leases.end(work)
    ImportFile.objects.filter(vm_import=of).delete()
    of.save(update_fields=["rows_total", "rows_done", "left_out", "notes", *_DRAFTED])


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
            more = f" and more, {skipped[reason]} in all" if skipped[reason] > MOST_NAMES else ""
            message = f"{_LEFT_OUT[reason]} are left out: {listed}{more}"
            notes.append({"code": f"left_out_{reason}", "message": message})
    return notes


_DRAFTED = ("status", "counts", "drafted_at", "error_code", "error")


def _drafted(of: VMImport) -> None:
    of.status = Status.DRAFTED
    of.counts = validation.count(of)
    of.drafted_at = Now()
    of.error_code = of.error = ""


def tell(import_id: int, error: errors.IpamError) -> None:
    """Why a draft was not written."""
    VMImport.objects.filter(pk=import_id, status=Status.DRAFTED).update(
        error_code=error.code[:63], error=error.message[:1000]
    )


def judge(of: VMImport, numbers: list[int] | None = None) -> None:
    """Judge a draft again, or some of its rows, and count."""
    validation.judge(of, numbers)
    _drafted(of)
    of.save(update_fields=_DRAFTED)


def to_commit(of: VMImport, author: events.Author, *, skip_bad: bool) -> None:
    """It waits for a worker to write it."""
    of.status, of.skip_bad, of.tries = Status.COMMITTING, skip_bad, 0
    of.rows_done, of.leased_until, of.started_at = 0, None, None
    of.actor, of.source, of.request_id = author.actor, author.source, author.request_id
    of.save(
        update_fields=[
            "status", "skip_bad", "tries", "rows_done", "leased_until", "started_at", "actor",
            "source", "request_id",
        ]
    )  # fmt: skip


def committed(of: VMImport) -> None:
    """All of it was written."""
    of.status = Status.COMMITTED
    of.committed_at = Now()
    of.rows_done = of.rows_total or 0
    of.error_code = of.error = ""
    of.save(
        update_fields=[
            "status", "counts", "committed_at", "rows_done", "skip_bad", "error_code", "error"
        ]
    )  # fmt: skip


def undone(of: VMImport) -> None:
    """What it wrote was taken back."""
    of.status = Status.UNDONE
    of.undone_at = Now()
    of.rows_done = of.rows_total or 0
    of.error_code = of.error = ""
    of.save(update_fields=["status", "undone_at", "rows_done", "error_code", "error"])


def cancelled(import_id: int, author: events.Author) -> None:
    """It ended before it was written; nothing of it stays."""
    with events.recorded(author):
        VMImport.objects.filter(pk=import_id).update(
            status=Status.CANCELLED, leased_until=None, cancel_wanted=True
        )
        leases.forget(import_id)
