"""The arithmetic of Cilium's multi-pool mode: addresses of a block and of a node.

Cilium has two formulas for the number of addresses that a node requests. The documentation has
`roundUp(inUse + pending + preAlloc, preAlloc)`. The agent (pkg/ipam/multipool_manager.go) computes
n = inUse + pending and requests n if preAlloc is 0, else (n div preAlloc + 1) * preAlloc, plus one
preAlloc if n is no multiple of it. For preAlloc > 0 the results are equal, because rounding n + p up
to a multiple of p equals rounding n up and adding p. For 0 the documented formula divides by zero;
here it rounds nothing, so that the results are equal too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pools.core import addresses, errors, holders

# Keys of cilium-config; pkg/option/config.go of cilium/cilium.
PRE_ALLOCATION = "ipam-multi-pool-pre-allocation"
DEFAULT_POOL = "ipam-default-ip-pool"
DEFAULT_PRE_ALLOCATION = {"default": 8}
MOST_PRE_ALLOCATED = (1 << 31) - 1

_NUMBER = re.compile(r"[0-9]{1,10}")


def usable_addresses(
    block: addresses.Network, *, allow_first: bool = False, allow_last: bool = False
) -> int:
    """Return the number of addresses of a block that pods can use, for either family.

    The first and the last address are excluded unless the pool allows them. Blocks of one or two
    addresses are used whole (operator/pkg/ipam/allocator/multipool of cilium/cilium).
    """
    size = 1 << (block.max_prefixlen - block.prefixlen)
    if size <= 2:
        return size
    return size - 2 + allow_first + allow_last


def needed_addresses(*, in_use: int, pending: int = 0, pre_allocated: int) -> int:
    """Return the number of addresses that a node requests, by the formula of Cilium's agent."""
    used = in_use + pending
    if pre_allocated == 0:
        return used
    whole, remainder = divmod(used, pre_allocated)
    return (whole + (2 if remainder else 1)) * pre_allocated


def requested_addresses(
    pre_allocation: Mapping[str, int],
    *,
    in_use: Mapping[str, Mapping[int, int]],
    pending: Mapping[str, Mapping[int, int]] | None = None,
    families: Collection[int] = (4, 6),
) -> dict[str, dict[int, int]]:
    """Return spec.ipam.pools.requested as a node's agent writes it, by pool and family.

    `in_use` and `pending` count addresses by pool and family. A pool that is in none of the three
    mappings, or of which no address is needed, is not requested.
    """
    pending = pending or {}
    requested = {}
    for pool in sorted({*pre_allocation, *in_use, *pending}):
        numbers = {
            family: needed_addresses(
                in_use=in_use.get(pool, {}).get(family, 0),
                pending=pending.get(pool, {}).get(family, 0),
                pre_allocated=pre_allocation.get(pool, 0),
            )
            for family in sorted(families)
        }
        if any(numbers.values()):
            requested[pool] = numbers
    return requested


def parse_pre_allocation(value: object, field: str = "") -> dict[str, int]:
    """Return the mapping of `default=8,other=4`; an empty string is Cilium's default, {"default": 8}.

    Raises InvalidInput: wrong_type, pre_allocation (not `pool=number`), duplicate_key, k8s_name, and
    pre_allocation_value with Cilium's message `invalid value for pool "x"`.
    """
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a text", value)
    if not value.strip(addresses.BLANKS):
        return dict(DEFAULT_PRE_ALLOCATION)
    pre_allocation: dict[str, int] = {}
    for part in value.split(","):
        pool, number = _pool_and_number(part, field)
        if pool in pre_allocation:
            message = f'pool "{pool}" is in the map twice'
            raise errors.InvalidInput.for_field(field, "duplicate_key", message, part)
        pre_allocation[pool] = number
    return pre_allocation


def _pool_and_number(part: str, field: str) -> tuple[str, int]:
    pool, equals, number = (text.strip(addresses.BLANKS) for text in part.partition("="))
    if not (pool and equals):
        message = "write the map as pool=number,pool=number"
        raise errors.InvalidInput.for_field(field, "pre_allocation", message, part)
    holders.parse_name(pool, field=field)
    if not _NUMBER.fullmatch(number) or int(number) > MOST_PRE_ALLOCATED:
        message = f'invalid value for pool "{pool}": a number from 0 to {MOST_PRE_ALLOCATED}'
        raise errors.InvalidInput.for_field(field, "pre_allocation_value", message, number)
    return pool, int(number)
