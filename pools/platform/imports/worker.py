"""Worker for large imports: it drafts, commits and undoes them, each in one transaction.

The transaction has an advisory lock of PostgreSQL, so that an import has one worker at a time. A worker that dies
frees it with its connection, and has written nothing; the schedule sends the import to another one, which starts
over.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction

from pools.core import errors
from pools.models.imports import Import, ImportStatus as Status
from pools.platform import advisory_locks, database, events
from pools.platform.imports import states
from pools.platform.imports.lifecycle import KINDS, Imports, Step

log = logging.getLogger(__name__)

TRIES = 5  # attempts at a step until the import fails
_PROGRESS_SECONDS = 1.0  # between two writes of the progress


class Cancelled(errors.Conflict):
    """The import was cancelled."""

    code = "import_cancelled"


def process_import(import_id: int) -> bool:
    """Process all pending steps of an import, and return True if there were any.

    An error of the import is recorded in its row and not raised.
    """
    kind = Import.objects.filter(pk=import_id).values_list("kind", flat=True).first()
    if kind is None:
        return False
    imports, has_worked = KINDS[kind], False
    while _start(imports, import_id) and _process(imports, import_id):
        has_worked = True
    return has_worked


@contextmanager
def _locked(imports: Imports[Any], import_id: int) -> Iterator[Any]:
    """Open a transaction with the lock of an import, and yield the import.

    Yields None if another worker has the lock or the import has no step for a worker.
    """
    with transaction.atomic():
        if not advisory_locks.try_lock(advisory_locks.IMPORT, import_id):
            yield None
            return
        # The transaction may pause while 100,000 rows are read and computed.
        database.rows("SELECT set_config('idle_in_transaction_session_timeout', '10min', true)", [])
        yield imports.waiting(import_id)


def _start(imports: Imports[Any], import_id: int) -> bool:
    """Count an attempt at the next step, in a transaction of its own: it counts although its worker dies.

    Return False if the import has no step for this worker. Beside it: what was cancelled ends here, and what has
    ended too many workers fails.
    """
    with _locked(imports, import_id) as row:
        if row is None:
            return False
        if row.cancel_wanted:
            imports.mark_cancelled(import_id, states.recorded_author(row))
            return False
        if row.tries >= TRIES:
            message = f"The import failed after {TRIES} attempts."
            imports.mark_failed(row, errors.IpamError.code, message)
            return False
        return states.start(row)


def _process(imports: Imports[Any], import_id: int) -> bool:
    """Run the next step of an import; return False if another worker does, or the step has to be retried."""
    try:
        with _locked(imports, import_id) as row:
            if row is None:
                return False
            with _progress(row) as step:
                _run(imports, row, step)
    except Cancelled:
        log.info("import %s was cancelled", import_id)  # `_start` ends it
    except DatabaseError:
        log.exception("import %s will be retried", import_id)
        return False
    except errors.IpamError as error:
        _mark_failed(imports, import_id, error.code, error.message)
    except Exception:
        log.exception("import %s failed", import_id)
        message = "Internal error; see the log of the worker."
        _mark_failed(imports, import_id, "internal_error", message)
    return True


def _mark_failed(imports: Imports[Any], import_id: int, code: str, message: str) -> None:
    with _locked(imports, import_id) as row:
        if row is not None:
            imports.mark_failed(row, code, message)


@contextmanager
def _progress(row: Import) -> Iterator[Step]:
    """Yield the function that records the number of rows done; it raises Cancelled.

    It writes with a connection of its own, because the changes of a step are invisible to others until its
    transaction ends, and skips a row that this transaction has changed.
    """
    progress_connection = connections[DEFAULT_DB_ALIAS].copy()
    is_wanted = type(row)._default_manager.filter(pk=row.pk, cancel_wanted=False)
    table, due_at = row._meta.db_table, time.monotonic()

    def step(done: int) -> None:
        nonlocal due_at
        if not is_wanted.exists():
            raise Cancelled
        if time.monotonic() < due_at:
            return
        due_at = time.monotonic() + _PROGRESS_SECONDS
        try:
            with progress_connection.cursor() as cursor:
                cursor.execute(
                    f"UPDATE {table} SET rows_done = %s, rows_total = %s WHERE id ="  # noqa: S608
                    f" (SELECT id FROM {table} WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED)",
                    [done, row.rows_total, row.pk],
                )
        except DatabaseError:
            log.warning("the progress of %s could not be written", row)

    try:
        yield step
    finally:
        progress_connection.close()


# --- steps ----------------------------------------------------------------------------------------


def _run(imports: Imports[Any], row: Any, step: Step) -> None:
    if row.undo_wanted:
        imports.undo_rows(row, author=states.recorded_author(row), step=step)
        _end(row)
    elif row.status == Status.COMMITTING:
        _commit(imports, row, step)
    else:
        _draft(imports, row, step)


def _end(row: Import) -> None:
    """End a step; until the commit nobody can cancel it any more. Raises Cancelled."""
    if not states.end(row):
        raise Cancelled


def _draft(imports: Imports[Any], row: Any, step: Step) -> None:
    author = states.recorded_author(row)
    reading = imports.read(row, [(file.name, bytes(file.content)) for file in row.files.all()])
    with events.recorded_by(author):
        imports.store(row, reading, step)
        _end(row)
        if row.commit_wanted:
            try:
                states.check_rows(row, row.counts)
            except errors.ImportHasBadRows as error:
                states.record_error(row, error)
            else:
                states.queue(row, author, status=Status.COMMITTING)


def _commit(imports: Imports[Any], row: Any, step: Step) -> None:
    author = states.recorded_author(row)
    try:
        with events.recorded_by(author):
            imports.commit_rows(row, author=author, step=step)
    except imports.refusals as error:
        with events.recorded_by(author):
            imports.revalidate_rows(row)
            states.record_error(row, error)
    _end(row)
