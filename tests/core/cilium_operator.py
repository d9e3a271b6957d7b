"""A model of Cilium's operator: the PodCIDRs that a node gets (operator/pkg/ipam/allocator/multipool).

What the handler of CiliumNodes writes and what `pod_cidr_plan` predicts is compared with it. It has no
clock, no cooldown and no other clusters. Like the operator, it does not detect that two pools overlap.
Error strings are the operator's.

One behaviour differs: a CIDR that a node lists and that is not in its pool (any more) becomes an orphan,
with the operator's error. The operator does so only if it saw the CIDR leave the pool; after a restart
it removes the CIDR from the node (cilium/cilium#41986).
"""

import enum
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pools.core import addresses, holders
from pools.core.cilium import ciliumnode, multipool, podippool

NOT_READY = "allocator not ready"
Held = dict[str, set[addresses.Network]]  # by pool


class Verb(enum.Enum):
    """The action of a step."""

    OCCUPY = "occupy"  # the node lists it: it is no longer free
    ADOPT = "adopt"  # the pool of an orphan has its CIDR again
    ORPHAN = "orphan"  # the node keeps it, although it is in no CIDR of its pool
    RELEASE = "release"  # the node no longer lists it
    ALLOCATE = "allocate"  # new for the node


@dataclass(frozen=True)
class PodCIDRStep:
    """One action on one PodCIDR."""

    verb: Verb
    node: str
    pool: str
    cidr: addresses.Network


@dataclass(frozen=True)
class OperatorOutcome:
    """The completed steps in order, and the failures; an outcome can have both."""

    steps: tuple[PodCIDRStep, ...] = ()
    errors: tuple[str, ...] = ()

    def cidrs(self, verb: Verb) -> list[addresses.Network]:
        """Return the CIDRs of the steps with this action."""
        return [step.cidr for step in self.steps if step.verb is verb]


