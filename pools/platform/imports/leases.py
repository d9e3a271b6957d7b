"""Leases of imports: which worker works on which import (pools/platform/leases.py).

The lease of a killed worker expires; another worker then takes the import and starts over. The thread that
renews the lease also writes the progress, with its own connection, because the rows of a commit are
invisible to others until its transaction ends.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Case, F, Q, Value, When

from pools.core import errors
from pools.models.fields import Clock
from pools.models.register_imports import Import
from pools.models.register_imports import ImportStatus as Status
from pools.platform import database, leases
from pools.platform.leases import FREE, Lease, LeaseLost

_RENEWAL_SECONDS = 1.0  # between two updates of the lease and the progress
TRIES = 5  # attempts until the import fails


class Cancelled(errors.Conflict):
    """The import was cancelled."""

    code = "import_cancelled"


@dataclass
class Work:
    """A worker's lease of an import, and the number of rows done."""

    leases: ImportLeases
    lease: Lease
    tries: int = 1
    done: int = 0

    @property
    def import_id(self) -> int:
        return self.lease.row_id

    def step(self, done: int) -> None:
        """Record the number of rows done. Raises LeaseLost, Cancelled."""
        self.done = done
        self.leases.prove(self)

    def end(self) -> None:
        """End the lease as the last step of the transaction; until the commit nobody can take over or cancel.

        Raises LeaseLost, Cancelled.
        """
        self.leases.end(self)


_IN_PROGRESS = Q(status__in=[Status.DRAFTING, Status.COMMITTING]) | Q(undo_wanted=True)
_WAITING = Q(status=Status.QUEUED) | _IN_PROGRESS


class ImportLeases:
    """The leases on the imports of `model`; `discards` are statements that delete the rows and files of one."""

    def __init__(self, model: type[Import], *discards: str) -> None:
        self._rows = model._default_manager.all
        self._discards = discards
        self._leases = leases.Leases(model)
        self._renewed = leases.Leases(model, condition=_IN_PROGRESS)

    def due_imports(self) -> list[int]:
        """Return the ids of the first 100 imports that wait for a worker, or whose lease has expired."""
        rows = self._rows().filter(_WAITING, FREE).order_by("pk")
        return list(rows.values_list("pk", flat=True)[:100])

    def take(self, import_id: int) -> Work | None:
        """Lease an import; return None if another worker has it or it has no work left."""
        lease = self._leases.take(
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
        return Work(self, lease, self._rows().values_list("tries", flat=True).get(pk=import_id))

    def check_tries(self, work: Work) -> None:
        """Raise IpamError if too many workers have failed at the import: the next one would fail, too."""
        if work.tries > TRIES:
            raise errors.IpamError(f"The import failed after {TRIES} attempts.")

    def keep_alive(self, work: Work) -> AbstractContextManager[None]:
        """Return a context that renews the lease and writes the progress in a thread."""
        return self._renewed.renewing(
            work.lease, every=_RENEWAL_SECONDS, changes=lambda: {"rows_done": work.done}
        )

    def prove(self, work: Work) -> None:
        """Raise LeaseLost if another worker has the import, and Cancelled if a user cancelled it."""
        cancelled = self._leases.held(work.lease).values_list("cancel_wanted", flat=True).first()
        if cancelled is None:
            raise LeaseLost("Another worker has the import.")
        if cancelled:
            raise Cancelled

    def end(self, work: Work) -> None:
        """End a lease. Raises LeaseLost, Cancelled."""
        rows = self._leases.held(work.lease).filter(cancel_wanted=False)
        if not rows.update(leased_until=None, tries=0, undo_wanted=False):
            self.prove(work)
            raise LeaseLost("Another worker has the import.")

    def requeue(self, work: Work, *, seconds: float = 0) -> None:
        """Make the import available to another worker after `seconds`."""
        self._leases.end(work.lease, leased_until=Clock() + timedelta(seconds=seconds))

    def mark_failed(self, work: Work, code: str, message: str) -> None:
        """Mark the import as failed with an error, and delete its rows and its upload.

        A worker that has lost the lease changes nothing.
        """
        rows = self._rows().filter(
            pk=work.import_id,
            fence=work.lease.fence,
            status__in=[Status.DRAFTING, Status.COMMITTING],
        )
        changes: dict[str, Any] = {"error_code": code[:63], "error": message[:1000]}
        if rows.update(status=Status.FAILED, leased_until=None, **changes):
            self.discard(work.import_id)

    def mark_undo_failed(self, work: Work, code: str, message: str) -> None:
        """Record why an undo failed; the import stays committed."""
        changes: dict[str, Any] = {"error_code": code[:63], "error": message[:1000]}
        self._leases.end(work.lease, undo_wanted=False, tries=0, **changes)

    def discard(self, import_id: int) -> None:
        """Delete the rows and the upload of an import that failed or was cancelled."""
        for statement in self._discards:
            database.rows(statement, [import_id])
