"""The PodCIDRs that nodes get if Cilium's operator starts now (operator/pkg/ipam/allocator/multipool).

It predicts the effect of a change of pools on nodes; it has no clock, no cooldown and no other clusters.
Like the operator, it does not detect that two pools overlap. Error strings are the operator's. A CIDR that
a node lists outside of the CIDRs of its pool stays with the node as an orphan, with the operator's error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pools.core import addresses, holders
from pools.core.cilium import ciliumnode, next_fit, podippool

_Blocks = Mapping[str, next_fit.PoolBlocks]
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
    blocks = {pool.name: next_fit.PoolBlocks(pool) for pool in pools}
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
