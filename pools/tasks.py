"""Celery tasks: each calls one service. A lost or duplicate message does no harm.

The database has the pending work; a message only makes it start sooner.
"""

import logging

from celery import shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from pools.cluster_api import allocation
from pools.clusters import recovery_mode
from pools.clusters.reconcile import leases, registry, sync
from pools.platform import audit, idempotency, login_limits, process_metrics, sessions
from pools.platform.conditions import evaluation
from pools.platform.imports import lifecycle, worker as import_worker
from pools.platform.metrics import registry as metrics_registry
from pools.register import dns, retention, usage
from pools.register.allocator import requests
from pools.register.conditions import register as register_conditions
from pools.register.imports import sources as import_sources
from pools.register.leaks import detection
from pools.register.utilization import forecasts, samples

log = logging.getLogger(__name__)

# Listing a slow cluster takes minutes. The limit is below the broker's visibility timeout, so that
# a redelivered message never runs beside its first copy.
_SYNC_SECONDS = 540
_EXPIRY_SECONDS = 15  # an older message is dropped: later ticks have sent new ones


def nudge(pool_id: int) -> None:
    """Retry the pool's pending requests soon, because blocks were released.

    Without it, the next scheduled retry does so.
    """
    try:
        retry_requests.delay_on_commit(pool_id)  # type: ignore[attr-defined]  # DjangoTask
    except OperationalError:
        log.warning("broker unavailable; pending requests wait for the next scheduled retry")


@shared_task
def retry_requests(pool_id: int | None = None) -> int:
    return requests.retry(pool_id)


@shared_task
def end_cooldowns() -> int:
    ended = requests.end_cooldowns()
    if ended:
        requests.retry()
    return ended


@shared_task
def nudge_waiting_claims() -> int:
    return allocation.nudge_clusters()


@shared_task(soft_time_limit=_SYNC_SECONDS, time_limit=_SYNC_SECONDS + 30)
def check_data() -> int:
    return register_conditions.check_data(_SYNC_SECONDS - 60)


@shared_task
def tick() -> bool:
    """Record that scheduler and worker are alive, and count events even without scrapes."""
    process_metrics.mark("ipam_scheduler_last_tick_timestamp_seconds")
    process_metrics.flush()
    return metrics_registry.count_events(seconds=2)


@shared_task
def tidy_measures() -> int:
    return metrics_registry.tidy_totals()


@shared_task
def tidy_idempotency_keys() -> int:
    return idempotency.tidy()


@shared_task
def tidy_login_failures() -> int:
    return login_limits.tidy()


@shared_task
def tidy_sessions() -> None:
    sessions.tidy()


@shared_task
def purge_events() -> int:
    dns.remove_ended()
    return retention.purge_events(settings.EVENT_RETENTION_DAYS)


@shared_task
def seal_events() -> int:
    return audit.seal()


@shared_task(soft_time_limit=_SYNC_SECONDS, time_limit=_SYNC_SECONDS + 30)
def verify_events() -> int:
    return register_conditions.verify_history(_SYNC_SECONDS - 60)


@shared_task
def tidy_leaks() -> int:
    return detection.delete_outdated()


@shared_task
def refresh_usage() -> int:
    return usage.refresh_counts()


@shared_task
def take_samples() -> int:
    """Write today's samples of pools, recompute the forecasts, delete old samples."""
    sample_count = samples.take_samples()
    forecasts.refresh_forecasts()
    samples.delete_old_samples(settings.IPAM_SAMPLE_DAYS)
    return sample_count


@shared_task
def end_recovery() -> bool:
    """End the recovery if it only waited for clusters that were paused or disconnected.

    Otherwise the last sync run ends it.
    """
    return recovery_mode.end_when_listed()


@shared_task
def evaluate_alerts() -> int:
    """Evaluate the conditions; watchers send the messages."""
    return evaluation.evaluate().deliveries


@shared_task
def tidy_alerts() -> int:
    return evaluation.tidy(settings.IPAM_ALERT_DAYS)


@shared_task
def reconcile_due() -> int:
    """Send one message for each cluster that is due; the next tick replaces a lost message."""
    due = leases.due_connections()
    for connection_id in due:
        reconcile.apply_async((connection_id,), expires=_EXPIRY_SECONDS)
    return len(due)


@shared_task(soft_time_limit=_SYNC_SECONDS, time_limit=_SYNC_SECONDS + 30)
def reconcile(connection_id: int) -> bool:
    """Run a full sync of the cluster, unless another worker runs it or has just run it."""
    lease = leases.take(connection_id, leases.worker_name(), only_due=True)
    return lease is not None and sync.run(lease, registry.HANDLERS).succeeded


@shared_task
def process_imports() -> int:
    """Send a message for each import that waits for a worker or has lost its worker."""
    due = lifecycle.due_imports()
    for import_id in due:
        process_import.apply_async((import_id,), expires=_EXPIRY_SECONDS)
    return len(due)


@shared_task(soft_time_limit=_SYNC_SECONDS, time_limit=_SYNC_SECONDS + 30)
def process_import(import_id: int) -> bool:
    return import_worker.process_import(import_id)


@shared_task
def queue_mirrors() -> int:
    """Queue a run of each NetBox mirror that is due."""
    due = import_sources.queue_due()
    for import_id in due:
        notify_import_worker(import_id)
    return len(due)


def notify_import_worker(import_id: int) -> None:
    """Have a worker start the import now instead of at the next tick; call it after the transaction."""
    try:
        process_import.delay(import_id)
    except OperationalError:
        log.warning("broker unavailable; import %s waits for the next tick", import_id)
