"""How full pools are, in addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.db.models import Count

from pools.models import AllocationRequest, Pool
from pools.models.requests import RequestState
from pools.platform.metrics.families import BY_NAME
from pools.platform.metrics.values import Labels, Value
from pools.register import usage

_ADDRESSES = BY_NAME["ipam_pool_addresses"]
_CAPACITY = BY_NAME["ipam_pool_capacity_addresses"]
_RATIO = BY_NAME["ipam_pool_utilization_ratio"]
_BLOCK = BY_NAME["ipam_pool_block_addresses"]
_QUEUE = BY_NAME["ipam_cooldown_queue_addresses"]
_PENDING = BY_NAME["ipam_requests_pending"]
_BITS = {4: 32, 6: 128}


def values() -> Iterator[Value]:
    """Of all pools and families."""
    pools = list(
        Pool.objects.select_related("cluster").only(
            "name",
            "category",
            "mask_size_v4",
            "mask_size_v6",
            "allow_first_ip",
            "allow_last_ip",
            "cluster__name",
        )
    )
    pending = _pending()
    known = usage.of_pools(pools)
    for pool in pools:
        place = (("cluster", pool.cluster.name), ("pool", pool.name))
        yield Value(_PENDING, place, pending.get(pool.pk, 0))
        for family, one in known[pool.pk].items():
            mask_size = pool.mask_size(family)
            if mask_size is not None:
                category = (*place, ("category", pool.category), ("family", str(family)))
                yield from _of_family(category, one, 1 << (_BITS[family] - mask_size))
                queue = (*place, ("family", str(family)))
                yield Value(_QUEUE, queue, states(one)["cooling"] << (_BITS[family] - mask_size))


def _of_family(labels: Labels, one: usage.Usage, size: int) -> Iterator[Value]:
    for state, blocks in states(one).items():
        yield Value(_ADDRESSES, (*labels, ("state", state)), blocks * size)
    yield Value(_CAPACITY, labels, one.capacity * size)
    yield Value(_RATIO, labels, one.ratio)
    yield Value(_BLOCK, labels, size)


def states(one: usage.Usage) -> Mapping[str, int]:
    """Blocks by state, which add up to the capacity.

    What the worker counted a while ago of a very large pool need not fit the capacity of now.
    """
    held = min(one.held, one.capacity)
    cooling = min(one.cooling, one.capacity - held)
    reserved = min(max(0, one.reserved), one.capacity - held - cooling)
    free = one.capacity - held - cooling - reserved
    return {"free": free, "held": held, "cooling": cooling, "reserved": reserved}


def _pending() -> dict[int, int]:
    rows = AllocationRequest.objects.filter(state=RequestState.PENDING).order_by()
    return dict(
        rows.values_list("pool_id").annotate(count=Count("pk")).values_list("pool_id", "count")
    )
