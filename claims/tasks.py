"""What runs by the clock for VM networks; each task calls one service."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from claims.services import decisions, flags


@shared_task
def tidy_decisions() -> int:
    return decisions.tidy(settings.IPAM_DECISION_DAYS)


@shared_task
def recheck_duplicates() -> int:
    """What no change of an entry touches: reserved ranges that somebody made in a network's pool."""
    return flags.every_network()
