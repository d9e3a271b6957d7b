"""The pod pools of one cluster as the register has them, read once for all of its nodes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from ipaddress import ip_address

from pools.core import addresses, blocks
from pools.core.blocks import IndexSet
from pools.core.cilium import ciliumnode, multipool
from pools.models import Category, Pool, PoolCIDR, ReservedRange


@dataclass(frozen=True)
class PodPoolCIDR:
    """One CIDR of a pod pool; `withheld` are the blocks that are not allocated."""

    id: int
    pool: PodPool
    layout: blocks.Layout
    withheld: IndexSet
    gone: bool  # the cluster's pool no longer has it
    first: int
    last: int

    def index_of(self, cidr: addresses.Network) -> int | None:
        """Return the index of a block; None if the CIDR is no block of the pool's mask size."""
        address = int(cidr.network_address)
        if cidr.prefixlen != self.layout.mask_size or not self.first <= address <= self.last:
            return None
        return (address - self.first) >> (cidr.max_prefixlen - cidr.prefixlen)

    def span_touching(self, cidr: addresses.Network) -> blocks.Span | None:
        return self.layout.span_touching(addresses.AddressRange.from_network(cidr))


@dataclass(frozen=True)
class PodPool:
    """A pod pool of a cluster; `gone` if the cluster no longer has it."""

    id: int
    name: str
    space_id: int
    gone: bool
    allow: tuple[bool, bool]
    cidrs: list[PodPoolCIDR] = field(default_factory=list)

    def usable(self, cidr: addresses.Network, node: ciliumnode.NodeDemand) -> int:
        """Return the number of addresses of a block that pods can use on a node.

        The node's entry of the pool decides; the first one gets the pool's flags.
        """
        first, last = node.allowed_edges(self.name) or self.allow
        return multipool.usable_addresses(cidr, allow_first=first, allow_last=last)

    def usable_in_block(self, family: int, node: ciliumnode.NodeDemand) -> int:
        """Return the number of usable addresses in a block of a family; 1 if the pool has none."""
        layouts = (
            pool_cidr.layout for pool_cidr in self.cidrs if pool_cidr.layout.cidr.version == family
        )
        return next((self.usable(layout.block_at(0), node) for layout in layouts), 1)


class PodPools:
    """The current pod pools of one cluster, by name; `version` differs after a change."""

    def __init__(self, cluster_id: int) -> None:
        self.by_name: dict[str, PodPool] = {}
        self.version: list[object] = []
        rows = {
            row.pk: row for row in Pool.objects.filter(cluster_id=cluster_id, category=Category.POD)
        }
        for row in rows.values():
            allow = (row.allow_first_ip, row.allow_last_ip)
            self.version.append((row.pk, row.orphaned_at))
            self.by_name[row.name] = PodPool(
                row.pk, row.name, row.space_id, row.orphaned_at is not None, allow
            )
        reserved: dict[int, list[addresses.AddressRange]] = {}
        for cidr_id, first, last in ReservedRange.objects.filter(pool__in=rows).values_list(
            "pool_cidr_id", "first", "last"
        ):
            span = addresses.AddressRange(ip_address(first), ip_address(last))
            reserved.setdefault(cidr_id, []).append(span)
            self.version.append((cidr_id, span))
        for cidr in PoolCIDR.objects.filter(pool__in=rows).order_by("pool_id", "position", "id"):
            pool = self.by_name[rows[cidr.pool_id].name]
            self.version.append((cidr.pk, cidr.orphaned_at, cidr.pending))
            pool.cidrs.append(
                _make_pool_cidr(cidr, rows[cidr.pool_id], pool, reserved.get(cidr.pk, []))
            )

    @property
    def ids(self) -> list[int]:
        return [pool.id for pool in self.by_name.values()]

    def get_by_names(self, names: Collection[str]) -> list[PodPool]:
        return [pool for name, pool in self.by_name.items() if name in names]

    def get_live(self, name: str) -> PodPool | None:
        """Return a pool that the cluster has, or None."""
        pool = self.by_name.get(name)
        return pool if pool and not pool.gone else None

    def pool_cidr(self, name: str, cidr: addresses.Network) -> PodPoolCIDR | None:
        """Return the pool CIDR that overlaps a CIDR: of the pool with this name, else of another one."""
        pool = self.by_name.get(name)
        match = pool and _find_cidr_in(pool, cidr)
        return match or next(
            filter(None, (_find_cidr_in(other_pool, cidr) for other_pool in self.by_name.values())),
            None,
        )

    def touched(self, pool_cidr: PodPoolCIDR | None, cidr: addresses.Network) -> list[PodPoolCIDR]:
        """Return all pool CIDRs that overlap a CIDR, of which one is known: a wider CIDR may overlap several."""
        if pool_cidr is None or cidr.prefixlen >= pool_cidr.layout.cidr.prefixlen:
            return [pool_cidr] if pool_cidr is not None else []
        return [
            other
            for pool in self.by_name.values()
            for other in pool.cidrs
            if other.span_touching(cidr) is not None
        ]


def _find_cidr_in(pool: PodPool, cidr: addresses.Network) -> PodPoolCIDR | None:
    first = int(cidr.network_address)
    last = first + (1 << (cidr.max_prefixlen - cidr.prefixlen)) - 1
    for pool_cidr in pool.cidrs:
        same = pool_cidr.layout.cidr.version == cidr.version
        if same and first <= pool_cidr.last and last >= pool_cidr.first:
            return pool_cidr
    return None


def _make_pool_cidr(
    cidr: PoolCIDR, row: Pool, pool: PodPool, reserved: list[addresses.AddressRange]
) -> PodPoolCIDR:
    mask_size = row.mask_size(cidr.cidr.version) or 0  # a trigger forbids None
    layout = blocks.Layout(
        cidr.cidr, mask_size, allow_first=row.allow_first_ip, allow_last=row.allow_last_ip
    )
    usable = [] if cidr.pending else layout.allocatable(reserved)
    unusable = blocks.subtract([blocks.Span(0, layout.count - 1)], usable)
    first = int(cidr.cidr.network_address)
    return PodPoolCIDR(
        cidr.pk,
        pool,
        layout,
        IndexSet(unusable),
        pool.gone or cidr.orphaned_at is not None,
        first,
        first + cidr.cidr.num_addresses - 1,
    )
