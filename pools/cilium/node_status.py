"""Comparison of the CIDRs that CiliumNodes list with the blocks that the register has for them.

This module only reads; pools/cilium/node_blocks.py updates the register. The holder of a node's block is
("node", name). Its uid is that of the CiliumNode that was observed to list it, and "" until then: such
a block was allocated here and is not published in the cluster yet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import NamedTuple

from pools.cilium.pod_pools import PodPool, PodPoolCIDR, PodPools
from pools.core import addresses
from pools.core.cilium import ciliumnode
from pools.core.observed.uses import AddressUse, ObservedUses, Role
from pools.platform import database

HOLDER = "node"
_LONGEST_DETAIL = 200  # characters of ObservedCIDR.detail
FAMILIES = (4, 6)


class BlockRow(NamedTuple):
    """A block of the register."""

    id: int
    pool_id: int
    text: str  # the CIDR
    held: bool
    holder: tuple[str, str]  # kind, id; of a free block its last holder
    uid: str
    cools: bool

    @property
    def cidr(self) -> addresses.Network:
        return ip_network(self.text)

    def held_by(self, node: str) -> bool:
        return self.held and self.holder == (HOLDER, node)


# Not frozen: ten thousand are created at a time, and frozen instances take five times as long.
@dataclass(slots=True)
class ListedCIDR:
    """One CIDR that a node lists under the name of a pool.

    `index` is None if the CIDR is no block of the pool around it; `row` is None without a row.
    """

    pool: str
    cidr: addresses.Network
    text: str
    pool_cidr: PodPoolCIDR | None
    index: int | None
    row: BlockRow | None

    @property
    def holder(self) -> tuple[str, str]:
        """Kind and id of the holder; ("", "") without one."""
        return self.row.holder if self.row is not None and self.row.held else ("", "")

    def held_by_another(self, node: str) -> bool:
        """Return True if another holder than the node has the block."""
        return self.row is not None and self.row.held and not self.row.held_by(node)

    @property
    def orphaned(self) -> bool:
        """True if no CIDR of its pool in the cluster contains it."""
        return (
            self.pool_cidr is None or self.pool_cidr.gone or self.pool_cidr.pool.name != self.pool
        )


class NodeStatus(NamedTuple):
    """One node: the CIDRs that it lists, and the blocks that it holds in the register."""

    demand: ciliumnode.NodeDemand
    pools: PodPools
    listed: list[ListedCIDR]
    held: list[BlockRow]

    @property
    def name(self) -> str:
        return self.demand.name

    @property
    def overlaps(self) -> list[ListedCIDR]:
        """Listed CIDRs that another holder has."""
        return [
            listed_cidr for listed_cidr in self.listed if listed_cidr.held_by_another(self.name)
        ]

    @property
    def orphans(self) -> list[ListedCIDR]:
        """Listed CIDRs outside the CIDRs of the pools in the cluster."""
        return [listed_cidr for listed_cidr in self.listed if listed_cidr.orphaned]

    @property
    def free(self) -> list[ListedCIDR]:
        """Listed blocks without a holder."""
        return [
            listed_cidr
            for listed_cidr in self.listed
            if listed_cidr.index is not None
            and (listed_cidr.row is None or not listed_cidr.row.held)
        ]

    @property
    def unlisted(self) -> list[BlockRow]:
        """Blocks that this object listed before and no longer lists: the node released them."""
        return [row for row in self._not_listed if row.uid == self.demand.uid]

    @property
    def unpublished(self) -> list[BlockRow]:
        """Blocks that were allocated to the node and are not published to it yet."""
        return [row for row in self._not_listed if row.uid == ""]

    @property
    def _not_listed(self) -> list[BlockRow]:
        if not self.held:
            return []
        listed = {listed_cidr.text for listed_cidr in self.listed}
        return [row for row in self.held if row.text not in listed]

    def counted_cidrs(self, pool: PodPool) -> Iterator[addresses.Network]:
        """Yield the CIDRs whose addresses count towards the node's request of a pool."""
        for listed_cidr in self.listed:
            if (
                listed_cidr.pool == pool.name
                and not listed_cidr.orphaned
                and not listed_cidr.held_by_another(self.name)
            ):
                yield listed_cidr.cidr
        for row in self.unpublished:
            pool_cidr = (
                self.pools.pool_cidr(pool.name, row.cidr) if row.pool_id == pool.id else None
            )
            if pool_cidr is not None and not pool_cidr.gone:
                yield row.cidr

    def missing(self, name: str) -> dict[int, int]:
        """Return the number of addresses of a pool that the node still lacks, by family."""
        needed = self.demand.requested.get(name, {})
        missing = {family: needed.get(family, 0) for family in FAMILIES}
        if not any(missing.values()):
            return missing
        pool = self.pools.get_live(name)
        if pool is not None:
            for cidr in self.counted_cidrs(pool):
                missing[cidr.version] -= pool.usable(cidr, self.demand)
        return {family: max(count, 0) for family, count in missing.items()}

    @property
    def lacks_addresses(self) -> bool:
        return any(any(self.missing(name).values()) for name in self.demand.requested)

    @property
    def misfits(self) -> list[ListedCIDR]:
        """Listed CIDRs inside a CIDR of a pool that are no blocks of the pool."""
        return [
            listed_cidr
            for listed_cidr in self.listed
            if listed_cidr.pool_cidr is not None and listed_cidr.index is None
        ]

    def observed_uses(self) -> ObservedUses:
        """Return what the node uses of the cluster's addresses that the register has not as its blocks.

        Those are its pod CIDRs outside of multi-pool mode, and listed CIDRs that are no block of a pool of
        the register, or the block of another holder.
        """
        unregistered = tuple(
            AddressUse(Role.PODS, listed_cidr.cidr, f"pool {listed_cidr.pool}"[:_LONGEST_DETAIL])
            for listed_cidr in self.listed
            if listed_cidr.index is None or listed_cidr.held_by_another(self.name)
        )
        return ObservedUses((*self.demand.observed_uses().uses, *unregistered))

    @property
    def needs_work(self) -> bool:
        """True if the node needs blocks, an update of its object, or a finding."""
        return (
            self.lacks_addresses
            or bool(self.demand.operator_error)
            or any(
                listed_cidr.orphaned or listed_cidr.held_by_another(self.name)
                for listed_cidr in self.listed
            )
            or bool(self.free or self.misfits)
            or any(row.uid in {"", self.demand.uid} for row in self._not_listed)
        )

    def failures(self) -> list[str]:
        """Return the messages of Cilium's operator about the CIDRs that the node lists."""
        return [failure for listed_cidr in self.listed if (failure := self._failure(listed_cidr))]

    def _failure(self, listed_cidr: ListedCIDR) -> str:
        if self.pools.get_live(listed_cidr.pool) is None:
            return (
                f"unable to find pool {listed_cidr.pool}, prefix {listed_cidr.cidr} is still allocated to the "
                "node but is marked as orphan"
            )
        failure = ""
        if listed_cidr.orphaned:
            failure = "is not part of the requested pool"
        elif listed_cidr.held_by_another(self.name):
            failure = "has already been allocated"
        return (
            failure
            and f"unable to reuse from pool {listed_cidr.pool}: cidr {listed_cidr.cidr} {failure}"
        )


