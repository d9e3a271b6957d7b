"""The address plan as a tree by containment: the rows of one level, with what is free between them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_network, summarize_address_range
from typing import Any

from django.db.models import Count, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from pools.core import addresses, cidr_sets
from pools.core.observed.uses import Role
from pools.models import (
    AddressSpace,
    Cluster,
    Container,
    ObservedCIDR,
    PoolCIDR,
    ReservedRange,
)
from pools.models.observed import ROLE_LABELS
from pools.platform import database
from pools.register import overlaps as register_overlaps, usage
from pools.register.plan import free_space
from pools.register.plan.free_space import Scope
from pools.sql import statements

MOST = 100  # rows of a page
_FIRST = {4: "0.0.0.0/0", 6: "::/0"}
_LAST = {4: "255.255.255.255", 6: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}

_FIND_LEVEL = statements.read("pools/plan_level")
_MEASURE_COVERAGE = statements.read("pools/plan_coverage")
_COUNT_ADDRESSES = statements.read("pools/plan_addresses")
_GROUP_LENGTHS = {4: 24, 6: 64}  # of the CIDRs by which single addresses are grouped


@dataclass(frozen=True)
class AddressCount:
    """How many single addresses the objects of a cluster use in one role."""

    role: str
    cluster: str
    count: int

    @property
    def label(self) -> str:
        return str(ROLE_LABELS[Role(self.role)])


@dataclass
class PlanRow:
    """A CIDR of the plan with all objects that have it; without any it is free.

    A row that is `grouped` stands for the single addresses inside its CIDR, which nothing has as a whole.
    `share` is how much of it the CIDRs inside it cover, None without any. `usages` are those of
    the CIDRs of pools. `more_pool_cidrs` and `more_observed_cidrs` were left out, see Scope.most.
    """

    cidr: addresses.Network
    containers: list[Container] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)
    pool_cidrs: list[PoolCIDR] = field(default_factory=list)
    reserved_ranges: list[ReservedRange] = field(default_factory=list)
    observed_cidrs: list[ObservedCIDR] = field(default_factory=list)
    share: float | None = None
    usages: list[usage.Usage] = field(default_factory=list)
    has_ranges: bool = False
    grouped: bool = False
    more_pool_cidrs: int = 0
    more_observed_cidrs: int = 0
    address_counts: list[AddressCount] = field(default_factory=list)
    # With a CIDR of another address space, or it clashes with one of its own; and the other CIDRs.
    overlaps: bool = False
    overlapping: Sequence[addresses.Network] = ()

    @property
    def free(self) -> bool:
        return not (
            self.grouped
            or self.containers
            or self.clusters
            or self.pool_cidrs
            or self.reserved_ranges
            or self.observed_cidrs
        )

    @property
    def divisible(self) -> bool:
        """True for a container whose free parts can be used."""
        return bool(self.containers) and not (
            self.pool_cidrs or self.clusters or self.observed_cidrs
        )

    @property
    def expandable(self) -> bool:
        return self.share is not None or self.has_ranges or bool(self.containers)

    @property
    def isolated(self) -> bool:
        """True for what an isolated VM network has, which routes to nothing else."""
        return any(pool_cidr.space.name for pool_cidr in self.pool_cidrs)

    @property
    def utilization(self) -> float | None:
        """The used share: of the fullest pool, or what the CIDRs inside cover; None if unknown."""
        return max((counts.ratio for counts in self.usages), default=self.share)


@dataclass(frozen=True)
class PlanLevel:
    """A page of the rows of a level; `following` is the address behind which the next page begins, or ""."""

    rows: list[PlanRow]
    following: str = ""


@dataclass(frozen=True)
class LevelFilter:
    """What a level shows: a family, or the CIDRs of one cluster with the containers around them."""

    family: int | None = None
    cluster: Cluster | None = None


def read_level(
    scope: Scope,
    parent: addresses.Network | None = None,
    *,
    level_filter: LevelFilter = LevelFilter(),
    behind: addresses.Address | None = None,
    limit: int = MOST,
    group_addresses: bool = False,
) -> PlanLevel:
    """Return the CIDRs directly inside a parent, or the outermost ones, from behind an address on.

    Between the CIDRs inside a container are its free parts. Reserved ranges are inside of pools' CIDRs.
    With a cluster nothing is free: other clusters may have what looks like it. With `group_addresses` a /24
    or /64 with four or more single addresses and nothing else is one row.
    """
    shown = _narrow(scope, level_filter)
    parent_row = _describe(replace(scope, most=None), [parent])[0] if parent else None
    networks = _find_networks(
        shown,
        parent,
        level_filter.family,
        behind,
        limit + 1,
        narrowed=level_filter.cluster is not None,
        group_addresses=group_addresses
        and (parent is None or parent.prefixlen < _GROUP_LENGTHS[parent.version]),
    )
    ranges = _find_ranges(parent_row, behind, limit + 1)
    used = sorted({*networks, *ranges}, key=cidr_sets.sort_key)
    if (
        parent_row
        and parent_row.divisible
        and level_filter.cluster is None
        and not free_space.is_taken(parent_row.cidr, scope)
    ):
        used = list(
            _with_free_parts(parent_row.cidr, used, behind, complete=len(networks) <= limit)
        )
    page = used[:limit]
    following = str(page[-1].broadcast_address) if len(used) > limit else ""
    rows = _describe(scope, page, shown)
    for row in rows:
        row.reserved_ranges = ranges.get(row.cidr, [])
        row.grouped = networks.get(row.cidr, False)
    if level_filter.cluster is not None:
        rows = _of_cluster(shown, level_filter.cluster, rows)
    _measure(scope, rows)
    _count_addresses(shown, [row for row in rows if row.grouped])
    return PlanLevel(rows, following)


def find_path(scope: Scope, network: addresses.Network) -> list[PlanRow]:
    """Return the CIDRs of the plan that contain a network or equal it, the widest first."""
    around = [network.supernet(new_prefix=length) for length in range(1, network.prefixlen + 1)]
    rows = [row for row in _describe(scope, around) if not row.free]
    _measure(scope, rows)
    return rows


def find_names(scope: Scope, text: str) -> list[PlanRow]:
    """Return the CIDRs of containers, pools, clusters and their objects whose name contains a text."""
    containers = Container.objects.filter(scope.containers).filter(
        Q(name__icontains=text) | Q(description__icontains=text)
    )
    pool_cidrs = PoolCIDR.objects.filter(scope.rows).filter(
        Q(pool__name__icontains=text) | Q(pool__cluster__name__icontains=text)
    )
    clusters = Cluster.objects.filter(scope.clusters, name__icontains=text)
    clusters = clusters.exclude(cluster_prefix=None)
    observed = ObservedCIDR.objects.filter(scope.rows, name__icontains=text)
    found = [
        *containers.values_list("cidr", flat=True)[:MOST],
        *pool_cidrs.order_by("cidr").values_list("cidr", flat=True)[:MOST],
        *clusters.values_list("cluster_prefix", flat=True)[:MOST],
        *observed.order_by("cidr").values_list("cidr", flat=True)[:MOST],
    ]
    rows = _describe(scope, sorted(set(found), key=cidr_sets.sort_key)[:MOST])
    _measure(scope, rows)
    return rows


def _narrow(scope: Scope, level_filter: LevelFilter) -> Scope:
    if level_filter.cluster is None:
        return scope
    own = AddressSpace.objects.filter(cluster=level_filter.cluster)
    if not scope.everywhere:
        own = own.filter(pk__in=scope.spaces)
    return replace(scope, spaces=tuple(own.values_list("pk", flat=True)), everywhere=False)


def _find_networks(
    scope: Scope,
    parent: addresses.Network | None,
    family: int | None,
    behind: addresses.Address | None,
    most: int,
    *,
    narrowed: bool,
    group_addresses: bool,
) -> dict[addresses.Network, bool]:
    """Return the outermost CIDRs of a level, each with whether it stands for the single addresses in it."""
    first, last = _FIRST[family or 4], _LAST[family or 6]
    if parent is not None:
        first, last = str(parent), str(parent.broadcast_address)
    values = {
        "behind": str(behind) if behind else first,
        "through": last,
        "most": most,
        "group_lengths": [_GROUP_LENGTHS[4], _GROUP_LENGTHS[6]] if group_addresses else None,
    }

    def find(searched: Scope) -> dict[addresses.Network, bool]:
        rows = database.rows(_FIND_LEVEL, values | searched.values, prepare=False)
        return {ip_network(text): grouped for text, grouped in rows}

    if not (narrowed and scope.fleet):
        return find(scope)
    # Few of all CIDRs are in the spaces of one cluster: one lookup for both would read the others.
    containers, own = find(replace(scope, spaces=())), find(replace(scope, fleet=False))
    outermost = _outermost([*containers], [*own], most)
    # A container inside a group of addresses is shown when the group is opened.
    return {network: own.get(network, False) for network in outermost}


def _outermost(
    one: list[addresses.Network], other: list[addresses.Network], most: int
) -> list[addresses.Network]:
    """Return the outermost of two levels, without what lies behind the end of one that has more."""
    ends = [level[-1] for level in (one, other) if len(level) == most]
    end = min(map(cidr_sets.sort_key, ends), default=None)
    merged: list[addresses.Network] = []
    for network in sorted({*one, *other}, key=cidr_sets.sort_key):
        if end is not None and cidr_sets.sort_key(network) > end:
            break
        if not merged or not cidr_sets.contains(merged[-1], network):
            merged.append(network)
    return merged[:most]


def _find_ranges(
    parent: PlanRow | None, behind: addresses.Address | None, most: int
) -> dict[addresses.Network, list[ReservedRange]]:
    """Return the reserved ranges inside a pool's CIDR that are CIDRs."""
    ranges: dict[addresses.Network, list[ReservedRange]] = defaultdict(list)
    if parent is None or not parent.pool_cidrs:
        return ranges
    rows = ReservedRange.objects.filter(pool_cidr__in=parent.pool_cidrs)
    if behind is not None:
        rows = rows.filter(first__gt=str(behind))
    for row in rows.select_related("pool__cluster", "pool__space__cluster").order_by("first")[
        :most
    ]:
        networks = list(summarize_address_range(row.first, row.last))
        if len(networks) == 1 and networks[0] != parent.cidr:
            ranges[networks[0]].append(row)
    return ranges


