"""Celery tasks of VM networks; each calls one service."""

from __future__ import annotations

import logging

from celery import shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from claims.address_index import conflicts
from claims.imports import drafts
from claims.workloads import results, webhook_decisions
from pools.platform.imports import worker

log = logging.getLogger(__name__)

# Below the broker's visibility timeout: no task is redelivered while its first delivery still runs.
_IMPORT_SECONDS = 540
_EXPIRY_SECONDS = 15  # an older message is dropped, because the schedule has sent newer ones


@shared_task
def tidy_decisions() -> int:
    return webhook_decisions.delete_old(settings.IPAM_DECISION_DAYS)


@shared_task
def recheck_duplicates() -> int:
    """Recheck conflicts with reserved ranges, whose changes do not touch the address index."""
    return conflicts.recheck_all()


@shared_task
def refresh_workload_counts() -> int:
    return results.refresh_counts()


@shared_task
def process_imports() -> int:
    """Send a message for each import that waits for a worker or has lost its worker."""
    due = drafts.IMPORTS.due_imports()
    for import_id in due:
        process_import.apply_async((import_id,), expires=_EXPIRY_SECONDS)
    return len(due)


@shared_task(soft_time_limit=_IMPORT_SECONDS, time_limit=_IMPORT_SECONDS + 30)
def process_import(import_id: int) -> bool:
    return worker.process_import(drafts.IMPORTS, import_id)


def notify_worker(import_id: int) -> None:
    """Have a worker start the import now instead of at the next tick; call it after the transaction."""
    try:
        process_import.delay(import_id)
    except OperationalError:
        log.warning("the broker is not reachable; import %s waits for the next tick", import_id)