class Operator:
    """The pools, the nodes and the holders of blocks; `families` are the families of the cluster."""

    def __init__(
        self, families: Collection[int] = (4, 6), *, max_blocks: int = holders.MOST_BLOCKS
    ) -> None:
        self.ready = False
        self._families = sorted(families)
        self._max_blocks = max_blocks  # blocks in one call: a node may request 2^63 addresses
        self._manifests: dict[str, podippool.PodIPPool] = {}
        self._pools: dict[str, multipool.PoolBlocks] = {}
        self._held: dict[str, Held] = {}
        self._orphans: dict[str, Held] = {}

    def finish_restore(self) -> None:
        """Start to allocate blocks, after all nodes were restored."""
        self.ready = True

    def allocated(self, node: str) -> dict[str, list[addresses.Network]]:
        """Return spec.ipam.pools.allocated of a node, including orphans.

        CIDRs that the node lists and another node holds are not included: the operator removes them.
        """
        held, orphans = self._held.get(node, {}), self._orphans.get(node, {})
        return {
            pool: _sort_cidrs(held.get(pool, set()) | orphans.get(pool, set()))
            for pool in sorted({*held, *orphans})
        }

    def allocated_entries(self, node: str) -> list[dict[str, Any]]:
        """Return spec.ipam.pools.allocated as it is written: each entry repeats the flags of its pool."""
        return [
            {"pool": name, "cidrs": sorted(map(str, cidrs), key=_written_order)}
            | _written_flags(self._manifests.get(name))
            for name, cidrs in self.allocated(node).items()
            if cidrs
        ]

    def orphans(self, node: str) -> dict[str, list[addresses.Network]]:
        """Return the CIDRs that the node holds outside the CIDRs of its pools, by pool."""
        return {pool: _sort_cidrs(cidrs) for pool, cidrs in self._orphans.get(node, {}).items()}

    def upsert_pool(self, pool: podippool.PodIPPool) -> OperatorOutcome:
        """Add or change a pool.

        Remaining CIDRs keep their blocks and their position; new CIDRs follow in the order of the
        manifest. Blocks in use of a removed CIDR become orphans. Orphans in a CIDR of the pool are
        adopted.
        """
        new = multipool.PoolBlocks(pool)
        before = self._manifests.get(pool.name)
        if refused := before and _forbidden_change(before, pool):
            return OperatorOutcome(errors=(refused,))
        for family, part in pool.families.items():
            reserved = {entry.cidr: entry.reserved for entry in part.cidrs}
            old = self._pools[pool.name].cidrs[family] if before else []
            stored = [blocks for blocks in old if blocks.layout.cidr in reserved]
            kept_cidrs = {blocks.layout.cidr for blocks in stored}
            added = [blocks for blocks in new.cidrs[family] if blocks.layout.cidr not in kept_cidrs]
            new.cidrs[family] = stored + added
            for blocks in stored:
                blocks.withhold(reserved[blocks.layout.cidr])
        self._manifests[pool.name] = pool
        self._pools[pool.name] = new
        orphaned = tuple(self._orphan(pool.name, new))
        adopted = self._adopt(new)
        return OperatorOutcome((*orphaned, *adopted.steps), adopted.errors)

    def delete_pool(self, name: str) -> OperatorOutcome:
        """Delete a pool; its blocks in use stay with the nodes as orphans."""
        self._manifests.pop(name, None)
        if self._pools.pop(name, None) is None:
            return OperatorOutcome(errors=(f'pool "{name}" requested for deletion doesn\'t exist',))
        return OperatorOutcome(tuple(self._orphan(name, None)))

    def release_node(self, name: str) -> OperatorOutcome:
        """Release all blocks of a deleted node."""
        steps = []
        for pool, cidrs in self._held.pop(name, {}).items():
            for cidr in _sort_cidrs(cidrs):
                _release(self._pools[pool], cidr)
                steps.append(PodCIDRStep(Verb.RELEASE, name, pool, cidr))
        for pool, cidrs in self._orphans.pop(name, {}).items():
            steps += [PodCIDRStep(Verb.RELEASE, name, pool, cidr) for cidr in _sort_cidrs(cidrs)]
        return OperatorOutcome(tuple(steps))

    def allocate_to_node(self, node: ciliumnode.NodeDemand) -> OperatorOutcome:
        """Reconcile one node after a change.

        1. Occupy the CIDRs that it lists. 2. Release the CIDRs that it no longer lists. 3. After all
        nodes were restored, allocate missing blocks; the errors report what could not be allocated.
        """
        listed = node.held_cidrs()
        occupied = self._occupy(node.name, listed)
        released = self._release_unlisted(node.name, listed)
        steps = (*occupied.steps, *released)
        if not self.ready:
            return OperatorOutcome(steps, (NOT_READY,))
        allocated = self._allocate(node)
        return OperatorOutcome((*steps, *allocated.steps), (*occupied.errors, *allocated.errors))

    def _occupy(self, node: str, listed: dict[str, list[addresses.Network]]) -> OperatorOutcome:
        steps, failures = [], []
        held = self._held.setdefault(node, {})
        for name, cidrs in listed.items():
            for cidr in cidrs:
                if cidr in held.get(name, ()):
                    continue
                pool = self._pools.get(name)
                failure = pool.occupy(cidr) if pool else "no pool"
                if not failure:
                    held.setdefault(name, set()).add(cidr)
                    self._forget_orphan(node, name, cidr)
                    steps.append(PodCIDRStep(Verb.OCCUPY, node, name, cidr))
                    continue
                if pool is None or pool.locate(cidr) is None:
                    steps += self._mark_orphan(node, name, cidr)
                failures.append(
                    f"unable to reuse from pool {name}: {failure}"
                    if pool
                    else f"unable to find pool {name}, prefix {cidr} is still allocated to the "
                    "node but is marked as orphan"
                )
        return OperatorOutcome(tuple(steps), tuple(failures))

    def _release_unlisted(
        self, node: str, listed: dict[str, list[addresses.Network]]
    ) -> Iterator[PodCIDRStep]:
        for name, cidrs in list(self._held.get(node, {}).items()):
            for cidr in _sort_cidrs(cidrs.difference(listed.get(name, ()))):
                _release(self._pools[name], cidr)
                _discard(self._held, node, name, cidr)
                yield PodCIDRStep(Verb.RELEASE, node, name, cidr)
        for name, cidrs in list(self._orphans.get(node, {}).items()):
            for cidr in _sort_cidrs(cidrs.difference(listed.get(name, ()))):
                self._forget_orphan(node, name, cidr)
                yield PodCIDRStep(Verb.RELEASE, node, name, cidr)

    def _allocate(self, node: ciliumnode.NodeDemand) -> OperatorOutcome:
        steps: list[PodCIDRStep] = []
        failures = []
        for name, needed in node.requested.items():
            for family in self._families:
                failure = self._allocate_family(
                    node.name, name, family, needed.get(family, 0), steps
                )
                if failure:
                    failures.append(
                        f'failed to allocate ipv{family} address for node "{node.name}" '
                        f'from pool "{name}": {failure}'
                    )
        return OperatorOutcome(tuple(steps), tuple(failures))

    def _allocate_family(
        self, node: str, name: str, family: int, needed: int, steps: list[PodCIDRStep]
    ) -> str:
        pool = self._pools.get(name)
        held = self._held.setdefault(node, {}).get(name, set())
        if pool is None:
            return f"cannot allocate from non-existing pool: {name}" if needed > 0 else ""
        missing = needed - pool.usable(held, family)
        while missing > 0:
            if len(steps) >= self._max_blocks:
                return f"more than {self._max_blocks} blocks at once"
            cidr = pool.take(family)
            if cidr is None:
                return "pool empty"
            self._held[node].setdefault(name, set()).add(cidr)
            steps.append(PodCIDRStep(Verb.ALLOCATE, node, name, cidr))
            missing -= pool.usable_in(cidr)
        return ""

    def _orphan(self, name: str, pool: multipool.PoolBlocks | None) -> Iterator[PodCIDRStep]:
        for node, held in list(self._held.items()):
            for cidr in _sort_cidrs(held.get(name, ())):
                # A CIDR that replaced the block's one does not have it in use before it is adopted.
                if pool is None or not _in_use(pool, cidr):
                    _discard(self._held, node, name, cidr)
                    yield from self._mark_orphan(node, name, cidr)

    def _adopt(self, changed: multipool.PoolBlocks) -> OperatorOutcome:
        steps, failures = [], []
        for node, name, cidr in self._orphans_of_nodes():
            if changed.locate(cidr) is None:
                continue
            pool = self._pools.get(name)
            failure = f"cannot reuse from non-existing pool: {name}"
            if pool is not None:
                failure = pool.occupy(cidr)
                failure = failure and f"unable to reuse from pool {name}: {failure}"
            if failure:
                failures.append(
                    f"unable to mark orphaned CIDR {cidr} still used by node {node} "
                    f"as allocated: {failure}"
                )
                continue
            self._forget_orphan(node, name, cidr)
            self._held.setdefault(node, {}).setdefault(name, set()).add(cidr)
            steps.append(PodCIDRStep(Verb.ADOPT, node, name, cidr))
        return OperatorOutcome(tuple(steps), tuple(failures))

    def _orphans_of_nodes(self) -> list[tuple[str, str, addresses.Network]]:
        return [
            (node, name, cidr)
            for node, orphans in sorted(self._orphans.items())
            for name, cidrs in sorted(orphans.items())
            for cidr in _sort_cidrs(cidrs)
        ]

    def _mark_orphan(self, node: str, name: str, cidr: addresses.Network) -> Iterator[PodCIDRStep]:
        orphans = self._orphans.setdefault(node, {}).setdefault(name, set())
        if cidr not in orphans:
            orphans.add(cidr)
            yield PodCIDRStep(Verb.ORPHAN, node, name, cidr)

    def _forget_orphan(self, node: str, name: str, cidr: addresses.Network) -> None:
        _discard(self._orphans, node, name, cidr)