def _with_free_parts(
    parent: addresses.Network,
    networks: list[addresses.Network],
    behind: addresses.Address | None,
    *,
    complete: bool,
) -> Iterator[addresses.Network]:
    """Yield the networks of a level and the free prefixes between them, in address order."""
    position = int(behind) + 1 if behind else int(parent.network_address)
    for network in networks:
        first = int(network.network_address)
        if position < first:
            yield from cidr_sets.split((position, first - 1), parent.version)
        yield network
        position = int(network.broadcast_address) + 1
    last = int(parent.broadcast_address)
    if complete and position <= last:
        yield from cidr_sets.split((position, last), parent.version)


def _describe(
    scope: Scope, networks: Iterable[addresses.Network], shown: Scope | None = None
) -> list[PlanRow]:
    """Return rows of the networks with the objects that have them, by a few queries.

    Those of other address spaces than those of `shown` are left out, but not containers.
    """
    shown = shown or scope
    rows = {network: PlanRow(network) for network in networks}
    texts = [str(network) for network in rows]
    containers = Container.objects.filter(scope.containers, cidr__in=texts)
    for container in containers.select_related("space__cluster"):
        rows[container.cidr].containers.append(container)
    pool_cidrs = PoolCIDR.objects.filter(shown.rows, cidr__in=texts)
    pool_cidrs = pool_cidrs.select_related("pool__cluster", "space__cluster")
    for pool_cidr in _first(pool_cidrs, scope.most, "pk"):
        row = rows[pool_cidr.cidr]
        row.pool_cidrs.append(pool_cidr)
        row.more_pool_cidrs = pool_cidr.number - len(row.pool_cidrs)
    observed_cidrs = ObservedCIDR.objects.filter(shown.rows, cidr__in=texts)
    for observed in _first(
        observed_cidrs.select_related("space__cluster"), scope.most, "space", "kind", "name"
    ):
        row = rows[observed.cidr]
        row.observed_cidrs.append(observed)
        row.more_observed_cidrs = observed.number - len(row.observed_cidrs)
    # The prefix belongs to the cluster's own space, not to those of its VM networks.
    own = Q() if shown.everywhere else Q(spaces__in=shown.spaces, spaces__name=AddressSpace.OWN)
    clusters = Cluster.objects.filter(own, cluster_prefix__in=texts)
    for cluster in clusters:
        if cluster.cluster_prefix is not None:
            rows[cluster.cluster_prefix].clusters.append(cluster)
    return list(rows.values())


