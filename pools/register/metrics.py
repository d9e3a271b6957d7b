"""Metrics of pools: utilization in addresses, and pending requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.conf import settings
from django.db.models import Count

from pools.core import addresses, metric_labels
from pools.models import AllocationRequest, Pool
from pools.models.attributes import ATTRIBUTES
from pools.models.requests import RequestState
from pools.platform.metrics.families import BY_NAME
from pools.platform.metrics.registry import Labels, Value
from pools.register import usage

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
