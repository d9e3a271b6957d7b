"""Who works on a cluster: a row in PostgreSQL with a fence, no leader and no broker.

A lease ends by itself; whoever takes it next gets the next fence. A worker that slept past its lease
finds, in the transaction of its next write, that the lease is no longer its own, and stops.

That proof locks no row: changes of the register write the connection's row too (`nudge`), beside
rows that a pass may wait for. What keeps others from taking the cluster over before the transaction
ends is a shared advisory lock. Whatever the engine itself writes to the connection's row stands in a
transaction of its own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import DatabaseError, connection, transaction

from pools.core import errors
from pools.platform import events, process_metrics

LEASE = 60  # seconds
FULL_EVERY = 600
LONGEST_WAIT = 3600  # seconds that a server may ask us to stay away
LOCK = 4243  # first key of the advisory locks of connections; the second is the connection's id
_BACK_OFF = (5, 300)  # seconds: the first and the longest wait after failures

log = logging.getLogger(__name__)


class LeaseLost(errors.Conflict):
    """Another worker has taken the cluster over, or the cluster was removed."""

    code = "lease_lost"
    reason = "LeaseLost"


@dataclass(frozen=True)
class Lease:
    """The right to work on a cluster until the lease ends; `fence` tells it from earlier ones."""

    connection_id: int
    fence: int


def worker() -> str:
    """A name for this process among all machines."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"


def due(most: int = 1000, *, overdue: float = 0) -> list[int]:
    """Connections that nobody works on and that are due, since so many seconds at least; the longest
    due first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM pools_connection"
            " WHERE NOT paused AND due_at <= ipam_clock() - make_interval(secs => %s)"
            " AND (leased_until IS NULL OR leased_until < ipam_clock()) ORDER BY due_at LIMIT %s",
            [overdue, most],
        )
        return [row[0] for row in cursor.fetchall()]


def take(connection_id: int, by: str, *, only_due: bool = False) -> Lease | None:
    """For a full pass; None while another has it, when it is paused, or (`only_due`) not due.

    What makes the cluster due from now on is seen by `succeeded`.
    """
    return _taken(connection_id, by, ", tried_at = ipam_now(), due_at = ipam_now()", only_due)


def borrow(connection_id: int, by: str) -> Lease | None:
    """For something else than a full pass: what is due stays so. None as with `take`."""
    return _taken(connection_id, by, "", only_due=False)


def _taken(connection_id: int, by: str, changes: str, only_due: bool) -> Lease | None:
    condition = "AND c.due_at <= ipam_clock()" if only_due else ""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE pools_connection t SET fence = t.fence + 1, leased_by = %s,
                leased_until = ipam_clock() + make_interval(secs => %s) {changes}
            WHERE t.id = (
                SELECT c.id FROM pools_connection c
                WHERE c.id = %s AND NOT c.paused {condition}
                    AND (c.leased_until IS NULL OR c.leased_until < ipam_clock())
                FOR UPDATE SKIP LOCKED)
            AND pg_try_advisory_xact_lock({LOCK}, t.id::int)
            RETURNING t.fence
            """,  # noqa: S608  # our own texts
            [by, LEASE, connection_id],
        )
        row = cursor.fetchone()
    return Lease(connection_id, row[0]) if row else None


@contextlib.contextmanager
def kept(lease: Lease) -> Iterator[None]:
    """Renew the lease from a thread of its own, however long an answer of the cluster takes.

    A process that is stopped renews nothing. A lease that was lost is not told here: whoever writes
    proves it.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_keep, args=(lease, ended), daemon=True, name="lease")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)


def _keep(lease: Lease, ended: threading.Event) -> None:
    while not ended.wait(LEASE / 3):
        try:
            if not renew(lease):
                return
        except DatabaseError:
            log.warning("the lease of connection %s could not be renewed", lease.connection_id)
        finally:
            connection.close()


def renew(lease: Lease) -> bool:
    """Hold on for another lease's length; False when it is lost."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_connection SET leased_until = ipam_clock() + make_interval(secs => %s)"
            " WHERE id = %s AND fence = %s AND leased_until > ipam_clock()",
            [LEASE, lease.connection_id, lease.fence],
        )
        return bool(cursor.rowcount)


