"""Celery is the bell: a task takes ids, calls one service, returns. Lost or doubled, no harm."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from pools.clusters import recovery_mode
from pools.clusters.reconcile import leases, registry, sync
from pools.platform import database, idempotency, login_limits, process_metrics
from pools.platform.alerts import outbox, sending
from pools.platform.audit import sealing, verification
from pools.platform.checks import runs as checks
from pools.platform.conditions import evaluation
from pools.platform.metrics import event_counts, totals
from pools.register import retention, usage
from pools.register.allocator import requests
from pools.register.leaks import detection
from pools.register.utilization import forecasts, samples

log = logging.getLogger(__name__)

# A long list of a slow cluster takes minutes. Below the broker's visibility time-out: a message that
# comes again finds no pass of its first copy running.
_PASS_SECONDS = 540
_UNTAKEN_SECONDS = 15  # then the message is dropped: the ticks since have sent others


def nudge(pool_id: int) -> None:
    """Space was released: try the pool's pending requests soon (the next cycle does it anyway)."""
    try:
        retry_requests.delay_on_commit(pool_id)  # type: ignore[attr-defined]  # DjangoTask
    except OperationalError:
        log.warning("the broker is away; pending requests wait for the next cycle")


@shared_task
def retry_requests(pool_id: int | None = None) -> int:
    return requests.retry(pool_id)


@shared_task
def end_cooldowns() -> int:
    ended = requests.end_cooldowns()
    if ended:
        requests.retry()
    return ended


def nudge_checks() -> None:
    """Somebody asked for a run of the checks: begin soon (the next tick does it anyway)."""
    try:
        due_checks.delay_on_commit()  # type: ignore[attr-defined]  # DjangoTask
    except OperationalError:
        log.warning("the broker is away; the checks wait for the next tick")


@shared_task
def due_checks() -> int:
    """One message for each run of the checks that waits, the nightly one among them."""
    due = checks.due()
    for run_id in due:
        do_checks.apply_async((run_id,), expires=_UNTAKEN_SECONDS * 4)  # until the next tick
    return len(due)


@shared_task(soft_time_limit=checks.LONGEST + 30, time_limit=checks.LONGEST + 60)
def do_checks(run_id: int) -> int:
    run = checks.execute(run_id)
    return run.violations if run is not None else 0


@shared_task
def tick() -> bool:
    """The scheduler is alive, and so is a worker; events are counted although nobody scrapes."""
    process_metrics.mark("ipam_scheduler_last_tick_timestamp_seconds")
    process_metrics.flush()
    return event_counts.count(seconds=2)


@shared_task
def tidy_measures() -> int:
    return totals.tidy()


@shared_task
def tidy_idempotency_keys() -> int:
    return idempotency.tidy()


@shared_task
def tidy_login_failures() -> int:
    return login_limits.tidy()


@shared_task
def purge_events() -> int:
    return retention.purge_events(settings.EVENT_RETENTION_DAYS)


@shared_task
def seal_events() -> int:
    return sealing.seal().segments


@shared_task
def verify_events() -> bool:
    """Every night: the days that somebody may still have a copy of."""
    since = (database.now() - timedelta(days=settings.IPAM_AUDIT_VERIFY_DAYS)).date()
    report = verification.verify(since=since, seconds=180)
    for fault in report.faults[:20]:
        log.error("audit: %s", fault.message)
    return report.ok


@shared_task
def tidy_leaks() -> int:
    return detection.delete_outdated()


@shared_task
def refresh_usage() -> int:
    return usage.refresh_counts()


@shared_task
def take_samples() -> int:
    """How full pools are today, what follows from it, and away with what is too old."""
    taken = samples.take_samples()
    forecasts.refresh_forecasts()
    samples.delete_old_samples(settings.IPAM_SAMPLE_DAYS)
    return taken


@shared_task
def end_recovery() -> bool:
    """For clusters that were paused or disconnected meanwhile: passes end it themselves."""
    return recovery_mode.end_when_listed()


@shared_task
def evaluate_notices() -> int:
    """What changed is told at once, instead of with the next tick."""
    deliveries = evaluation.evaluate().deliveries
    return send_webhooks() if deliveries else 0


@shared_task
def tidy_notices() -> int:
    return evaluation.tidy(settings.IPAM_NOTICE_DAYS)


@shared_task
def send_webhooks() -> int:
    """One message for each target that something waits for: a slow one holds up none but itself."""
    due = outbox.due_targets()
    for target_id in due:
        send_webhook.apply_async((target_id,), expires=_UNTAKEN_SECONDS)
    return len(due)


@shared_task(soft_time_limit=sending.TIME_LIMIT + 30, time_limit=sending.TIME_LIMIT + 45)
def send_webhook(target_id: int) -> int:
    return sending.send_pending(target_id)


@shared_task
def reconcile_due() -> int:
    """One message for each cluster that is due; a lost one is sent again by the next tick."""
    due = leases.due_connections()
    for connection_id in due:
        reconcile.apply_async((connection_id,), expires=_UNTAKEN_SECONDS)
    return len(due)


@shared_task(soft_time_limit=_PASS_SECONDS, time_limit=_PASS_SECONDS + 30)
def reconcile(connection_id: int) -> bool:
    """A full pass, unless another worker has the cluster, or had it since it was due."""
    lease = leases.take(connection_id, leases.worker_name(), only_due=True)
    return lease is not None and sync.run(lease, registry.HANDLERS).succeeded
