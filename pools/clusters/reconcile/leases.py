"""Leases of clusters (pools/platform/leases.py): the worker that syncs a cluster, and its due time.

The proof of a lease locks no row: changes of the register write the connection's row too (`nudge`),
together with rows that a sync may wait for. A shared advisory lock prevents other workers from taking the
cluster over before the transaction ends. The engine writes the connection's row in separate
transactions.
"""

import contextlib
import os
import random
import socket
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial

from django.db import connection, transaction
from django.db.models import Case, F, Q, When
from django.db.models.functions import Greatest

from pools.core import errors
from pools.models import Clock, Connection, Now
from pools.platform import advisory_locks, events, leases, process_metrics
from pools.platform.leases import FREE, Lease, LeaseLost

FULL_EVERY = 600
LONGEST_WAIT = 3600  # seconds; limit of a server's Retry-After
_BACK_OFF = (5, 300)  # seconds: the first and the longest wait after failures


def worker_name() -> str:
    """Return a name for this process that is unique among all machines."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"


def due_connections(limit: int = 1000, *, overdue: float = 0) -> list[int]:
    """Return connections without a worker that are due since `overdue` seconds, the longest due first."""
    rows = Connection.objects.filter(
        FREE, paused=False, due_at__lte=Clock() - timedelta(seconds=overdue)
    )
    return list(rows.order_by("due_at").values_list("pk", flat=True)[:limit])


SECONDS = 60
_LEASES = leases.Leases(
    Connection,
    seconds=SECONDS,
    admits=partial(advisory_locks.try_lock, advisory_locks.CONNECTION),
)


def take(connection_id: int, worker_name: str, *, only_due: bool = False) -> Lease | None:
    """Lease a cluster for a full sync; None if another worker has it, it is paused, or not due (`only_due`).

    A nudge after this moment makes the cluster due again after `record_success`.
    """
    condition = Q(paused=False)
    if only_due:
        condition &= Q(due_at__lte=Clock())
    return _LEASES.take(
        connection_id, condition, leased_by=worker_name, tried_at=Now(), due_at=Now()
    )


def borrow(connection_id: int, worker_name: str) -> Lease | None:
    """Lease a cluster for other work than a full sync, without a change of its due time."""
    return _LEASES.take(connection_id, Q(paused=False), leased_by=worker_name)


def renew_in_background(lease: Lease) -> AbstractContextManager[None]:
    """Renew the lease from a thread, so that a slow response of the cluster does not end it."""
    return _LEASES.renewing(lease)


def renew(lease: Lease) -> bool:
    """Prolong the lease; False when it is lost."""
    return _LEASES.renew(lease)


@contextlib.contextmanager
def transaction_under_lease(lease: Lease, author: events.Author) -> Iterator[None]:
    """Open a transaction under the lease, with the author of its events.

    No other worker can take the cluster over before it ends. Raises LeaseLost, ConnectionPaused.
    """
    with events.recorded_by(author):
        with connection.cursor() as cursor:
            # A separate statement: the next one has to see changes that were committed during the wait.
            # Blocks that a cluster uses are recorded in recovery mode too (pools/clusters/recovery_mode.py).
            cursor.execute(
                "SELECT pg_advisory_xact_lock_shared(%s, %s), set_config('ipam.absorbing', 'on', true)",
                [advisory_locks.CONNECTION, lease.row_id],
            )
        prove(lease)
        yield


def exclude_writers(cluster_id: int) -> None:
    """Wait for the transactions that write the cluster under a lease; no other begins before this one ends.

    For the deletion of what they lock row by row. Call it before any other lock.
    """
    for connection_id in Connection.objects.filter(cluster=cluster_id).values_list("pk", flat=True):
        advisory_locks.take(advisory_locks.CONNECTION, connection_id)


def prove(lease: Lease) -> None:
    """Raise LeaseLost without the lease, and ConnectionPaused if the connection was paused meanwhile."""
    paused = _LEASES.held(lease).values_list("paused", flat=True).first()
    if paused is None:
        process_metrics.count("ipam_stale_writes_rejected_total")
        raise LeaseLost("Another worker has taken the cluster over, or the cluster was removed.")
    if paused:
        raise errors.ConnectionPaused


def record_success(lease: Lease, *, version: str, failed_objects: int = 0) -> None:
    """Release the lease after a successful full sync; due again in ten minutes, or at once after a nudge."""
    wait = timedelta(seconds=FULL_EVERY * random.uniform(0.9, 1))  # noqa: S311  # spreads the load
    _end(
        lease,
        error_code="",
        error="",
        failures=0,
        version=version[:64],
        failed_objects=failed_objects,
        succeeded_at=Clock(),
        due_at=Case(When(due_at__gt=F("tried_at"), then=F("due_at")), default=Clock() + wait),
    )


def record_failure(lease: Lease, *, code: str, message: str, retry_after: float = 0) -> None:
    """Release the lease after a failure; the next sync waits for a back-off with jitter, at least `retry_after`."""
    failures = _LEASES.held(lease).values_list("failures", flat=True).first() or 0
    first, longest = _BACK_OFF
    back_off = min(longest, first * 2 ** min(failures, 10))
    wait = max(min(retry_after, LONGEST_WAIT) / 0.75, back_off)
    wait *= random.uniform(0.75, 1.25)  # noqa: S311  # clusters that failed together come back apart
    _end(
        lease,
        error_code=code[:63],
        error=message[:500],
        failures=F("failures") + 1,
        due_at=Clock() + timedelta(seconds=wait),
    )


def release(lease: Lease, *, failed_objects: int = 0) -> None:
    """Release the lease without the outcome of a full sync; store the number of failed objects."""
    _end(lease, failed_objects=Greatest(F("failed_objects"), failed_objects))


def _end(lease: Lease, **changes: object) -> None:
    with transaction.atomic():
        _LEASES.end(lease, leased_by="", **changes)


def nudge(cluster_id: int, *, patient: bool = False) -> None:
    """Make a cluster due at once, after a running sync once more, and wake its watcher.

    Call it in the transaction of the change. With `patient`, a failing cluster keeps its back-off, so
    that changes of the register do not overload a server that is down.
    """
    rows = Connection.objects.filter(cluster_id=cluster_id)
    if patient:
        rows = rows.filter(Q(failures=0) | Q(leased_until__isnull=False))
    is_later = Q(due_at__gt=Clock()) | Q(leased_until__isnull=False)
    rows.update(nudged_at=Clock(), due_at=Case(When(is_later, then=Clock()), default=F("due_at")))
