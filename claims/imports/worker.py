"""Worker for large imports: it drafts, commits and undoes them, each in one transaction."""

from __future__ import annotations

import logging

from django.db import DatabaseError

from claims.imports import commit, states, undo, uploads
from claims.imports import leases as import_leases
from claims.imports.leases import Cancelled, Work
from claims.models import VMImport
from claims.models.imports import Status
from pools.core import errors
from pools.platform import events
from pools.platform.leases import LeaseLost

log = logging.getLogger(__name__)


def process_import(import_id: int) -> bool:
    """Process all pending steps of an import, and return True if there were any.

    An error of the import is recorded in its row and not raised.
    """
    has_worked = False
    while (work := import_leases.take(import_id)) is not None:
        has_worked = True
        if not _process(work):
            break
    return has_worked


def _process(work: Work) -> bool:
    """Run the next step of an import; return False if this worker must stop."""
    rows = VMImport.objects.select_related("cluster", "network", "user")
    vm_import = rows.get(pk=work.import_id)
    try:
        import_leases.check_tries(work)
        with import_leases.keep_alive(work):
            if vm_import.undo_wanted:
                _undo_large(vm_import, work)
            elif vm_import.status == Status.COMMITTING:
                _commit_large(vm_import, work)
            else:
                _draft_large(vm_import, work)
    except Cancelled:
        states.mark_cancelled(vm_import.pk, _author(vm_import))
    except LeaseLost:
        log.warning("another worker has taken over import %s", vm_import.pk)
        return False
    except DatabaseError:
        log.exception("import %s will be retried", vm_import.pk)
        import_leases.requeue(work, seconds=5 * work.tries)
        return False
    except errors.IpamError as error:
        _mark_failed(vm_import, work, error.code, error.message)
    except Exception:
        log.exception("import %s failed", vm_import.pk)
        _mark_failed(
            vm_import, work, "internal_error", "Internal error; see the log of the worker."
        )
    return True


def _mark_failed(vm_import: VMImport, work: Work, code: str, message: str) -> None:
    mark = import_leases.mark_undo_failed if vm_import.undo_wanted else import_leases.mark_failed
    mark(work, code, message)


def _author(vm_import: VMImport) -> events.Author:
    return events.Author(
        vm_import.actor,
        vm_import.source or "worker",
        vm_import.request_id,
        f"import {vm_import.pk}",
    )


def _draft_large(vm_import: VMImport, work: Work) -> None:
    reading = uploads.load(vm_import).open(already_counted=True)
    with events.recorded_by(_author(vm_import)):
        states.store_draft(vm_import, reading.rows(), reading, work)
        if vm_import.commit_wanted:
            states.queue_commit(vm_import, _author(vm_import), skip_bad=vm_import.skip_bad)


def _commit_large(vm_import: VMImport, work: Work) -> None:
    author = _author(vm_import)
    try:
        with events.recorded_by(author):
            vm_import.counts = commit.commit_draft(vm_import, author=author, step=work.step)
            import_leases.end(work)
            states.mark_committed(vm_import)
    except (errors.ImportHasBadRows, errors.ClusterDecides) as error:
        with events.recorded_by(author):
            import_leases.end(work)
            states.revalidate(vm_import)
            states.record_error(vm_import.pk, error)


def _undo_large(vm_import: VMImport, work: Work) -> None:
    author = _author(vm_import)
    try:
        with events.recorded_by(author):
            undo.undo(vm_import, author=author, step=work.step)
            import_leases.end(work)
            states.mark_undone(vm_import)
    except (errors.ImportInUse, errors.ClusterDecides) as error:
        import_leases.mark_undo_failed(work, error.code, error.message)
