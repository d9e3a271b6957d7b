"""Large imports: a worker drafts, writes and takes back what waits, each in one transaction."""

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


def work_off(import_id: int) -> bool:
    """Draft and write an import that waits, as far as it goes; whether there was something to do.

    Never raises for what is wrong with the import: its row says it.
    """
    worked = False
    while (work := import_leases.take(import_id)) is not None:
        worked = True
        if not _worked(work):
            break
    return worked


def _worked(work: Work) -> bool:
    """Whether to look for more to do."""
    rows = VMImport.objects.select_related("cluster", "network", "user")
    of = rows.get(pk=work.import_id)
    try:
        import_leases.refuse_hopeless(work)
        with import_leases.kept(work):
            if of.undo_wanted:
                _undo_large(of, work)
            elif of.status == Status.COMMITTING:
                _commit_large(of, work)
            else:
                _draft_large(of, work)
    except Cancelled:
        states.cancelled(of.pk, _author(of))
    except LeaseLost:
        log.warning("import %s went on elsewhere", of.pk)
        return False
    except DatabaseError:
        log.exception("import %s will be tried again", of.pk)
        import_leases.put_back(work, seconds=5 * work.tries)
        return False
    except errors.IpamError as error:
        _failed(of, work, error.code, error.message)
    except Exception:
        log.exception("import %s has failed", of.pk)
        _failed(of, work, "internal_error", "It could not be done; the log says why.")
    return True


def _failed(of: VMImport, work: Work, code: str, message: str) -> None:
    ended = import_leases.not_undone if of.undo_wanted else import_leases.failed
    ended(work, code, message)


def _author(of: VMImport) -> events.Author:
    return events.Author(of.actor, of.source or "worker", of.request_id, f"import {of.pk}")


def _draft_large(of: VMImport, work: Work) -> None:
    reading = uploads.kept(of).open(counted=True)
    with events.recorded(_author(of)):
        states.draft(of, reading.rows(), reading, work)
        if of.commit_wanted:
            states.to_commit(of, _author(of), skip_bad=of.skip_bad)


def _commit_large(of: VMImport, work: Work) -> None:
    author = _author(of)
    try:
        with events.recorded(author):
            of.counts = commit.write(of, author=author, step=work.step)
            import_leases.end(work)
            states.committed(of)
    except (errors.ImportHasBadRows, errors.ClusterDecides) as error:
        with events.recorded(author):
            import_leases.end(work)
            states.judge(of)
            states.tell(of.pk, error)


def _undo_large(of: VMImport, work: Work) -> None:
    author = _author(of)
    try:
        with events.recorded(author):
            undo.undo(of, author=author, step=work.step)
            import_leases.end(work)
            states.undone(of)
    except (errors.ImportInUse, errors.ClusterDecides) as error:
        import_leases.not_undone(work, error.code, error.message)
