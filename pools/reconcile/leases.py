"""Who works on a cluster: a row in PostgreSQL with a fence, no leader and no broker.

A lease ends by itself; whoever takes it next gets the next fence. A worker that slept past its lease
finds, in the transaction of its next write, that its fence is no longer the newest, and stops.
"""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection, transaction

from pools import events
from pools.core import errors

LEASE = 60  # seconds
FULL_EVERY = 600
_BACK_OFF = (5, 300)  # seconds: the first and the longest wait after failures


class LeaseLost(errors.Conflict):
    """Another worker has taken the cluster over."""

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


def take_due(by: str) -> Lease | None:
    """The connection that has been due longest and that nobody works on."""
    return _taken(_TAKE.format(which="c.due_at <= ipam_clock() AND NOT c.paused"), [], by)


def take(connection_id: int, by: str) -> Lease | None:
    """This connection, due or not; None while another has it."""
    return _taken(_TAKE.format(which="c.id = %s"), [connection_id], by)


def _taken(statement: str, values: list[str | int | float | bool], by: str) -> Lease | None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, [by, LEASE, *values])
        row = cursor.fetchone()
    return Lease(*row) if row else None


_TAKE = """
    UPDATE pools_connection t SET leased_by = %s, leased_until = ipam_clock() + make_interval(secs => %s),
        fence = t.fence + 1, tried_at = ipam_clock()
    WHERE t.id = (
        SELECT c.id FROM pools_connection c
        WHERE {which} AND (c.leased_until IS NULL OR c.leased_until < ipam_clock())
        ORDER BY c.due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING t.id, t.fence
"""


def renew(lease: Lease) -> None:
    """Hold on for another lease's length. Raises LeaseLost."""
    with transaction.atomic():
        _prove(lease)


@contextlib.contextmanager
def holding(lease: Lease, by: events.Author) -> Iterator[None]:
    """A transaction in the cluster's name, with its events' author. Raises LeaseLost.

    Nobody else can take the cluster over before it ends, because it holds the connection's row.
    """
    with events.recorded(by):
        _prove(lease)
        yield


def _prove(lease: Lease) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_connection SET leased_until = ipam_clock() + make_interval(secs => %s)"
            " WHERE id = %s AND fence = %s AND leased_until > ipam_clock()",
            [LEASE, lease.connection_id, lease.fence],
        )
        if not cursor.rowcount:
            raise LeaseLost("Another worker has taken the cluster over.")


def succeeded(lease: Lease, *, version: str, full: bool) -> None:
    """Hand the lease back after a pass without a fault."""
    _ended(
        lease,
        "error_code = '', error = '', failures = 0, version = %s,"
        " succeeded_at = CASE WHEN %s THEN ipam_clock() ELSE succeeded_at END,"
        " due_at = CASE WHEN %s THEN ipam_clock() + make_interval(secs => %s) ELSE due_at END",
        [version, full, full, FULL_EVERY],
    )


def failed(lease: Lease, *, code: str, message: str, retry_after: float = 0) -> None:
    """Hand the lease back; the next try waits longer each time, with jitter, and as long as asked."""
    first, longest = _BACK_OFF
    _ended(
        lease,
        "error_code = %s, error = %s, failures = failures + 1, due_at = ipam_clock()"
        " + make_interval(secs => GREATEST(%s, LEAST(%s, %s * power(2, LEAST(failures, 10)))"
        " * (0.75 + random() / 2)))",
        [code, message[:500], retry_after, longest, first],
    )


def put_back(lease: Lease) -> None:
    """Hand the lease back as it was, without an outcome."""
    _ended(lease, "fence = fence", [])


def _ended(lease: Lease, changes: str, values: list[str | int | float | bool]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE pools_connection SET {changes}, leased_by = '', leased_until = NULL"  # noqa: S608
            " WHERE id = %s AND fence = %s",
            [*values, lease.connection_id, lease.fence],
        )


def nudge(cluster_id: int) -> None:
    """Something changed: the cluster is due at once. Call it in the transaction of the change."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_connection SET due_at = LEAST(due_at, ipam_clock())"
            " WHERE cluster_id = %s AND due_at > ipam_clock()",
            [cluster_id],
        )
