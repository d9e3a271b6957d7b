"""Which worker works on an import (pools/platform/leases.py).

A worker that is killed leaves a lease that ends by itself; the next tick finds the import due again and
begins its work anew. Progress is written by the thread that renews the lease, with a connection of its
own, because a commit is one transaction whose rows nobody sees before its end.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Case, F, Q, Value, When

from claims.models import VMImport
from claims.models.imports import Status
from pools.core import errors
from pools.models.fields import Clock
from pools.platform import database, leases
from pools.platform.leases import FREE, Lease, LeaseLost

_RENEWAL_SECONDS = 1.0  # seconds between two notes of the progress
TRIES = 5  # then the import has failed


class Cancelled(errors.Conflict):
    """The import was cancelled."""

    code = "import_cancelled"
    reason = "Cancelled"


@dataclass
class Work:
    """The right to work on an import until the lease ends, and how many rows are done."""

    lease: Lease
    tries: int = 1
    done: int = 0

    @property
    def import_id(self) -> int:
        return self.lease.row_id

    def step(self, done: int) -> None:
        """So many rows are done. Raises LeaseLost, Cancelled."""
        self.done = done
        prove(self)


_IN_PROGRESS = Q(status__in=[Status.DRAFTING, Status.COMMITTING]) | Q(undo_wanted=True)
_WAITING = Q(status=Status.QUEUED) | _IN_PROGRESS
_LEASES = leases.Leases(VMImport)


def due_imports() -> list[int]:
    """Return imports that wait for a worker, or whose worker is gone; the first hundred."""
    rows = VMImport.objects.filter(_WAITING, FREE).order_by("pk")
    return list(rows.values_list("pk", flat=True)[:100])


def take(import_id: int) -> Work | None:
    """Lease an import; None while another worker has it, or when there is nothing to do."""
    lease = _LEASES.take(
        import_id,
        _WAITING,
        tries=F("tries") + 1,
        rows_done=0,
        status=Case(
            When(status=Status.QUEUED, then=Value(Status.DRAFTING.value)), default=F("status")
        ),
        started_at=Clock(),
    )
    if lease is None:
        return None
    return Work(lease, VMImport.objects.values_list("tries", flat=True).get(pk=import_id))


def check_tries(work: Work) -> None:
    """What ended so many workers will end the next one, too. Raises IpamError."""
    if work.tries > TRIES:
        raise errors.IpamError(f"It was tried {TRIES} times without success.")


def keep_alive(work: Work) -> AbstractContextManager[None]:
    """Renew the lease and write the progress, however long a step takes."""
    return _RENEWED.renewing(
        work.lease, every=_RENEWAL_SECONDS, changes=lambda: {"rows_done": work.done}
    )


_RENEWED = leases.Leases(VMImport, condition=_IN_PROGRESS)


def prove(work: Work) -> None:
    """Raises LeaseLost, or Cancelled when somebody wants it to end."""
    cancelled = _LEASES.held(work.lease).values_list("cancel_wanted", flat=True).first()
    if cancelled is None:
        raise LeaseLost("Another worker has the import.")
    if cancelled:
        raise Cancelled


def end(work: Work) -> None:
    """The last step of a transaction: nobody takes the import over, nor cancels it, before it ends.

    Raises LeaseLost, Cancelled.
    """
    rows = _LEASES.held(work.lease).filter(cancel_wanted=False)
    if not rows.update(leased_until=None, tries=0, undo_wanted=False):
        prove(work)
        raise LeaseLost("Another worker has the import.")


def requeue(work: Work, *, seconds: float = 0) -> None:
    """Let another worker try, after so many seconds."""
    _LEASES.end(work.lease, leased_until=Clock() + timedelta(seconds=seconds))


def mark_failed(work: Work, code: str, message: str) -> None:
    """It cannot be read; nothing of it is kept but why. A worker that lost its lease reports nothing."""
    rows = VMImport.objects.filter(
        pk=work.import_id,
        fence=work.lease.fence,
        status__in=[Status.DRAFTING, Status.COMMITTING],
    )
    changes: dict[str, Any] = {"error_code": code[:63], "error": message[:1000]}
    if rows.update(status=Status.FAILED, leased_until=None, **changes):
        discard(work.import_id)


def mark_undo_failed(work: Work, code: str, message: str) -> None:
    """What was written stays written; the import says why."""
    changes: dict[str, Any] = {"error_code": code[:63], "error": message[:1000]}
    _LEASES.end(work.lease, undo_wanted=False, tries=0, **changes)


def discard(import_id: int) -> None:
    """Delete the rows and the file of an import that comes to nothing."""
    database.rows("DELETE FROM claims_importrow WHERE vm_import_id = %s RETURNING 1", [import_id])
    database.rows("DELETE FROM claims_importfile WHERE vm_import_id = %s RETURNING 1", [import_id])
