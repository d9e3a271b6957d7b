"""What runs by the clock for VM networks; each task calls one service."""

from __future__ import annotations

import logging

from celery import shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from claims.address_index import conflicts
from claims.imports import leases, worker
from claims.workloads import webhook_decisions

log = logging.getLogger(__name__)

# Below the broker's visibility time-out: a message that comes again finds no first copy at work.
_IMPORT_SECONDS = 540
_UNTAKEN_SECONDS = 15  # then the message is dropped: the ticks since have sent others


@shared_task
def tidy_decisions() -> int:
    return webhook_decisions.delete_old(settings.IPAM_DECISION_DAYS)


@shared_task
def recheck_duplicates() -> int:
    """What no change of an entry touches: reserved ranges that somebody made in a network's pool."""
    return conflicts.recheck_all()


@shared_task
def work_off_imports() -> int:
    """One message for each import that waits for a worker, or whose worker is gone."""
    due = leases.due_imports()
    for import_id in due:
        work_off_import.apply_async((import_id,), expires=_UNTAKEN_SECONDS)
    return len(due)


@shared_task(soft_time_limit=_IMPORT_SECONDS, time_limit=_IMPORT_SECONDS + 30)
def work_off_import(import_id: int) -> bool:
    return worker.process_import(import_id)


def ring(import_id: int) -> None:
    """A worker may begin at once, instead of with the next tick; called after the transaction."""
    try:
        work_off_import.delay(import_id)
    except OperationalError:
        log.warning("the broker is away; import %s waits for the next tick", import_id)
