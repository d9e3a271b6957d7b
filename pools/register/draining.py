"""CIDRs that are reserved as a whole: their remaining blocks drain, and nothing new is allocated."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from pools.core import addresses
from pools.models import PoolCIDR
from pools.platform import database
from pools.register.allocator import window
from pools.sql import statements

MOST = 1000  # CIDRs with many reserved addresses that are checked


def reserved_ranges(cidr: PoolCIDR) -> list[addresses.AddressRange]:
    return [addresses.AddressRange(row.first, row.last) for row in cidr.reserved_ranges.all()]


def is_reserved(cidr: PoolCIDR) -> bool:
    """Return True if reserved ranges cover the whole CIDR."""
    return not window.layout(cidr).allocatable(reserved_ranges(cidr))


def draining_cidrs() -> list[PoolCIDR]:
    """Return the CIDRs that are reserved as a whole, in the order of their pools."""
    return [cidr for cidr in _candidates(None)[:MOST] if is_reserved(cidr)]


def draining_pools(pool_ids: Iterable[int]) -> set[int]:
    """Return the pools that have a CIDR which is reserved as a whole."""
    return {cidr.pool_id for cidr in _candidates(list(pool_ids)) if is_reserved(cidr)}


def _candidates(pool_ids: list[int] | None) -> QuerySet[PoolCIDR]:
    ids = [pk for (pk,) in database.rows(_CANDIDATES, {"pools": pool_ids}, prepare=False)]
    rows = PoolCIDR.objects.filter(pk__in=ids).order_by("pool_id", "position", "id")
    return rows.select_related("pool__cluster").prefetch_related("reserved_ranges")


# Most pools reserve a few addresses of each CIDR.
_CANDIDATES = statements.read("pools/cidrs_with_many_reserved")
