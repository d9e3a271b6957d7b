"""Warnings about CiliumPodIPPools that are valid and probably a mistake."""

from __future__ import annotations

from collections.abc import Iterator

from pools.core import addresses, blocks
from pools.core.cilium import podippool

FEW_BLOCKS = 8  # warn below; each node needs a block
# The limit of the operator's IPv6 CIDR sets (pools/core/cilium/preflight.py).
MOST_IPV6_BITS = 16

Warnings = Iterator[tuple[str, str]]  # field, message


def warnings_for(
    pool: podippool.PodIPPool, before: dict[addresses.Network, podippool.CidrEntry]
) -> Warnings:
    """Yield warnings about the entries that are not in `before` (entries by CIDR), or differ."""
    for number, family in sorted(pool.families.items()):
        field = f"spec.ipv{number}"
        changed_entries = [
            (index, entry)
            for index, entry in enumerate(family.cidrs)
            if before.get(entry.cidr) != entry
        ]
        if changed_entries:
            yield from _mask_size_warnings(family, field)
        for index, entry in changed_entries:
            grid = blocks.Layout(
                entry.cidr, family.mask_size, pool.allow_first_ip, pool.allow_last_ip
            )
            yield from _cidr_warnings(entry, grid, f"{field}.cidrs.{index}")


def _mask_size_warnings(family: podippool.Family, field: str) -> Warnings:
    count = sum(1 << (family.mask_size - entry.cidr.prefixlen) for entry in family.cidrs)
    if count < FEW_BLOCKS:
        plural = "s" * (count > 1)
        message = (
            f"only {count} block{plural} of /{family.mask_size}: enough for {count} node{plural}"
        )
        yield f"{field}.maskSize", message


def _cidr_warnings(entry: podippool.CidrEntry, grid: blocks.Layout, field: str) -> Warnings:
    for problem in (*addresses.warnings_for(entry.cidr, field=field), *grid.warnings(field=field)):
        yield problem.field, problem.message
    if entry.cidr.version == 6 and grid.mask_size - entry.cidr.prefixlen > MOST_IPV6_BITS:
        longest = entry.cidr.prefixlen + MOST_IPV6_BITS
        yield field, f"Cilium's operator refuses a mask size above {longest} in {entry.cidr}"
    if entry.reserved and not grid.allocatable(entry.reserved):
        yield field, f"all of {entry.cidr} is reserved: no block of it can be allocated"
        return
    for span in entry.reserved:
        if partial_blocks := _partly_reserved_blocks(grid, span):
            message = (
                f"{span} touches {' and '.join(partial_blocks)} in part: whole blocks are withheld"
            )
            yield field, message


def _partly_reserved_blocks(grid: blocks.Layout, span: addresses.AddressRange) -> list[str]:
    """Return the blocks that the range covers only in part: its first or last block, or both."""
    touched = grid.span_touching(span)
    if touched is None:
        return []
    end_blocks = {index: grid.block_at(index) for index in (touched.first, touched.last)}
    return [
        str(block)
        for block in end_blocks.values()
        if int(block.network_address) < int(span.first)
        or int(block.broadcast_address) > int(span.last)
    ]