def node_statuses(pools: PodPools, demands: Sequence[ciliumnode.NodeDemand]) -> list[NodeStatus]:
    """Return the status of each node; one query for any number of nodes."""
    placed = [list(_locate_cidrs(pools, demand)) for demand in demands]
    texts = {text for entries in placed for _, _, text, _ in entries}
    rows_by_key: dict[tuple[int, str], BlockRow] = {}
    held: dict[str, list[BlockRow]] = {}
    for row in _fetch_rows(pools, texts, {demand.name for demand in demands}):
        rows_by_key[row.pool_id, row.text] = row
        if row.held and row.holder[0] == HOLDER:
            held.setdefault(row.holder[1], []).append(row)
    return [
        NodeStatus(
            demand,
            pools,
            [
                ListedCIDR(pool, cidr, text, pool_cidr, None, None)
                if pool_cidr is None
                else ListedCIDR(
                    pool,
                    cidr,
                    text,
                    pool_cidr,
                    pool_cidr.index_of(cidr),
                    rows_by_key.get((pool_cidr.pool.id, text)),
                )
                for pool, cidr, text, pool_cidr in entries
            ],
            held.get(demand.name, []),
        )
        for demand, entries in zip(demands, placed, strict=True)
    ]


def _locate_cidrs(
    pools: PodPools, demand: ciliumnode.NodeDemand
) -> Iterator[tuple[str, addresses.Network, str, PodPoolCIDR | None]]:
    for pool, cidrs in demand.held_cidrs().items():
        for cidr in dict.fromkeys(cidrs):
            yield pool, cidr, str(cidr), pools.pool_cidr(pool, cidr)


def _fetch_rows(pools: PodPools, cidrs: Iterable[str], nodes: Iterable[str]) -> Iterator[BlockRow]:
    values = {
        "spaces": sorted({pool.space_id for pool in pools.by_name.values()}),
        "pools": pools.ids,
        "cidrs": ",".join(cidrs),
        "nodes": ",".join(nodes),
    }
    for row in database.fetch(_ROWS, values):
        text, holder = canonical_cidr(row["cidr"]), (row["holder_kind"], row["holder_id"])
        yield BlockRow(
            row["id"], row["pool_id"], text, row["held"], holder, row["holder_uid"], row["cools"]
        )


def canonical_cidr(text: str) -> str:
    """Return a CIDR of PostgreSQL in Python's notation, which differs for some IPv6 networks."""
    return str(ip_network(text)) if ":" in text else text


# Blocks by CIDR, and blocks by holder; each part uses its own database index (`+ 0` prevents the planner
# from using the index of the pool, which has thousands of rows). Lists are sent as one string, which is
# quoted at once; names and CIDRs have no comma.
_COLUMNS = """
    b.id, b.pool_id, b.cidr::text AS cidr, b.state = 'held' AS held, b.holder_kind, b.holder_id,
    b.holder_uid, COALESCE(b.available_from > ipam_clock(), false) AS cools
"""
_ROWS = f"""
    SELECT {_COLUMNS} FROM pools_block b
    WHERE b.space_id = ANY(%(spaces)s::bigint[]) AND b.pool_id + 0 = ANY(%(pools)s::bigint[])
      AND b.cidr = ANY(string_to_array(%(cidrs)s, ',')::cidr[])
    UNION
    SELECT {_COLUMNS} FROM pools_block b
    WHERE b.holder_id = ANY(string_to_array(%(nodes)s, ',')) AND b.holder_kind = 'node'
      AND b.state = 'held' AND b.pool_id + 0 = ANY(%(pools)s::bigint[])
"""  # noqa: S608  # our own columns