def _first(rows: QuerySet[Any], most: int | None, *order: str) -> QuerySet[Any]:
    """Return the first `most` rows of each CIDR, each with the number of all that have it."""
    rows = rows.annotate(number=Window(Count("*"), partition_by="cidr"))
    if most is not None:
        place = Window(RowNumber(), partition_by="cidr", order_by=order)
        rows = rows.annotate(place=place).filter(place__lte=most)
    return rows.order_by(*order)


def _of_cluster(scope: Scope, cluster: Cluster, rows: list[PlanRow]) -> list[PlanRow]:
    """Return the rows that the cluster has, or that contain something that it has."""
    around = _coverage(replace(scope, fleet=False), [row.cidr for row in rows])
    for row in rows:
        row.pool_cidrs = [cidr for cidr in row.pool_cidrs if cidr.pool.cluster_id == cluster.pk]
        row.clusters = [owner for owner in row.clusters if owner.pk == cluster.pk]
        row.observed_cidrs = [
            observed for observed in row.observed_cidrs if observed.cluster == cluster
        ]
    return [
        row
        for row in rows
        if row.cidr in around
        or row.pool_cidrs
        or row.clusters
        or row.reserved_ranges
        or row.observed_cidrs
        or any(container.cluster == cluster for container in row.containers)
    ]


