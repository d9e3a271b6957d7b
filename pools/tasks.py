"""Celery is the bell: a task takes ids, calls one service, returns. Lost or doubled, no harm."""

from __future__ import annotations

import logging

from celery import shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from pools import events, idempotency, usage
from pools.services import allocations

log = logging.getLogger(__name__)


def nudge(pool_id: int) -> None:
    """Space was released: try the pool's pending requests soon (the next cycle does it anyway)."""
    try:
        retry_requests.delay_on_commit(pool_id)  # type: ignore[attr-defined]  # DjangoTask
    except OperationalError:
        log.warning("the broker is away; pending requests wait for the next cycle")


@shared_task
def retry_requests(pool_id: int | None = None) -> int:
    return allocations.retry(pool_id)


@shared_task
def end_cooldowns() -> int:
    ended = allocations.end_cooldowns()
    if ended:
        allocations.retry()
    return ended


@shared_task
def tidy_idempotency_keys() -> int:
    return idempotency.tidy()


@shared_task
def purge_events() -> int:
    return events.purge(settings.EVENT_RETENTION_DAYS)


@shared_task
def refresh_usage() -> int:
    return usage.refresh()