def _release(pool: multipool.PoolBlocks, cidr: addresses.Network) -> None:
    if location := pool.locate(cidr):
        part, span = location
        part.used.remove(span)


def _in_use(pool: multipool.PoolBlocks, cidr: addresses.Network) -> bool:
    location = pool.locate(cidr)
    return location is not None and location[0].used.contains_span(location[1])


def _forbidden_change(old: podippool.PodIPPool, new: podippool.PodIPPool) -> str:
    def mask_size(pool: podippool.PodIPPool, family: int) -> int:
        return pool.families[family].mask_size if family in pool.families else 0

    for family in (4, 6):
        if mask_size(old, family) != mask_size(new, family):
            return f'cannot change IPv{family} mask size in existing pool "{new.name}"'
    for field in ("allow_first_ip", "allow_last_ip"):
        if getattr(old, field) != getattr(new, field):
            name = {"allow_first_ip": "allowFirstIP", "allow_last_ip": "allowLastIP"}[field]
            return f'cannot change {name} in existing pool "{new.name}"'
    return ""


def _written_order(cidr: str) -> tuple[bool, str]:
    return ":" in cidr, cidr


def _written_flags(pool: podippool.PodIPPool | None) -> dict[str, bool]:
    """Return the flags as Cilium since 1.20 writes them: those that are true."""
    if pool is None:
        return {}
    flags = {"allowFirstIP": pool.allow_first_ip, "allowLastIP": pool.allow_last_ip}
    return {key: True for key, allowed in flags.items() if allowed}


def _sort_cidrs(cidrs: Iterable[addresses.Network]) -> list[addresses.Network]:
    return sorted(cidrs, key=lambda cidr: (cidr.version, int(cidr.network_address), cidr.prefixlen))


def _discard(cidrs_by_node: dict[str, Held], node: str, name: str, cidr: addresses.Network) -> None:
    cidrs = cidrs_by_node.get(node, {}).get(name)
    if cidrs is not None:
        cidrs.discard(cidr)
        if not cidrs:
            del cidrs_by_node[node][name]
