"""Find CIDRs that overlap: across address spaces, and inside a cluster with what its objects use.

Pools never overlap inside an address space, because a constraint forbids it. Across address spaces they may,
and it can be intended as long as nothing routes between the networks. What objects of a cluster use
(`ObservedCIDR`) clashes with pools and other objects of its cluster unless the pair is intended
(`pools.core.observed.uses`).
"""

import enum
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from django.db import connection

from pools.core import addresses, cidr_sets
from pools.core.observed import uses
from pools.core.observed.uses import Role
from pools.models import AddressSpace, Category, Cluster, Pool

MOST_OTHERS = 3  # CIDRs that are shown beside one that they overlap
MOST_NAMED = 20  # networks of each table that one would overlap
PREFIX = "prefix"  # the category of a cluster's own prefix, which no pool has


class OverlapKind(enum.Enum):
    """The kind of an overlap; an overlap can have several kinds."""

    CLUSTERS = "clusters"  # networks of different clusters
    VM_NETWORK = "vm-network"  # at least one VM network
    OVERLAY = "overlay"  # overlay addresses of nodes or instances
    CLASH = "clash"  # uses inside one cluster that disturb each other


class OverlapSeverity(enum.Enum):
    """How bad an overlap is, the worst first."""

    ERROR = "error"  # a clash inside a cluster
    WARNING = "warning"  # a fault if something routes between the networks
    INFO = "info"  # Service CIDRs of several clusters, which nothing routes


@dataclass(frozen=True)
class NetworkOwner:
    """The owner of a network: a pool, a cluster with its prefix, or an object of a cluster.

    `space` is "" for the cluster's own address space; `pool_id` is None if it is no pool. `category` is
    that of the pool, `prefix`, or the role of an object, of which `kind`, `object` and `uid` are set.
    """

    cluster_id: int
    cluster: str
    space: str
    category: str
    pool_id: int | None = None
    pool: str = ""
    kind: str = ""
    object: str = ""
    uid: str = ""

    @property
    def use(self) -> uses.Use:
        return uses.Use(self.category, self.kind, self.uid)

    def __str__(self) -> str:
        if self.kind:
            return f"{self.kind} {self.object}"
        return f"pool {self.pool}" if self.pool else "cluster prefix"


Owned = tuple[addresses.Network, NetworkOwner]


def owner_of_pool(pool: Pool) -> NetworkOwner:
    """Return the owner that CIDRs have which a pool would get."""
    cluster, space = pool.cluster, pool.space
    return NetworkOwner(cluster.pk, cluster.name, space.name, pool.category, pool.pk)


def owner_of_new_pool(cluster: Cluster, category: str) -> NetworkOwner:
    return NetworkOwner(cluster.pk, cluster.name, "", category)


def owner_of_new_network(cluster: Cluster, name: str) -> NetworkOwner:
    return NetworkOwner(cluster.pk, cluster.name, name, Category.VM)


def owner_of_container(space: AddressSpace) -> NetworkOwner:
    """Return the owner of what a container of a cluster or an isolated network groups: the rest of its space is its own."""
    return NetworkOwner(space.cluster_id, space.cluster.name, space.name, PREFIX)


def owner_of_prefix(cluster: Cluster | None) -> NetworkOwner:
    """Return the owner that the prefix of a cluster has; None is a cluster that is not added yet."""
    number, name = (cluster.pk, cluster.name) if cluster else (0, "")
    return NetworkOwner(number, name, "", PREFIX)


@dataclass(frozen=True)
class Overlap:
    """Networks that overlap, in order; the first one contains all others.

    `clashes` are the pairs inside one cluster, the outer network first.
    """

    members: tuple[Owned, ...]
    clashes: tuple[tuple[Owned, Owned], ...] = ()

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
            OverlapKind.CLASH: bool(self.clashes),
        }
        return frozenset(kind for kind, matched in matches.items() if matched)

    @property
    def severity(self) -> OverlapSeverity:
        if self.clashes:
            return OverlapSeverity.ERROR
        if all(owner.category == Role.SERVICES for _, owner in self.members):
            return OverlapSeverity.INFO
        return OverlapSeverity.WARNING