def _measure(scope: Scope, rows: list[PlanRow]) -> None:
    """Add the shares, the usages, the overlaps and whether there are reserved ranges, by a few queries."""
    overlapping = register_overlaps.overlapping_cidrs() if rows else {}
    shares = _coverage(scope, [row.cidr for row in rows if not row.free])
    pool_cidrs = [pool_cidr for row in rows for pool_cidr in row.pool_cidrs]
    usages = usage.usage_by_cidr(pool_cidrs)
    with_ranges = set(
        ReservedRange.objects.filter(pool_cidr__in=pool_cidrs).values_list("pool_cidr", flat=True)
    )
    for row in rows:
        row.share = shares.get(row.cidr)
        row.overlaps = not row.free and row.cidr in overlapping
        row.overlapping = overlapping[row.cidr] if row.overlaps else ()
        row.has_ranges = any(pool_cidr.pk in with_ranges for pool_cidr in row.pool_cidrs)
        row.usages = [usages[pool_cidr.pk] for pool_cidr in row.pool_cidrs]


def _count_addresses(scope: Scope, rows: list[PlanRow]) -> None:
    """Add what uses the single addresses that rows stand for."""
    by_cidr = {str(row.cidr): row for row in rows}
    values = {"parents": list(by_cidr), "spaces": scope.values["spaces"]}
    for text, *count in database.rows(_COUNT_ADDRESSES, values, prepare=False) if rows else ():
        by_cidr[text].address_counts.append(AddressCount(*count))


def _coverage(scope: Scope, networks: list[addresses.Network]) -> dict[addresses.Network, float]:
    """Return the share of each network that the CIDRs inside it cover; those without any are left out."""
    values = {"parents": [str(network) for network in networks], **scope.values}
    rows = database.rows(_MEASURE_COVERAGE, values, prepare=False)
    return {ip_network(text): share for text, share in rows if share is not None}
