"""Celery tasks of VM networks; each calls one service."""

from celery import shared_task
from django.conf import settings

from claims.address_index import conflicts
from claims.workloads import results, vm_lookup


@shared_task
def tidy_decisions() -> int:
    return vm_lookup.delete_old_decisions(settings.IPAM_DECISION_DAYS)


@shared_task
def recheck_duplicates() -> int:
    """Recheck conflicts with reserved ranges, whose changes do not touch the address index."""
    return conflicts.recheck_all()


@shared_task
def refresh_workload_counts() -> int:
    return results.refresh_counts()
