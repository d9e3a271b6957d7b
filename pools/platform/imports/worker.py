"""Worker for large imports: it drafts, commits and undoes them, each in one transaction."""

from __future__ import annotations

import logging
from typing import Any

from django.db import DatabaseError

from pools.core import errors
from pools.models.register_imports import ImportStatus as Status
from pools.platform.imports import states
from pools.platform.imports.leases import Cancelled, Work
from pools.platform.imports.lifecycle import Imports
from pools.platform.leases import LeaseLost

log = logging.getLogger(__name__)


def process_import(imports: Imports[Any], import_id: int) -> bool:
    """Process all pending steps of an import, and return True if there were any.

    An error of the import is recorded in its row and not raised.
    """
    has_worked = False
    while (work := imports.leases.take(import_id)) is not None:
        has_worked = True
        if not _process(imports, work):
            break
    return has_worked


def _process(imports: Imports[Any], work: Work) -> bool:
    """Run the next step of an import; return False if this worker must stop."""
    row = imports.get(work.import_id)
    try:
        imports.leases.check_tries(work)
        with imports.leases.keep_alive(work):
            if row.undo_wanted:
                _undo(imports, row, work)
            elif row.status == Status.COMMITTING:
                _commit(imports, row, work)
            else:
                _draft(imports, row, work)
    except Cancelled:
        imports.mark_cancelled(row.pk, states.recorded_author(row))
    except LeaseLost:
        log.warning("another worker has taken over %s", row)
        return False
    except DatabaseError:
        log.exception("%s will be retried", row)
        imports.leases.requeue(work, seconds=5 * work.tries)
        return False
    except errors.IpamError as error:
        _mark_failed(imports, row, work, error.code, error.message)
    except Exception:
        log.exception("%s failed", row)
        message = "Internal error; see the log of the worker."
        _mark_failed(imports, row, work, "internal_error", message)
    return True


def _mark_failed(imports: Imports[Any], row: Any, work: Work, code: str, message: str) -> None:
    leases = imports.leases
    mark = leases.mark_undo_failed if row.undo_wanted else leases.mark_failed
    mark(work, code, message)


def _draft(imports: Imports[Any], row: Any, work: Work) -> None:
    author = states.recorded_author(row)
    reading = imports.read(row)
    with imports.transaction(author):
        imports.store(row, reading, work.step)
        work.end()
        if row.commit_wanted:
            try:
                states.check_rows(row, row.counts)
            except errors.ImportHasBadRows as error:
                states.record_error(row, error)
            else:
                states.queue(row, author, status=Status.COMMITTING)


def _commit(imports: Imports[Any], row: Any, work: Work) -> None:
    author = states.recorded_author(row)
    try:
        with imports.transaction(author):
            imports.commit_rows(row, author=author, step=work.step)
            work.end()
    except imports.refusals as error:
        with imports.transaction(author):
            imports.revalidate_rows(row)
            states.record_error(row, error)
            work.end()


def _undo(imports: Imports[Any], row: Any, work: Work) -> None:
    author = states.recorded_author(row)
    with imports.transaction(author):
        imports.undo_rows(row, author=author, step=work.step)
        work.end()
