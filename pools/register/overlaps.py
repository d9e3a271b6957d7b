"""Find CIDRs that overlap across address spaces: of clusters, VM networks and overlay prefixes.

Inside an address space a constraint forbids overlaps. Across address spaces they are allowed, and can
be intended as long as nothing routes between the networks.
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
    """The kind of an overlap; an overlap can have several kinds."""

    CLUSTERS = "clusters"  # networks of different clusters
    VM_NETWORK = "vm-network"  # at least one VM network
    OVERLAY = "overlay"  # overlay addresses of nodes or instances


@dataclass(frozen=True)
class NetworkOwner:
    """The owner of a network.

    `space` is "" for the cluster's own address space; `pool_id` is None for the cluster's prefix.
    """

    cluster_id: int
    cluster: str
    space: str
    category: str
    pool_id: int | None = None
    pool: str = ""


@dataclass(frozen=True)
class Overlap:
    """Networks of several address spaces, in order; the first one contains all others."""

    members: tuple[tuple[addresses.Network, NetworkOwner], ...]

    @property
    def cidr(self) -> addresses.Network:
        """The widest of the networks, which is in no other overlap."""
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
        return frozenset(kind for kind, matched in matches.items() if matched)


def find_overlaps(
    *,
    cluster_id: int | None = None,
    kind: OverlapKind | None = None,
    within: addresses.Network | None = None,
) -> list[Overlap]:
    """Return the overlaps in the order of their addresses, filtered by cluster, kind and network.

    Reads all CIDRs by one query and compares them in one loop: 20,000 take some tenths of a second.
    """
    groups = overlaps.overlap_groups(
        _networks(), space=lambda owner: (owner.cluster_id, owner.space)
    )
    candidates = (Overlap(tuple(group)) for group in groups)
    return [overlap for overlap in candidates if _matches(overlap, cluster_id, kind, within)]


def _matches(
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


def find_overlapping_networks(
    network: addresses.Network,
) -> list[tuple[addresses.Network, NetworkOwner]]:
    """Return the networks of all address spaces that overlap this network."""
    with connection.cursor() as cursor:
        cursor.execute(_OVERLAPPING, [str(network)])
        return [_parse_row(row) for row in sorted(cursor.fetchall(), key=_by_name)]


_ALL_NETWORKS = """
    SELECT p.cidr::text, s.cluster_id, k.name, s.name, o.category, o.id, o.name
    FROM pools_poolcidr p JOIN pools_addressspace s ON s.id = p.space_id
    JOIN pools_cluster k ON k.id = s.cluster_id JOIN pools_pool o ON o.id = p.pool_id
    UNION ALL
    SELECT cluster_prefix::text, id, name, '', 'prefix', NULL, '' FROM pools_cluster
    WHERE cluster_prefix IS NOT NULL
"""
_OVERLAPPING = f"SELECT * FROM ({_ALL_NETWORKS}) AS every (cidr) WHERE cidr::cidr && %s"  # noqa: S608


def _networks() -> Iterator[tuple[addresses.Network, NetworkOwner]]:
    with connection.cursor() as cursor:
        cursor.execute(_ALL_NETWORKS)
        rows = cursor.fetchall()
    yield from map(_parse_row, sorted(rows, key=_by_name))


def _parse_row(row: tuple[Any, ...]) -> tuple[addresses.Network, NetworkOwner]:
    text, cluster_id, cluster, space, category, pool_id, pool = row
    return ip_network(text), NetworkOwner(cluster_id, cluster, space, category, pool_id, pool)


def _by_name(row: tuple[Any, ...]) -> tuple[str, ...]:
    return str(row[2]), str(row[3]), str(row[6])
