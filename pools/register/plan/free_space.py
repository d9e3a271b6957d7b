"""The part of the address plan that somebody looks at, free parts of its containers, free blocks near an address."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from pools.core import addresses, blocks, cidr_sets, errors
from pools.models import LIVE, AddressSpace, Block, Cluster, Container, ObservedCIDR, Pool, PoolCIDR
from pools.platform import database
from pools.register.allocator import window
from pools.sql import statements


@dataclass(frozen=True)
class Scope:
    """The address spaces whose CIDRs count, and whether containers of the fleet do.

    Of the CIDRs of pools, or of objects, that are equal, `most` are read with what has them; None: all.
    """

    spaces: tuple[int, ...]
    fleet: bool
    space: AddressSpace | None = None  # None: the fleet
    most: int | None = None
    everywhere: bool = False  # all spaces, thousands: `spaces` is empty, and no filter names them

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of statements: `spaces`, null for all of them, and `fleet`."""
        return {"spaces": None if self.everywhere else list(self.spaces), "fleet": self.fleet}

    @property
    def rows(self) -> Q:
        """The filter for what the address spaces have."""
        return Q() if self.everywhere else Q(space__in=self.spaces)

    @property
    def clusters(self) -> Q:
        """The filter for clusters that have one of the address spaces."""
        return Q() if self.everywhere else Q(spaces__in=self.spaces)

    @property
    def containers(self) -> Q:
        """The filter for containers of the scope."""
        if self.everywhere:
            return Q()
        condition = Q(space__in=self.spaces)
        return condition | Q(space=None) if self.fleet else condition


def fleet_scope() -> Scope:
    """Return the scope of the fleet: all address spaces, so that nothing that a VM network has is free."""
    return Scope((), fleet=True, everywhere=True)


def scope_of_space(space: AddressSpace | None) -> Scope:
    """Return the scope of an address space; None is the fleet.

    A cluster's own address space has its VM networks besides, of which nothing is free for its pools.
    """
    if space is None:
        return fleet_scope()
    spaces = AddressSpace.objects.filter(pk=space.pk)
    if space.name == AddressSpace.OWN:
        spaces = AddressSpace.objects.filter(cluster=space.cluster_id)
    return Scope(tuple(spaces.values_list("pk", flat=True)), fleet=False, space=space)


def scope_of(container: Container) -> Scope:
    """Return the scope in which a container's CIDRs are free or not."""
    return scope_of_space(container.space)


MOST = 100  # prefixes in an answer

_FIND_GAPS = statements.read("pools/plan_gaps")


class Order(enum.Enum):
    """The order in which free prefixes are offered."""

    FIRST_FIT = "first_fit"  # by address
    BEST_FIT = "best_fit"  # from the smallest free parts first


def find_gaps(parent: addresses.Network, scope: Scope) -> Iterator[cidr_sets.Gap]:
    """Yield the ranges of addresses inside a CIDR that no CIDR of the plan inside it covers.

    Nothing is free in a CIDR that itself is a cluster's prefix or planned for one address space, nor inside of
    what a pool, a VM network or an object of a cluster has.
    """
    if not is_taken(parent, scope):
        yield from _find_gaps(parent, scope)


def _find_gaps(parent: addresses.Network, scope: Scope) -> Iterator[cidr_sets.Gap]:
    values = {"parent": str(parent), **scope.values}
    for before, after, _ in database.rows(_FIND_GAPS, values, prepare=False):
        first = int(ip_address(before)) + 1 if before else int(parent.network_address)
        last = int(ip_address(after)) - 1 if after else int(parent.broadcast_address)
        if first <= last:
            yield first, last


def is_taken(network: addresses.Network, scope: Scope) -> bool:
    """Return True if nothing inside a CIDR is free, whatever is inside it."""
    text = str(network)
    in_spaces = Container.objects.filter(scope.rows, cidr=text, space__isnull=False)
    return (
        _is_used(network, scope)
        or Cluster.objects.filter(scope.clusters, cluster_prefix=text).exists()
        or (scope.fleet and in_spaces.exists())
    )


def _is_used(network: addresses.Network, scope: Scope) -> bool:
    """Return True if a pool, a VM network or an object of a cluster has all of a CIDR."""
    used = scope.rows & Q(cidr__net_contains_or_equals=str(network))
    return any(model.objects.filter(used).exists() for model in (PoolCIDR, ObservedCIDR))


def find_prefixes(
    parent: addresses.Network,
    length: int,
    scope: Scope,
    *,
    order: Order = Order.FIRST_FIT,
    limit: int = MOST,
) -> list[addresses.Network]:
    """Return free prefixes of a length inside a CIDR. Raises InvalidInput (prefix_length)."""
    check_length(parent, length)
    fit = cidr_sets.first_fit if order is Order.FIRST_FIT else cidr_sets.best_fit
    return fit(find_gaps(parent, scope), parent.version, length, limit)


