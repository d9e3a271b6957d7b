"""The selection of blocks by Cilium's operator: CIDRs in the order of the pool, next-fit in a CIDR."""

from __future__ import annotations

from collections.abc import Iterable

from pools.core import addresses, blocks
from pools.core.blocks import IndexSet
from pools.core.cilium import multipool, podippool


class CidrBlocks:
    """The blocks of one CIDR of a pool, allocated next-fit."""

    def __init__(self, cidr: addresses.Network, mask_size: int) -> None:
        self.layout = blocks.Layout(cidr, mask_size)
        self._withheld = IndexSet()
        self.used = IndexSet()
        self._next = 0

    def span_of(self, cidr: addresses.Network) -> blocks.Span | None:
        return self.layout.span_touching(addresses.AddressRange.from_network(cidr))

    def withhold(self, reserved: Iterable[addresses.AddressRange]) -> None:
        """Exclude the blocks that a range overlaps from allocation; blocks in use stay in use."""
        self._withheld = IndexSet(self.layout.withheld(reserved))

    def take(self) -> addresses.Network | None:
        """Allocate the next free block after the last allocated one; None if there is none.

        A release does not move the pointer back, which delays the reuse of a block.
        """
        index = self._free_from(self._next)
        if index is None:
            index = self._free_from(0)
        if index is None:
            return None
        self._next = (index + 1) % self.layout.count
        self.used.add(blocks.Span(index, index))
        return self.layout.block_at(index)

    def _free_from(self, index: int) -> int | None:
        while index < self.layout.count:
            free = self._withheld.next_missing(self.used.next_missing(index))
            if free == index:
                return index
            index = free
        return None


class PoolBlocks:
    """The blocks of one pool: its CIDRs in the order of the manifest."""

    def __init__(self, pool: podippool.PodIPPool) -> None:
        self._allow = (pool.allow_first_ip, pool.allow_last_ip)
        self.cidrs: dict[int, list[CidrBlocks]] = {4: [], 6: []}
        for family, part in pool.families.items():
            for entry in part.cidrs:
                cidr_blocks = CidrBlocks(entry.cidr, part.mask_size)
                cidr_blocks.withhold(entry.reserved)
                self.cidrs[family].append(cidr_blocks)

    def usable(self, held: Iterable[addresses.Network], family: int) -> int:
        return sum(self.usable_in(cidr) for cidr in held if cidr.version == family)

    def usable_in(self, cidr: addresses.Network) -> int:
        first, last = self._allow
        return multipool.usable_addresses(cidr, allow_first=first, allow_last=last)

    def locate(self, cidr: addresses.Network) -> tuple[CidrBlocks, blocks.Span] | None:
        for part in self.cidrs[cidr.version]:
            if (span := part.span_of(cidr)) is not None:
                return part, span
        return None

    def occupy(self, cidr: addresses.Network) -> str:
        """Mark a CIDR as used, even in a reserved range; return the failure, or ""."""
        location = self.locate(cidr)
        if location is None:
            return f"cidr {cidr} is not part of the requested pool"
        part, span = location
        if part.used.contains_span(span):
            return f"cidr {cidr} has already been allocated"
        part.used.add(span)
        return ""

    def take(self, family: int) -> addresses.Network | None:
        for part in self.cidrs[family]:
            if (cidr := part.take()) is not None:
                return cidr
        return None
