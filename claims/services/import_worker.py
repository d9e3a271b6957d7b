"""Large imports: a worker drafts, writes and takes back what waits, each in one transaction."""

from __future__ import annotations

import logging

from django.db import DatabaseError

from claims.models import VMImport
from claims.models.imports import Status
from claims.services import import_commit, import_states, import_undo, import_uploads, import_work
from claims.services.import_work import Cancelled, Work
from pools import events
from pools.core import errors
from pools.reconcile import leases

log = logging.getLogger(__name__)


def work_off(import_id: int) -> bool:
    """Draft and write an import that waits, as far as it goes; whether there was something to do.

    Never raises for what is wrong with the import: its row says it.
    """
    worked = False
    while (work := import_work.take(import_id)) is not None:
        worked = True
        if not _worked(work):
            break
    return worked


def _worked(work: Work) -> bool:
    """Whether to look for more to do."""
    rows = VMImport.objects.select_related("cluster", "network", "user")
    of = rows.get(pk=work.import_id)
    try:
        import_work.refuse_hopeless(work)
        with import_work.kept(work):
            if of.undo_wanted:
                _undo_large(of, work)
            elif of.status == Status.COMMITTING:
                _commit_large(of, work)
            else:
                _draft_large(of, work)
    except Cancelled:
        import_states.cancelled(of.pk, _author(of))
    except leases.LeaseLost:
        log.warning("import %s went on elsewhere", of.pk)
        return False
    except DatabaseError:
        log.exception("import %s will be tried again", of.pk)
        import_work.put_back(work, seconds=5 * work.tries)
        return False
    except errors.IpamError as error:
        _failed(of, work, error.code, error.message)
    except Exception:
        log.exception("import %s has failed", of.pk)
        _failed(of, work, "internal_error", "It could not be done; the log says why.")
    return True


def _failed(of: VMImport, work: Work, code: str, message: str) -> None:
    ended = import_work.not_undone if of.undo_wanted else import_work.failed
    ended(work, code, message)


def _author(of: VMImport) -> events.Author:
    return events.Author(of.actor, of.source or "worker", of.request_id, f"import {of.pk}")


def _draft_large(of: VMImport, work: Work) -> None:
    reading = import_uploads.kept(of).open(counted=True)
    with events.recorded(_author(of)):
        import_states.draft(of, reading.rows(), reading, work)
        if of.commit_wanted:
            import_states.to_commit(of, _author(of), skip_bad=of.skip_bad)


def _commit_large(of: VMImport, work: Work) -> None:
    by = _author(of)
    try:
        with events.recorded(by):
            of.counts = import_commit.write(of, by=by, step=work.step)
            import_work.end(work)
            import_states.committed(of)
    except (errors.ImportHasBadRows, errors.ClusterDecides) as error:
        with events.recorded(by):
            import_work.end(work)
            import_states.judge(of)
            import_states.tell(of.pk, error)


def _undo_large(of: VMImport, work: Work) -> None:
    by = _author(of)
    try:
        with events.recorded(by):
            import_undo.undo(of, by=by, step=work.step)
            import_work.end(work)
            import_states.undone(of)
    except (errors.ImportInUse, errors.ClusterDecides) as error:
        import_work.not_undone(work, error.code, error.message)
