"""Who works on an import: a row with a fence, as with clusters (pools/clusters/reconcile/leases.py).

A worker that is killed leaves a lease that ends by itself; the next tick finds the import due again and
begins its work anew. A worker that slept finds at its next step that the fence is another one, and
stops. What it shows of its progress is written by a thread with a connection of its own, because a
commit is one transaction whose rows nobody sees before its end.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import DatabaseError, connection

from claims.models.imports import Status
from pools.clusters.reconcile import leases
from pools.core import errors
from pools.platform import database

LEASE = 60  # seconds
_EVERY = 1.0  # seconds between two looks at the progress
TRIES = 5  # then the import has failed

log = logging.getLogger(__name__)


class Cancelled(errors.Conflict):
    """The import was cancelled."""

    code = "import_cancelled"
    reason = "Cancelled"


@dataclass
class Work:
    """The right to work on an import until the lease ends, and how many rows are done."""

    import_id: int
    fence: int
    tries: int = 1
    done: int = 0

    def step(self, done: int) -> None:
        """So many rows are done. Raises LeaseLost, Cancelled."""
        self.done = done
        prove(self)


def due() -> list[int]:
    """Imports that wait for a worker, or whose worker is gone."""
    return [pk for (pk,) in database.rows(_DUE, [])]


_DUE = """
    SELECT id FROM claims_vmimport
    WHERE (status IN ('queued', 'drafting', 'committing') OR undo_wanted)
        AND (leased_until IS NULL OR leased_until < ipam_clock()) ORDER BY id LIMIT 100
"""


def take(import_id: int) -> Work | None:
    """None while another worker has it, or when there is nothing to do."""
    found = database.rows(_TAKE, [LEASE, import_id], prepare=False)
    return Work(import_id, *found[0]) if found else None


_TAKE = """
    UPDATE claims_vmimport SET fence = fence + 1, tries = tries + 1, rows_done = 0,
        status = CASE status WHEN 'queued' THEN 'drafting' ELSE status END,
        started_at = ipam_clock(), leased_until = ipam_clock() + make_interval(secs => %s)
    WHERE id = (SELECT id FROM claims_vmimport WHERE id = %s
        AND (status IN ('queued', 'drafting', 'committing') OR undo_wanted)
        AND (leased_until IS NULL OR leased_until < ipam_clock()) FOR UPDATE SKIP LOCKED)
    RETURNING fence, tries
"""


def refuse_hopeless(work: Work) -> None:
    """What ended so many workers will end the next one, too. Raises IpamError."""
    if work.tries > TRIES:
        raise errors.IpamError(f"It was tried {TRIES} times without success.")


@contextlib.contextmanager
def kept(work: Work) -> Iterator[None]:
    """Hold on to the lease and tell the progress, however long a step takes."""
    ended = threading.Event()
    thread = threading.Thread(target=_keep, args=(work, ended), daemon=True, name="import")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)


def _keep(work: Work, ended: threading.Event) -> None:
    try:
        while not ended.wait(_EVERY):
            try:
                if not database.rows(_KEEP, [work.done, LEASE, work.import_id, work.fence]):
                    return
            except DatabaseError:
                log.warning("the lease of import %s could not be renewed", work.import_id)
                connection.close()
    finally:
        connection.close()


_KEEP = """
    UPDATE claims_vmimport SET rows_done = %s,
        leased_until = ipam_clock() + make_interval(secs => %s)
    WHERE id = %s AND fence = %s AND leased_until > ipam_clock()
        AND (status IN ('drafting', 'committing') OR undo_wanted)
    RETURNING id
"""


def prove(work: Work) -> None:
    """Raises LeaseLost, or Cancelled when somebody wants it to end."""
    found = database.rows(_PROVE, [work.import_id, work.fence])
    if not found:
        raise leases.LeaseLost("Another worker has the import.")
    if found[0][0]:
        raise Cancelled


_PROVE = """
    SELECT cancel_wanted FROM claims_vmimport
    WHERE id = %s AND fence = %s AND leased_until > ipam_clock()
"""


def end(work: Work) -> None:
    """The last step of a transaction: nobody takes the import over, nor cancels it, before it ends.

    Raises LeaseLost, Cancelled.
    """
    found = database.rows(_END, [work.import_id, work.fence])
    if not found:
        prove(work)
        raise leases.LeaseLost("Another worker has the import.")


_END = """
    UPDATE claims_vmimport SET leased_until = NULL, tries = 0, undo_wanted = false
    WHERE id = %s AND fence = %s AND leased_until > ipam_clock() AND NOT cancel_wanted
    RETURNING id
"""


def put_back(work: Work, *, seconds: float = 0) -> None:
    """Let another worker try, after so many seconds."""
    database.rows(_PUT_BACK, [seconds, work.import_id, work.fence])


_PUT_BACK = """
    UPDATE claims_vmimport SET leased_until = ipam_clock() + make_interval(secs => %s)
    WHERE id = %s AND fence = %s RETURNING id
"""


def failed(work: Work, code: str, message: str) -> None:
    """It cannot be read; nothing of it is kept but why. Nothing is told by one that lost its lease."""
    values = [Status.FAILED.value, code[:63], message[:1000], work.import_id, work.fence]
    if database.rows(_FAILED, values):
        forget(work.import_id)


_FAILED = """
    UPDATE claims_vmimport SET status = %s, error_code = %s, error = %s, leased_until = NULL
    WHERE id = %s AND fence = %s AND status IN ('drafting', 'committing') RETURNING id
"""


def not_undone(work: Work, code: str, message: str) -> None:
    """What was written stays written; the import says why."""
    values = [code[:63], message[:1000], work.import_id, work.fence]
    database.rows(_NOT_UNDONE, values)


_NOT_UNDONE = """
    UPDATE claims_vmimport SET undo_wanted = false, error_code = %s, error = %s,
        leased_until = NULL, tries = 0
    WHERE id = %s AND fence = %s RETURNING id
"""


def forget(import_id: int) -> None:
    """Delete the rows and the file of an import that comes to nothing."""
    database.rows("DELETE FROM claims_importrow WHERE vm_import_id = %s RETURNING 1", [import_id])
    database.rows("DELETE FROM claims_importfile WHERE vm_import_id = %s RETURNING 1", [import_id])
