"""Find free blocks near an address."""

from __future__ import annotations

from pools.core import addresses, blocks
from pools.models import Block, PoolCIDR
from pools.models.blocks import LIVE
from pools.register.allocator import window

REACH = 128  # blocks searched on each side


def nearest_free_blocks(
    cidr: PoolCIDR, address: addresses.Address, count: int
) -> list[addresses.Network]:
    """Return up to `count` free blocks of the CIDR that are nearest to the address, in order."""
    grid = window.layout(cidr)
    center = grid.index_of_address(address)
    first, last = max(0, center - REACH), min(grid.count - 1, center + REACH)
    ranges = [
        addresses.AddressRange(reserved_range.first, reserved_range.last)
        for reserved_range in cidr.reserved_ranges.all()
    ]
    used = Block.objects.filter(
        space=cidr.space_id,
        cidr__gte=str(grid.block_at(first)),
        cidr__lte=str(grid.block_at(last)),
        state__in=LIVE,
    )
    holes = [
        blocks.Span(index, index)
        for index in map(grid.index_of, used.values_list("cidr", flat=True))
    ]
    searched = [blocks.Span(first, last)]
    outside = blocks.subtract([blocks.Span(0, grid.count - 1)], searched)
    free = blocks.subtract(grid.allocatable(ranges), [*outside, *holes])
    indexes = (index for span in free for index in range(span.first, span.last + 1))
    nearest = sorted(indexes, key=lambda index: (abs(index - center), index))[:count]
    return [grid.block_at(index) for index in sorted(nearest)]
