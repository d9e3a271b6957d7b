"""Metrics of the register's operation: queues, the audit chain, recovery mode, the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator

from django.db import connection

from pools.models import Alert, AllocationRequest, AuditSegment, Delivery, Recovery
from pools.models.alerts import DeliveryState
from pools.models.requests import RequestState
from pools.platform.metrics.registry import Value, value
from pools.register.conditions.register import CHAIN


def values() -> Iterator[Value]:
    """Yield the values of the register's operation."""
    yield from _queue_values()
    broken = Alert.objects.filter(code=CHAIN, ended_at=None).exists()
    yield value("ipam_audit_chain_ok", not broken)
    if segment := AuditSegment.objects.defer("marks").last():
        name = "ipam_audit_anchor_info"
        yield value(name, 1, segment=str(segment.pk), digest=segment.digest)
    active = Recovery.objects.filter(ended_at=None).exists()
    yield value("ipam_recovery_active", active)
    with connection.cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        (database_time,) = cursor.fetchone()
    yield value("ipam_database_clock_skew_seconds", database_time - (before + time.time()) / 2)


def _queue_values() -> Iterator[Value]:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING)
        requests, outbox, oldest = cursor.fetchone()
    yield value("ipam_requests_oldest_seconds", max(0, requests))
    yield value("ipam_outbox_pending", outbox)
    yield value("ipam_outbox_oldest_seconds", max(0, oldest))


_AGE = "COALESCE(extract(epoch FROM ipam_clock() - min(created_at)), 0)::float8"
_WAITING = f"""
    SELECT (SELECT {_AGE} FROM {AllocationRequest._meta.db_table}
            WHERE state = '{RequestState.PENDING}'), d.count, d.age
    FROM (SELECT count(*) AS count, {_AGE} AS age FROM {Delivery._meta.db_table}
          WHERE state = '{DeliveryState.PENDING}') AS d
"""  # noqa: S608  # our own names