def find_overlaps(
    *,
    cluster_id: int | None = None,
    kind: OverlapKind | None = None,
    within: addresses.Network | None = None,
    severity: OverlapSeverity | None = None,
) -> list[Overlap]:
    """Return the overlaps in the order of their addresses, filtered by cluster, kind, network and severity.

    Reads all CIDRs by one query and compares them in one loop: 20,000 take some tenths of a second.
    """
    networks = list(read_networks())
    groups = cidr_sets.overlap_groups(networks, space=lambda owner: (owner.cluster_id, owner.space))
    parts = [Overlap(tuple(group)) for group in groups]
    parts += [Overlap((outer, inner), ((outer, inner),)) for outer, inner in _clashes(networks)]
    return [
        overlap
        for overlap in _merge(parts)
        if _matches(overlap, cluster_id, kind, within)
        and (severity is None or overlap.severity is severity)
    ]


def overlapping_cidrs() -> Mapping[addresses.Network, Sequence[addresses.Network]]:
    """Return the CIDRs of all overlaps that may be a fault, found once for each state of the networks.

    Each with the first other CIDRs that it overlaps: none, if all overlap by having this same CIDR.
    """
    return _overlapping_cidrs(fingerprint())


@functools.lru_cache(maxsize=2)
def _overlapping_cidrs(
    _fingerprint: tuple[object, ...],
) -> Mapping[addresses.Network, Sequence[addresses.Network]]:
    others: dict[addresses.Network, list[addresses.Network]] = {}
    for overlap in find_overlaps():
        if overlap.severity is not OverlapSeverity.INFO:
            distinct = dict.fromkeys(network for network, _owner in overlap.members)
            others |= {network: [] for network in distinct}
            for outer, inner in cidr_sets.nested_pairs((network, None) for network in distinct):
                for network, other in ((outer[0], inner[0]), (inner[0], outer[0])):
                    if len(others[network]) < MOST_OTHERS:
                        others[network].append(other)
    return others


def fingerprint() -> tuple[object, ...]:
    """Return a value that changes when a network appears or vanishes; rows never get another CIDR."""
    with connection.cursor() as cursor:
        cursor.execute(_FINGERPRINT)
        return tuple(cursor.fetchone())


_FINGERPRINT = """
    SELECT (SELECT (count(*), sum(id), max(id))::text FROM pools_poolcidr),
        (SELECT (count(*), sum(id), max(id))::text FROM pools_observedcidr WHERE kind <> 'VM network'),
        (SELECT string_agg(id || ' ' || cluster_prefix, ',' ORDER BY id) FROM pools_cluster)
"""


def find_clashes(cluster_id: int) -> Sequence[tuple[Owned, Owned]]:
    """Return the pairs of one cluster that disturb each other, the outer network first.

    Each watch event of an object asks: the networks are compared once for each state of them in each process.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FINGERPRINT_OF_CLUSTER, {"cluster": cluster_id})
        return _clashes_of_cluster(cluster_id, tuple(cursor.fetchone() or ()))


@functools.lru_cache(maxsize=64)
def _clashes_of_cluster(
    cluster_id: int, _fingerprint: tuple[object, ...]
) -> Sequence[tuple[Owned, Owned]]:
    return tuple(_clashes(read_networks(cluster_id)))


# Only the cluster's own address space has clashes. A row that comes or goes changes a count, a sum or a highest id.
_FINGERPRINT_OF_CLUSTER = """
    SELECT (SELECT (count(*), sum(id), max(id))::text FROM pools_poolcidr WHERE space_id = s.id),
        (SELECT (count(*), sum(id), max(id))::text FROM pools_observedcidr
            WHERE space_id = s.id AND kind <> 'VM network'),
        k.cluster_prefix::text
    FROM pools_cluster k LEFT JOIN pools_addressspace s ON s.cluster_id = k.id AND s.name = ''
    WHERE k.id = %(cluster)s
