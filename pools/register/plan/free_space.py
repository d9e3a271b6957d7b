"""Free parts of a container: what no other CIDR of its scope covers."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

from pools.core import addresses, errors, free_prefixes
from pools.models import Cluster, Container, ObservedCIDR, PoolCIDR
from pools.platform import database
from pools.register.plan.scopes import Scope
from pools.sql import statements

MOST = 100  # prefixes in an answer

_FIND_GAPS = statements.read("pools/plan_gaps")


class Order(enum.Enum):
    """The order in which free prefixes are offered."""

    FIRST_FIT = "first_fit"  # by address
    BEST_FIT = "best_fit"  # from the smallest free parts first


def find_gaps(parent: addresses.Network, scope: Scope) -> Iterator[free_prefixes.Gap]:
    """Yield the ranges of addresses inside a CIDR that no CIDR of the plan inside it covers.

    Nothing is free in a CIDR that itself is a cluster's prefix or planned for one address space, nor inside of
    what a pool, a VM network or an object of a cluster has.
    """
    if is_taken(parent, scope):
        return
    values = {"parent": str(parent), "spaces": list(scope.spaces), "fleet": scope.fleet}
    for before, after, _ in database.rows(_FIND_GAPS, values, prepare=False):
        first = int(ip_address(before)) + 1 if before else int(parent.network_address)
        last = int(ip_address(after)) - 1 if after else int(parent.broadcast_address)
        if first <= last:
            yield first, last


def is_taken(network: addresses.Network, scope: Scope) -> bool:
    """Return True if nothing inside a CIDR is free, whatever is inside it."""
    text = str(network)
    used: dict[str, Any] = {"cidr__net_contains_or_equals": text, "space__in": scope.spaces}
    return (
        PoolCIDR.objects.filter(**used).exists()
        or ObservedCIDR.objects.filter(**used).exists()
        or Cluster.objects.filter(cluster_prefix=text, spaces__in=scope.spaces).exists()
        or (scope.fleet and Container.objects.filter(cidr=text, space__in=scope.spaces).exists())
    )


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
    fit = free_prefixes.first_fit if order is Order.FIRST_FIT else free_prefixes.best_fit
    return fit(find_gaps(parent, scope), parent.version, length, limit)


def check_length(parent: addresses.Network, length: int) -> None:
    """Raise InvalidInput unless prefixes of the length fit into a CIDR."""
    if not parent.prefixlen < length <= parent.max_prefixlen:
        message = f"the prefix length must be {parent.prefixlen + 1} to {parent.max_prefixlen} in {parent}"
        if parent.prefixlen == parent.max_prefixlen:
            message = f"{parent} is a single address, which has no parts"
        raise errors.InvalidInput.for_field("prefix_length", "prefix_length", message, length)