def check_length(parent: addresses.Network, length: int) -> None:
    """Raise InvalidInput unless prefixes of the length fit into a CIDR."""
    if not parent.prefixlen < length <= parent.max_prefixlen:
        message = f"the prefix length must be {parent.prefixlen + 1} to {parent.max_prefixlen} in {parent}"
        if parent.prefixlen == parent.max_prefixlen:
            message = f"{parent} is a single address, which has no parts"
        raise errors.InvalidInput.for_field("prefix_length", "prefix_length", message, length)


OFFERED = 6  # prefixes that a form offers


def offer_prefixes(
    length: int, space: AddressSpace | None, *, limit: int = OFFERED
) -> list[tuple[addresses.Network, str]]:
    """Return the first free prefixes of a length for an address space, each with the name of what contains it.

    They are parts of the space's containers, then of its cluster's prefix, then of the fleet's containers; None
    is the fleet. Of the first `MOST` containers of each kind those without another cluster's plan are searched.
    """
    offers: dict[addresses.Network, str] = {}
    for parent, name, scope in _parents(space, length):
        gaps = () if _is_used(parent, scope) else _find_gaps(parent, scope)
        for prefix in cidr_sets.first_fit(gaps, parent.version, length, limit):
            offers.setdefault(prefix, name)
        if len(offers) >= limit:
            break
    return list(offers.items())[:limit]


def has_parents(length: int, space: AddressSpace | None) -> bool:
    """Return True if there is a container, or a prefix of the cluster, in which such a prefix could be free."""
    return next(_parents(space, length), None) is not None


def _parents(
    space: AddressSpace | None, length: int
) -> Iterator[tuple[addresses.Network, str, Scope]]:
    """Yield the CIDRs that `offer_prefixes` searches, with their names and scopes."""
    for parent, name, scope in _containers(space):
        if parent.prefixlen < length <= parent.max_prefixlen:
            yield parent, name, scope


def _containers(space: AddressSpace | None) -> Iterator[tuple[addresses.Network, str, Scope]]:
    containers = Container.objects.order_by("cidr")
    if space is not None:
        own, cluster = scope_of_space(space), space.cluster
        for container in containers.filter(space=space)[:MOST]:
            yield container.cidr, container.name or str(container.cidr), own
        if space.name == AddressSpace.OWN and cluster.cluster_prefix is not None:
            yield cluster.cluster_prefix, f"{cluster}: {cluster.cluster_prefix}", own
    fleet = fleet_scope()
    prefixes = Cluster.objects.filter(cluster_prefix__net_contains_or_equals=OuterRef("cidr"))
    planned = Container.objects.filter(cidr__net_contains_or_equals=OuterRef("cidr"))
    planned = planned.exclude(space=None)
    if space is not None:
        prefixes, planned = prefixes.exclude(pk=space.cluster_id), planned.exclude(space=space)
    rows = containers.filter(space=None).annotate(planned=Exists(prefixes) | Exists(planned))
    for container in rows[:MOST]:
        if not container.planned:
            yield container.cidr, container.name or str(container.cidr), fleet


def next_free_block(pool: Pool, family: int | None = None) -> addresses.Network | None:
    """Return the lowest block of a pool that can be allocated, of the first family that has one; None if none is left."""
    cidrs = PoolCIDR.objects.filter(pool=pool, orphaned_at=None, pending="").select_related("pool")
    ready = Block.objects.filter(
        pool=pool, withheld=False, available_from__lte=Now(), space=pool.space_id
    )
    for version in (family,) if family else (4, 6):
        free: list[addresses.Network] = [
            window.layout(cidr).block_at(int(span.first))
            for cidr in cidrs.filter(cidr__family=version)
            if (span := cidr.free_spans.order_by("first").first()) is not None
        ]
        free += [row.cidr for row in ready.filter(family=version).order_by("cidr")[:1]]
        if free:
            return min(free, key=cidr_sets.sort_key)
    return None


REACH = 128  # blocks searched on each side


def nearest_free_blocks(
    cidr: PoolCIDR, address: addresses.Address, count: int
) -> list[addresses.Network]:
    """Return up to `count` free blocks of the CIDR that are nearest to the address, in order."""
    if cidr.closed:  # nothing of it is allocated
        return []
    grid = window.layout(cidr)
    center = grid.index_of_address(address)
    first, last = max(0, center - REACH), min(grid.count - 1, center + REACH)
    ranges = [
        addresses.AddressRange(reserved_range.first, reserved_range.last)
        for reserved_range in cidr.reserved_ranges.all()
    ]
    used = Block.objects.filter(
        space=cidr.space_id,
        cidr__gte=str(grid.block_at(first)),
        cidr__lte=str(grid.block_at(last)),
        state__in=LIVE,
    )
    holes = [
        blocks.Span(index, index)
        for index in map(grid.index_of, used.values_list("cidr", flat=True))
    ]
    searched = [blocks.Span(first, last)]
    outside = blocks.subtract([blocks.Span(0, grid.count - 1)], searched)
    free = blocks.subtract(grid.allocatable(ranges), [*outside, *holes])
    indexes = (index for span in free for index in range(span.first, span.last + 1))
    nearest = sorted(indexes, key=lambda index: (abs(index - center), index))[:count]
    return [grid.block_at(index) for index in sorted(nearest)]
