"""Cilium's multi-pool mode: addresses of a block and of a node, and the PodCIDRs that nodes get.

Cilium has two formulas for the number of addresses that a node requests. The documentation has
`roundUp(inUse + pending + preAlloc, preAlloc)`. The agent (pkg/ipam/multipool_manager.go) computes
n = inUse + pending and requests n if preAlloc is 0, else (n div preAlloc + 1) * preAlloc, plus one
preAlloc if n is no multiple of it. For preAlloc > 0 the results are equal, because rounding n + p up
to a multiple of p equals rounding n up and adding p. For 0 the documented formula divides by zero;
here it rounds nothing, so that the results are equal too.

`plan` predicts the PodCIDRs that nodes get if Cilium's operator starts now (operator/pkg/ipam/allocator/multipool):
CIDRs in the order of the pool, next-fit in a CIDR. It has no clock, no cooldown and no other clusters. Like the
operator, it does not detect that two pools overlap. Error strings are the operator's. A CIDR that a node lists
outside of the CIDRs of its pool stays with the node as an orphan, with the operator's error.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pools.core import addresses, blocks, errors, holders
from pools.core.blocks import IndexSet
from pools.core.cilium import ciliumnode, podippool

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
        return usable_addresses(cidr, allow_first=first, allow_last=last)

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


_Blocks = Mapping[str, PoolBlocks]
_Held = Mapping[str, set[addresses.Network]]  # by pool


@dataclass(frozen=True)
class NodePlan:
    """The new blocks of a node in order, each with the name of its pool, and the operator's errors."""

    blocks: tuple[tuple[str, addresses.Network], ...]
    errors: tuple[str, ...]


def plan(
    pools: Iterable[podippool.PodIPPool],
    nodes: Collection[ciliumnode.NodeDemand],
    *,
    families: Collection[int] = (4, 6),
) -> dict[str, NodePlan]:
    """Return the plan of each node, by name; nodes are served in their order, after all were restored."""
    blocks = {pool.name: PoolBlocks(pool) for pool in pools}
    held: dict[str, dict[str, set[addresses.Network]]] = {node.name: {} for node in nodes}
    restored = {node.name: list(_restore(blocks, node, held[node.name])) for node in nodes}
    plans = {}
    for node in nodes:
        new_blocks: list[tuple[str, addresses.Network]] = []
        failures = _allocate(blocks, node, held[node.name], families, new_blocks)
        errors = (*restored[node.name], *failures)
        plans[node.name] = NodePlan(tuple(new_blocks), errors)
    return plans


def _restore(
    blocks: _Blocks, node: ciliumnode.NodeDemand, held: dict[str, set[addresses.Network]]
) -> Iterator[str]:
    """Occupy the CIDRs that the node lists, add them to `held`, and yield the failures."""
    for name, cidrs in node.held_cidrs().items():
        for cidr in cidrs:
            if cidr in held.get(name, ()):
                continue
            if name not in blocks:
                yield (
                    f"unable to find pool {name}, prefix {cidr} is still allocated to the "
                    "node but is marked as orphan"
                )
            elif failure := blocks[name].occupy(cidr):
                yield f"unable to reuse from pool {name}: {failure}"
            else:
                held.setdefault(name, set()).add(cidr)


def _allocate(
    blocks: _Blocks,
    node: ciliumnode.NodeDemand,
    held: _Held,
    families: Collection[int],
    new_blocks: list[tuple[str, addresses.Network]],
) -> Iterator[str]:
    """Append the missing blocks of the node to `new_blocks`, and yield the failures."""
    for name, needed in node.requested.items():
        for family in sorted(families):
            addresses_needed = needed.get(family, 0)
            failure = _allocate_family(blocks, held, name, family, addresses_needed, new_blocks)
            if failure:
                yield (
                    f'failed to allocate ipv{family} address for node "{node.name}" '
                    f'from pool "{name}": {failure}'
                )


def _allocate_family(
    blocks: _Blocks,
    held: _Held,
    name: str,
    family: int,
    needed: int,
    new_blocks: list[tuple[str, addresses.Network]],
) -> str:
    if name not in blocks:
        return f"cannot allocate from non-existing pool: {name}" if needed > 0 else ""
    missing = needed - blocks[name].usable(held.get(name, ()), family)
    while missing > 0:
        if len(new_blocks) >= holders.MOST_BLOCKS:  # a node may request 2^63 addresses
            return f"more than {holders.MOST_BLOCKS} blocks at once"
        cidr = blocks[name].take(family)
        if cidr is None:
            return "pool empty"
        new_blocks.append((name, cidr))
        missing -= blocks[name].usable_in(cidr)
    return ""


def drain_nodes(
    nodes: Iterable[ciliumnode.NodeDemand], cidr: addresses.Network
) -> list[ciliumnode.NodeDemand]:
    """Return the nodes without their allocated CIDRs that overlap `cidr`."""
    return [
        replace(
            node,
            allocated=tuple(
                replace(
                    entry,
                    cidrs=tuple(
                        held_cidr for held_cidr in entry.cidrs if not held_cidr.overlaps(cidr)
                    ),
                )
                for entry in node.allocated
            ),
        )
        for node in nodes
    ]
