"""What is legal in a CiliumPodIPPool and hardly what somebody meant."""

from __future__ import annotations

from collections.abc import Iterator

from pools.core import addresses, blocks
from pools.core.cilium import podippool

FEW_BLOCKS = 8  # a block is a node's: no more nodes than these get addresses
# The operator's CIDR sets of IPv6 hold no more bits (pools/core/cilium/preflight.py).
MOST_IPV6_BITS = 16

Warnings = Iterator[tuple[str, str]]  # where, what


def of(pool: podippool.PodIPPool, before: dict[addresses.Network, podippool.CidrEntry]) -> Warnings:
    """What is odd about the parts that `before` (entries by CIDR) had not, or had otherwise."""
    for number, family in sorted(pool.families.items()):
        at = f"spec.ipv{number}"
        fresh = [
            (index, entry)
            for index, entry in enumerate(family.cidrs)
            if before.get(entry.cidr) != entry
        ]
        if fresh:
            yield from _of_mask_size(family, at)
        for index, entry in fresh:
            grid = blocks.Layout(
                entry.cidr, family.mask_size, pool.allow_first_ip, pool.allow_last_ip
            )
            yield from _of_cidr(entry, grid, f"{at}.cidrs.{index}")


def _of_mask_size(family: podippool.Family, at: str) -> Warnings:
    count = sum(1 << (family.mask_size - entry.cidr.prefixlen) for entry in family.cidrs)
    if count < FEW_BLOCKS:
        plural = "s" * (count > 1)
        message = f"only {count} block{plural} of /{family.mask_size}: as many nodes get addresses"
        yield f"{at}.maskSize", message


def _of_cidr(entry: podippool.CidrEntry, grid: blocks.Layout, at: str) -> Warnings:
    for problem in (*addresses.warnings_for(entry.cidr, field=at), *grid.warnings(field=at)):
        yield problem.field, problem.message
    if entry.cidr.version == 6 and grid.mask_size - entry.cidr.prefixlen > MOST_IPV6_BITS:
        longest = entry.cidr.prefixlen + MOST_IPV6_BITS
        yield at, f"Cilium's operator refuses a mask size above {longest} in {entry.cidr}"
    if entry.reserved and not grid.allocatable(entry.reserved):
        yield at, f"all of {entry.cidr} is reserved: nothing of it is handed out any more"
        return
    for span in entry.reserved:
        if cut := _cut(grid, span):
            yield at, f"{span} touches {' and '.join(cut)} in part: withheld whole all the same"


def _cut(grid: blocks.Layout, span: addresses.AddressRange) -> list[str]:
    """The blocks of which the range holds a part only: the first and the last, if any."""
    touched = grid.span_touching(span)
    if touched is None:
        return []
    ends = {index: grid.block_at(index) for index in (touched.first, touched.last)}
    return [
        str(block)
        for block in ends.values()
        if int(block.network_address) < int(span.first)
        or int(block.broadcast_address) > int(span.last)
    ]
