"""Worker for large imports: it drafts, commits and undoes them, each in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError

from pools.core import errors
from pools.models import RegisterFile, RegisterImport
from pools.models.register_imports import ImportStatus as Status
from pools.platform import database, events
from pools.platform.leases import LeaseLost
from pools.register.imports import commit, files, leases, sources, states, undo
from pools.register.imports.leases import Cancelled, Work

log = logging.getLogger(__name__)


def process_import(import_id: int) -> bool:
    """Process all pending steps of an import, and return True if there were any.

    An error of the import is recorded in its row and not raised.
    """
    has_worked = False
    while (work := leases.take(import_id)) is not None:
        has_worked = True
        if not _process(work):
            break
    return has_worked


def _process(work: Work) -> bool:
    """Run the next step of an import; return False if this worker must stop."""
    register_import = RegisterImport.objects.select_related("cluster", "netbox_source").get(
        pk=work.import_id
    )
    try:
        leases.check_tries(work)
        with leases.keep_alive(work):
            if register_import.undo_wanted:
                _undo(register_import, work)
            elif register_import.status == Status.COMMITTING:
                _commit(register_import, work)
            else:
                _draft(register_import, work)
    except Cancelled:
        states.mark_cancelled(register_import.pk, _author(register_import))
    except LeaseLost:
        log.warning("another worker has taken over register import %s", register_import.pk)
        return False
    except DatabaseError:
        log.exception("register import %s will be retried", register_import.pk)
        leases.requeue(work, seconds=5 * work.tries)
        return False
    except errors.IpamError as error:
        _mark_failed(register_import, work, error.code, error.message)
    except Exception:
        log.exception("register import %s failed", register_import.pk)
        message = "Internal error; see the log of the worker."
        _mark_failed(register_import, work, "internal_error", message)
    return True


def _mark_failed(register_import: RegisterImport, work: Work, code: str, message: str) -> None:
    mark = leases.mark_undo_failed if register_import.undo_wanted else leases.mark_failed
    mark(work, code, message)


def _author(register_import: RegisterImport) -> events.Author:
    return commit.import_author(
        register_import,
        events.Author(
            register_import.actor, register_import.source or "worker", register_import.request_id
        ),
    )


@contextmanager
def _long_transaction(author: events.Author) -> Iterator[None]:
    """Record events of the author, in a transaction that may pause while 100,000 rows are computed."""
    with events.recorded_by(author):
        database.rows("SELECT set_config('idle_in_transaction_session_timeout', '10min', true)", [])
        yield


def _draft(register_import: RegisterImport, work: Work) -> None:
    author, reading = _author(register_import), files.Reading()
    if register_import.netbox_source is not None:
        reading = sources.read(register_import.netbox_source)
    for file in RegisterFile.objects.filter(register_import=register_import):
        files.read_file(file.name, bytes(file.content), reading)
    RegisterImport.objects.filter(pk=register_import.pk).update(rows_total=len(reading.rows))
    with _long_transaction(author):
        states.store_draft(register_import, reading, work)
        bad = register_import.counts["conflict"] + register_import.counts["refused"]
        if register_import.commit_wanted and (register_import.skip_bad or not bad):
            states.queue(register_import, author, status=Status.COMMITTING)
    if register_import.commit_wanted and bad and not register_import.skip_bad:
        states.record_error(register_import.pk, states.bad_rows_error(register_import.counts))


def _commit(register_import: RegisterImport, work: Work) -> None:
    author = _author(register_import)
    try:
        with _long_transaction(author):
            register_import.counts = commit.commit_draft(
                register_import, author=author, step=work.step
            )
            leases.end(work)
            states.mark_committed(register_import)
    except errors.ImportHasBadRows as error:
        with _long_transaction(author):
            leases.end(work)
            states.revalidate(register_import)
            states.record_error(register_import.pk, error)


def _undo(register_import: RegisterImport, work: Work) -> None:
    author = _author(register_import)
    try:
        with _long_transaction(author):
            undo.undo(register_import, author=author, step=work.step)
            leases.end(work)
            states.mark_undone(register_import)
    except errors.ImportInUse as error:
        leases.mark_undo_failed(work, error.code, error.message)