"""


def _clashes(networks: Iterable[Owned]) -> Iterator[tuple[Owned, Owned]]:
    own_networks: dict[int, list[Owned]] = defaultdict(list)
    for network, owner in networks:
        if not owner.space:
            own_networks[owner.cluster_id].append((network, owner))
    for of_cluster in own_networks.values():
        if any(owner.kind for _, owner in of_cluster):
            yield from clashing_pairs(of_cluster)


def clashing_pairs(networks: Iterable[Owned]) -> Iterator[tuple[Owned, Owned]]:
    """Yield the pairs in the own address space of one cluster that disturb each other, the outer network first.

    The number of pairs that are compared is bounded: equal uses of a kind that never clash have one that stands for all.
    """
    distinct = list(_distinct(networks))
    reserved = [cidr for cidr, owner in distinct if owner.kind == uses.CALICO_RESERVATION]
    for outer, inner in cidr_sets.nested_pairs(distinct):
        if uses.is_clash(outer[1].use, inner[1].use) and not (
            outer[1].kind == uses.CALICO_POOL
            and any(cidr_sets.contains(cidr, inner[0]) for cidr in reserved)
        ):
            yield outer, inner


def _distinct(networks: Iterable[Owned]) -> Iterator[Owned]:
    """Yield the networks with one owner for all Services of an address, and for all definitions of a network of pods.

    A range of a load balancer stands for the Services that have its addresses.
    """
    seen: set[tuple[str, addresses.Network]] = set()
    networks = list(networks)
    ranges = [
        (int(cidr.network_address), int(cidr.broadcast_address), cidr.version)
        for cidr, owner in networks
        if owner.category == Role.LOAD_BALANCER and owner.kind != uses.SERVICE
    ]
    for network, owner in networks:
        if owner.kind == uses.SERVICE or owner.category == Role.SECONDARY:
            key = owner.category, network
            if key in seen:
                continue
            seen.add(key)
            number = int(network.network_address)
            if owner.kind == uses.SERVICE and any(
                first <= number <= last and version == network.version
                for first, last, version in ranges
            ):
                continue
        yield network, owner


def _merge(parts: Iterable[Overlap]) -> Iterator[Overlap]:
    """Yield the parts as disjoint overlaps: one that lies inside another becomes a part of it."""
    group: list[Overlap] = []
    for part in sorted(parts, key=lambda part: cidr_sets.sort_key(part.cidr)):
        if group and not cidr_sets.contains(group[0].cidr, part.cidr):
            yield _join(group)
            group = []
        group.append(part)
    if group:
        yield _join(group)


def _join(group: list[Overlap]) -> Overlap:
    if len(group) == 1:
        return group[0]
    members = dict.fromkeys(member for part in group for member in part.members)
    ordered = sorted(members, key=lambda member: cidr_sets.sort_key(member[0]))
    return Overlap(tuple(ordered), tuple(pair for part in group for pair in part.clashes))


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
        cidr_sets.contains(within, overlap.cidr) or cidr_sets.contains(overlap.cidr, within)
    ):
        return False
    return kind is None or kind in overlap.kinds


def find_overlapping_networks(
    network: addresses.Network,
    *,
    most: int | None = None,
    other_than: int | None = None,
    cluster_id: int | None = None,
) -> list[Owned]:
    """Return the networks of all clusters, or of one, that overlap this network, without those of a pool.

    At most `most` of each table, the first by their addresses.
    """
    values = {"network": str(network), "most": most, "pool": other_than, "cluster": cluster_id}
    with connection.cursor() as cursor:
        cursor.execute(_OVERLAPPING, values)
        return [_parse_row(row) for row in sorted(cursor.fetchall(), key=_by_name)]


def find_new_overlaps(network: addresses.Network, owner: NetworkOwner) -> list[Owned]:
    """Return what a network would overlap if this owner got it: first that of its cluster, then of the others.

    At most `MOST_NAMED` of each table. In its own address space only what it would clash with: the
    register refuses the pools itself.
    """
    found = find_overlapping_networks(network, most=MOST_NAMED, other_than=owner.pool_id)
    space = owner.cluster_id, owner.space
    return [
        (other, present)
        for other, present in dict.fromkeys([*_find_in_cluster(network, owner), *found])
        if (present.cluster_id, present.space) != space or uses.is_clash(owner.use, present.use)
    ]


def find_refusals(network: addresses.Network, owner: NetworkOwner) -> list[Owned]:
    """Return the CIDRs of other pools because of which the register refuses the network to this owner."""
    if owner.category == PREFIX:
        return []
    return [
        (other, present)
        for other, present in _find_in_cluster(network, owner)
        if present.pool_id and present.space == owner.space
    ]


def _find_in_cluster(network: addresses.Network, owner: NetworkOwner) -> list[Owned]:
    return find_overlapping_networks(
        network, most=MOST_NAMED, other_than=owner.pool_id, cluster_id=owner.cluster_id
    )


_NETWORKS_OF_POOLS = """
    SELECT p.cidr::text, s.cluster_id, k.name, s.name, o.category, o.id, o.name, '', '', ''
    FROM pools_poolcidr p JOIN pools_addressspace s ON s.id = p.space_id
    JOIN pools_cluster k ON k.id = s.cluster_id JOIN pools_pool o ON o.id = p.pool_id
