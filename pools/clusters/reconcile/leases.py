"""Which worker works on a cluster (pools/platform/leases.py), and when a cluster is due.

The proof of a lease locks no row: changes of the register write the connection's row too (`nudge`),
beside rows that a sync run may wait for. What keeps others from taking the cluster over before the
transaction ends is a shared advisory lock. Whatever the engine itself writes to the connection's row
stands in a transaction of its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import Case, F, Q, When
from django.db.models.functions import Greatest

from pools.core import errors
from pools.models import Connection
from pools.models.fields import Clock, Now
from pools.platform import advisory_locks, events, leases, process_metrics
from pools.platform.leases import FREE, Lease, LeaseLost

FULL_EVERY = 600
LONGEST_WAIT = 3600  # seconds that a server may ask us to stay away
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


def _try_lock(connection_id: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(%s, %s)", [advisory_locks.CONNECTION, connection_id]
        )
        return bool(cursor.fetchone()[0])


SECONDS = 60
_LEASES = leases.Leases(Connection, seconds=SECONDS, admits=_try_lock)


def take(connection_id: int, worker_name: str, *, only_due: bool = False) -> Lease | None:
    """Lease a cluster for a full sync; None while another has it, when paused, or (`only_due`) not due.

    `succeeded` sees what makes the cluster due from now on.
    """
    condition = Q(paused=False)
    if only_due:
        condition &= Q(due_at__lte=Clock())
    return _LEASES.take(
        connection_id, condition, leased_by=worker_name, tried_at=Now(), due_at=Now()
    )


def borrow(connection_id: int, worker_name: str) -> Lease | None:
    """Lease a cluster for something else than a full sync, without a change of when it is due."""
    return _LEASES.take(connection_id, Q(paused=False), leased_by=worker_name)


def renew_in_background(lease: Lease) -> AbstractContextManager[None]:
    """Renew the lease from a thread of its own, however long an answer of the cluster takes."""
    return _LEASES.renewing(lease)


def renew(lease: Lease) -> bool:
    """Prolong the lease; False when it is lost."""
    return _LEASES.renew(lease)


@contextlib.contextmanager
def transaction_under_lease(lease: Lease, author: events.Author) -> Iterator[None]:
    """A transaction in the cluster's name, with its events' author.

    Nobody takes the cluster over before it ends. Raises LeaseLost, ConnectionPaused.
    """
    with events.recorded(author):
        with connection.cursor() as cursor:
            # Of its own: the next statement has to see what was committed while this one waited.
            # What a cluster shows as in use is recorded in a recovery too (pools/clusters/recovery_mode.py).
            cursor.execute(
                "SELECT pg_advisory_xact_lock_shared(%s, %s), set_config('ipam.absorbing', 'on', true)",
                [advisory_locks.CONNECTION, lease.row_id],
            )
        prove(lease)
        yield


def prove(lease: Lease) -> None:
    """Raises LeaseLost, and ConnectionPaused when somebody paused the cluster meanwhile."""
    paused = _LEASES.held(lease).values_list("paused", flat=True).first()
    if paused is None:
        process_metrics.count("ipam_stale_writes_rejected_total")
        raise LeaseLost("Another worker has taken the cluster over, or the cluster was removed.")
    if paused:
        raise errors.ConnectionPaused


def record_success(lease: Lease, *, version: str, failed_objects: int = 0) -> None:
    """Hand the lease back after a full sync; due again in ten minutes, or at once after a nudge."""
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
    """Hand the lease back; the next try waits longer each time, with jitter, and as long as asked."""
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
    """Hand the lease back without an outcome of a full sync; noting objects that failed meanwhile."""
    _end(lease, failed_objects=Greatest(F("failed_objects"), failed_objects))


def _end(lease: Lease, **changes: object) -> None:
    with transaction.atomic():
        _LEASES.end(lease, leased_by="", **changes)


def nudge(cluster_id: int, *, patient: bool = False) -> None:
    """Make a cluster due at once, and once more when a sync runs; its watcher looks sooner.

    Call it in the transaction of the change. With `patient`, a cluster that fails keeps its
    back-off: so that changes of the register do not hammer at a server that is down.
    """
    rows = Connection.objects.filter(cluster_id=cluster_id)
    if patient:
        rows = rows.filter(Q(failures=0) | Q(leased_until__isnull=False))
    is_later = Q(due_at__gt=Clock()) | Q(leased_until__isnull=False)
    rows.update(nudged_at=Clock(), due_at=Case(When(is_later, then=Clock()), default=F("due_at")))
