"""Overlaps that the register allows and people should know: between clusters, with VM networks,
with overlay prefixes.

Inside an address space a constraint forbids them. Across spaces they may be meant, as long as
nothing routes between them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from django.db import connection

from pools.core import addresses, overlaps
from pools.models.pools import Category

PREFIX = "prefix"  # the category of a cluster's own prefix, which no pool has


class OverlapKind(enum.Enum):
    """What overlaps; an overlap may be of several kinds."""

    CLUSTERS = "clusters"  # networks of different clusters
    VM_NETWORK = "vm-network"  # a VM network is one of them
    OVERLAY = "overlay"  # the overlay addresses of nodes or instances are one of them


@dataclass(frozen=True)
class NetworkOwner:
    """Whose network it is; `space` is "" for the cluster's own, `pool_id` None for its prefix."""

    cluster_id: int
    cluster: str
    space: str
    category: str
    pool_id: int | None = None
    pool: str = ""


@dataclass(frozen=True)
class Overlap:
    """Networks of several address spaces of which the first holds all others, in order."""

    members: tuple[tuple[addresses.Network, NetworkOwner], ...]

    @property
    def cidr(self) -> addresses.Network:
        """The widest of them, which no other overlap has."""
        return self.members[0][0]

    @property
    def clusters(self) -> list[str]:
        return sorted({owner.cluster for _, owner in self.members})

    @property
    def kinds(self) -> frozenset[OverlapKind]:
        categories = {owner.category for _, owner in self.members}
        matches = {
            OverlapKind.CLUSTERS: len({owner.cluster_id for _, owner in self.members}) > 1,
            OverlapKind.VM_NETWORK: Category.VM in categories,
            OverlapKind.OVERLAY: bool(categories & {Category.NODE, Category.INSTANCE, PREFIX}),
        }
        return frozenset(kind for kind, is_one in matches.items() if is_one)


def find_overlaps(
    *,
    cluster_id: int | None = None,
    kind: OverlapKind | None = None,
    within: addresses.Network | None = None,
) -> list[Overlap]:
    """All overlaps in the order of their addresses; only those of a cluster, a kind, a network.

    One query and one pass over all CIDRs: 20,000 take some tenths of a second.
    """
    groups = overlaps.overlap_groups(
        _networks(), space=lambda owner: (owner.cluster_id, owner.space)
    )
    every = (Overlap(tuple(group)) for group in groups)
    return [overlap for overlap in every if _chosen(overlap, cluster_id, kind, within)]


def _chosen(
    overlap: Overlap,
    cluster_id: int | None,
    kind: OverlapKind | None,
    within: addresses.Network | None,
) -> bool:
    if cluster_id is not None and cluster_id not in {
        owner.cluster_id for _, owner in overlap.members
    }:
        return False
    if within is not None and not (
        overlaps.contains(within, overlap.cidr) or overlaps.contains(overlap.cidr, within)
    ):
        return False
    return kind is None or kind in overlap.kinds


def touching(network: addresses.Network) -> list[tuple[addresses.Network, NetworkOwner]]:
    """The networks of all address spaces that overlap this one."""
    with connection.cursor() as cursor:
        cursor.execute(_TOUCHING, [str(network)])
        return [_owned(row) for row in sorted(cursor.fetchall(), key=_by_name)]


_ALL = """
    SELECT p.cidr::text, s.cluster_id, k.name, s.name, o.category, o.id, o.name
    FROM pools_poolcidr p JOIN pools_addressspace s ON s.id = p.space_id
    JOIN pools_cluster k ON k.id = s.cluster_id JOIN pools_pool o ON o.id = p.pool_id
    UNION ALL
    SELECT cluster_prefix::text, id, name, '', 'prefix', NULL, '' FROM pools_cluster
    WHERE cluster_prefix IS NOT NULL
"""
_TOUCHING = f"SELECT * FROM ({_ALL}) AS every (cidr) WHERE cidr::cidr && %s"  # noqa: S608


def _networks() -> Iterator[tuple[addresses.Network, NetworkOwner]]:
    with connection.cursor() as cursor:
        cursor.execute(_ALL)
        rows = cursor.fetchall()
    yield from map(_owned, sorted(rows, key=_by_name))


def _owned(row: tuple[Any, ...]) -> tuple[addresses.Network, NetworkOwner]:
    text, cluster_id, cluster, space, category, pool_id, pool = row
    return ip_network(text), NetworkOwner(cluster_id, cluster, space, category, pool_id, pool)


def _by_name(row: tuple[Any, ...]) -> tuple[str, ...]:
    return str(row[2]), str(row[3]), str(row[6])