@contextlib.contextmanager
def holding(lease: Lease, by: events.Author) -> Iterator[None]:
    """A transaction in the cluster's name, with its events' author.

    Nobody takes the cluster over before it ends. Raises LeaseLost, ConnectionPaused.
    """
    with events.recorded(by):
        with connection.cursor() as cursor:
            # Of its own: the next statement has to see what was committed while this one waited.
            # What a cluster shows as in use is recorded in a recovery too (pools/clusters/recovery_mode.py).
            cursor.execute(
                "SELECT pg_advisory_xact_lock_shared(%s, %s), set_config('ipam.absorbing', 'on', true)",
                [LOCK, lease.connection_id],
            )
        prove(lease)
        yield


def prove(lease: Lease) -> None:
    """Raises LeaseLost, and ConnectionPaused when somebody paused the cluster meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT paused FROM pools_connection"
            " WHERE id = %s AND fence = %s AND leased_until > ipam_clock()",
            [lease.connection_id, lease.fence],
        )
        row = cursor.fetchone()
    if row is None:
        process_metrics.count("ipam_stale_writes_rejected_total")
        raise LeaseLost
    if row[0]:
        raise errors.ConnectionPaused


def succeeded(lease: Lease, *, version: str, failed_objects: int = 0) -> None:
    """Hand the lease back after a full pass; due again in ten minutes, or at once after a nudge."""
    _ended(
        lease,
        "error_code = '', error = '', failures = 0, version = %s, failed_objects = %s,"
        " succeeded_at = ipam_clock(),"
        " due_at = CASE WHEN due_at > tried_at THEN due_at"
        " ELSE ipam_clock() + make_interval(secs => %s * (0.9 + random() / 10)) END",
        [version[:64], failed_objects, FULL_EVERY],
    )


def failed(lease: Lease, *, code: str, message: str, retry_after: float = 0) -> None:
    """Hand the lease back; the next try waits longer each time, with jitter, and as long as asked."""
    first, longest = _BACK_OFF
    _ended(
        lease,
        "error_code = %s, error = %s, failures = failures + 1, due_at = ipam_clock()"
        " + make_interval(secs => GREATEST(%s, LEAST(%s, %s * power(2, LEAST(failures, 10))))"
        " * (0.75 + random() / 2))",
        [code[:63], message[:500], min(retry_after, LONGEST_WAIT) / 0.75, longest, first],
    )


def put_back(lease: Lease, *, failed_objects: int = 0) -> None:
    """Hand the lease back without an outcome of a full pass; noting objects that failed meanwhile."""
    _ended(lease, "failed_objects = GREATEST(failed_objects, %s)", [failed_objects])


def _ended(lease: Lease, changes: str, values: list[str | int | float]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE pools_connection SET {changes}, leased_by = '', leased_until = NULL"  # noqa: S608
            " WHERE id = %s AND fence = %s",
            [*values, lease.connection_id, lease.fence],
        )


def nudge(cluster_id: int, *, patient: bool = False) -> None:
    """The cluster is due at once, and once more when a pass is running; its watcher looks sooner.

    Call it in the transaction of the change. With `patient`, a cluster that fails keeps its
    back-off: so that changes of the register do not hammer at a server that is down.
    """
    condition = "AND (failures = 0 OR leased_until IS NOT NULL)" if patient else ""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_connection SET nudged_at = ipam_clock(),"  # noqa: S608
            " due_at = CASE WHEN due_at > ipam_clock() OR leased_until IS NOT NULL"
            f" THEN ipam_clock() ELSE due_at END WHERE cluster_id = %s {condition}",
            [cluster_id],
        )
