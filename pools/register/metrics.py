"""Metrics of the register: utilization of pools in addresses, open alerts and their thresholds, operation."""

import time
from collections.abc import Iterator, Mapping

from django.conf import settings
from django.db import connection
from django.db.models import Count

from pools.clusters import connections
from pools.core import addresses, metric_labels
from pools.models import Alert, AllocationRequest, AuditSegment, Delivery, Pool, Recovery
from pools.models.alerts import DeliveryState, Level
from pools.models.attributes import ATTRIBUTES
from pools.models.requests import RequestState
from pools.platform.conditions import registry
from pools.platform.metrics.families import BY_NAME
from pools.platform.metrics.registry import Labels, Value, value
from pools.register import usage
from pools.register.conditions import clusters, pools, register
from pools.register.conditions.register import CHAIN

_ADDRESSES = BY_NAME["ipam_pool_addresses"]
_CAPACITY = BY_NAME["ipam_pool_capacity_addresses"]
_RATIO = BY_NAME["ipam_pool_utilization_ratio"]
_BLOCK = BY_NAME["ipam_pool_block_addresses"]
_QUEUE = BY_NAME["ipam_cooldown_queue_addresses"]
_PENDING = BY_NAME["ipam_requests_pending"]


def values() -> Iterator[Value]:
    """Yield the values of all pools and families."""
    pools = list(
        Pool.objects.select_related("cluster").only(
            "name",
            "category",
            "mask_size_v4",
            "mask_size_v6",
            "allow_first_ip",
            "allow_last_ip",
            "cluster__name",
            *ATTRIBUTES,
        )
    )
    pending = _pending_request_counts()
    usages = usage.usage_by_pool(pools)
    attributes = metric_labels.label_values(
        settings.IPAM_METRIC_LABELS, {pool.pk: pool for pool in pools}
    )
    for pool in pools:
        labels = (("cluster", pool.cluster.name), ("pool", pool.name), *attributes[pool.pk])
        yield Value(_PENDING, labels, pending.get(pool.pk, 0))
        for family, family_usage in usages[pool.pk].items():
            mask_size = pool.mask_size(family)
            if mask_size is not None:
                category = (*labels, ("category", pool.category), ("family", str(family)))
                yield from _family_values(
                    category, family_usage, 1 << (addresses.LONGEST_PREFIX[family] - mask_size)
                )
                queue = (*labels, ("family", str(family)))
                yield Value(
                    _QUEUE,
                    queue,
                    states(family_usage)["cooling"]
                    << (addresses.LONGEST_PREFIX[family] - mask_size),
                )


def _family_values(labels: Labels, family_usage: usage.Usage, size: int) -> Iterator[Value]:
    for state, blocks in states(family_usage).items():
        yield Value(_ADDRESSES, (*labels, ("state", state)), blocks * size)
    yield Value(_CAPACITY, labels, family_usage.capacity * size)
    yield Value(_RATIO, labels, family_usage.ratio)
    yield Value(_BLOCK, labels, size)


def states(family_usage: usage.Usage) -> Mapping[str, int]:
    """Return blocks by state (free, held, cooling, reserved), which add up to the capacity.

    The stored counts of a very large pool may be older than its capacity, so each is limited by it.
    """
    held = min(family_usage.held, family_usage.capacity)
    cooling = min(family_usage.cooling, family_usage.capacity - held)
    reserved = min(max(0, family_usage.reserved), family_usage.capacity - held - cooling)
    free = family_usage.capacity - held - cooling - reserved
    return {"free": free, "held": held, "cooling": cooling, "reserved": reserved}


def _pending_request_counts() -> dict[int, int]:
    rows = AllocationRequest.objects.filter(state=RequestState.PENDING).order_by()
    return dict(
        rows.values_list("pool_id").annotate(count=Count("pk")).values_list("pool_id", "count")
    )


def condition_values() -> Iterator[Value]:
    """Yield the numbers of open and acknowledged alerts of each code and level, and the thresholds."""
    rows = Alert.objects.filter(ended_at=None).order_by().values_list("code", "level")
    counts = {
        (code, level): (count, acknowledged)
        for code, level, count, acknowledged in rows.annotate(
            count=Count("pk"), acknowledged=Count("acknowledged_at")
        )
    }
    for code in registry.codes():
        for level in Level:
            count, acknowledged = counts.get((code, level), (0, 0))
            yield value("ipam_alerts_open", count, code=code, level=level)
            yield value("ipam_alerts_acknowledged", acknowledged, code=code, level=level)
    for code, level, threshold in (
        (pools.NEARLY_FULL, Level.WARNING, settings.IPAM_ALERT_WARNING_PERCENT / 100),
        (pools.NEARLY_FULL, Level.ERROR, settings.IPAM_ALERT_ERROR_PERCENT / 100),
        (pools.COOLING, Level.WARNING, settings.IPAM_ALERT_COOLING_PERCENT / 100),
        (clusters.STALE, Level.ERROR, connections.stale_after().total_seconds()),
        (register.SCHEDULER, Level.ERROR, settings.IPAM_ALERT_SCHEDULER_SECONDS),
    ):
        yield value("ipam_alert_threshold", threshold, code=code, level=level)


def operating_values() -> Iterator[Value]:
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