"""
_PREFIXES = """
    SELECT cluster_prefix::text, id, name, '', 'prefix', NULL, '', '', '', '' FROM pools_cluster
    WHERE cluster_prefix IS NOT NULL
"""
_NETWORKS_OF_OBJECTS = """
    SELECT c.cidr::text, k.id, k.name, s.name, c.role, NULL, '', c.kind,
        CASE c.namespace WHEN '' THEN c.name ELSE c.namespace || '/' || c.name END, c.uid
    FROM pools_observedcidr c JOIN pools_addressspace s ON s.id = c.space_id
    JOIN pools_cluster k ON k.id = s.cluster_id
"""
# Single addresses of VM networks, perhaps 100,000, are named beside a CIDR that is typed, and compared with no other.
_ALL_NETWORKS = f"""
    {_NETWORKS_OF_POOLS} UNION ALL {_PREFIXES}
    UNION ALL {_NETWORKS_OF_OBJECTS} WHERE c.kind <> '{uses.VM_NETWORK}'
"""
_OVERLAPPING = f"""
    ({_NETWORKS_OF_POOLS} WHERE p.cidr && %(network)s AND o.id IS DISTINCT FROM %(pool)s
        AND coalesce(%(cluster)s, k.id) = k.id ORDER BY p.cidr LIMIT %(most)s)
    UNION ALL ({_PREFIXES} AND cluster_prefix && %(network)s AND coalesce(%(cluster)s, id) = id
        ORDER BY cluster_prefix LIMIT %(most)s)
    UNION ALL ({_NETWORKS_OF_OBJECTS} WHERE c.cidr && %(network)s
        AND coalesce(%(cluster)s, k.id) = k.id ORDER BY c.cidr LIMIT %(most)s)
"""
_OF_CLUSTER = f"SELECT * FROM ({_ALL_NETWORKS}) AS every (cidr, cluster) WHERE cluster = %s"  # noqa: S608


def read_networks(cluster_id: int | None = None) -> Iterator[Owned]:
    """Yield the networks of all clusters, or of one."""
    with connection.cursor() as cursor:
        if cluster_id is None:
            cursor.execute(_ALL_NETWORKS)
        else:
            cursor.execute(_OF_CLUSTER, [cluster_id])
        rows = cursor.fetchall()
    yield from map(_parse_row, sorted(rows, key=_by_name))


def _parse_row(row: tuple[Any, ...]) -> Owned:
    return _parse_network(row[0]), NetworkOwner(*row[1:])


# Many clusters have the same CIDRs; the broadcast address of a network is computed once, too.
_parse_network: Callable[[str], addresses.Network] = functools.lru_cache(maxsize=20_000)(ip_network)


def _by_name(row: tuple[Any, ...]) -> tuple[str, ...]:
    return str(row[2]), str(row[3]), str(row[6]), str(row[7]), str(row[8])
