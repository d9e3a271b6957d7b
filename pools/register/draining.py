"""CIDRs that are reserved as a whole: their remaining blocks drain, and nothing new is allocated."""

from __future__ import annotations

from pools.core import addresses
from pools.models import PoolCIDR
from pools.register.allocator import window

MOST = 1000  # CIDRs with reserved ranges that are checked


def reserved_ranges(cidr: PoolCIDR) -> list[addresses.AddressRange]:
    return [addresses.AddressRange(row.first, row.last) for row in cidr.reserved_ranges.all()]


def is_reserved(cidr: PoolCIDR) -> bool:
    """Return True if reserved ranges cover the whole CIDR."""
    return not window.layout(cidr).allocatable(reserved_ranges(cidr))


def draining_cidrs() -> list[PoolCIDR]:
    """Return the CIDRs that are reserved as a whole, in the order of their pools."""
    rows = PoolCIDR.objects.filter(reserved_ranges__isnull=False).distinct()
    rows = rows.select_related("pool__cluster").prefetch_related("reserved_ranges")
    return [cidr for cidr in rows.order_by("pool_id", "position", "id")[:MOST] if is_reserved(cidr)]
