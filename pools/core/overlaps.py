"""Overlaps of networks, found in one scan of their sorted order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from pools.core import addresses

Owner = TypeVar("Owner")
Owned = tuple[addresses.Network, Owner]
_MANY = object()  # more than one space


def nested_pairs(networks: Iterable[Owned[Owner]]) -> Iterator[tuple[Owned[Owner], Owned[Owner]]]:
    """Yield every pair whose second network is inside the first or equal to it.

    Networks overlap only by nesting: in address order with wider networks first, the networks around
    the current one are a stack. O(n log n) plus the number of pairs.
    """
    around: list[Owned[Owner]] = []
    for network, owner in sorted(networks, key=lambda pair: sort_key(pair[0])):
        while around and not contains(around[-1][0], network):
            around.pop()
        for outer in around:
            yield outer, (network, owner)
        around.append((network, owner))


def overlap_groups(
    networks: Iterable[Owned[Owner]], *, space: Callable[[Owner], Hashable]
) -> Iterator[list[Owned[Owner]]]:
    """Yield groups of networks that overlap networks of another space; the first contains the others.

    Networks that overlap only networks of their own space are omitted. Groups are in address order.
    O(n log n), whatever the number of pairs: a thousand equal networks are one group.
    """
    owners: dict[addresses.Network, list[Owner]] = {}
    for network, owner in networks:
        owners.setdefault(network, []).append(owner)
    group: list[addresses.Network] = []
    for network in sorted(owners, key=sort_key):
        if group and not contains(group[0], network):
            yield from _members_with_overlap(group, owners, space)
            group = []
        group.append(network)
    yield from _members_with_overlap(group, owners, space)


def _members_with_overlap(
    group: list[addresses.Network],
    owners: dict[addresses.Network, list[Owner]],
    space: Callable[[Owner], Hashable],
) -> Iterator[list[Owned[Owner]]]:
    """Yield the members of a group that equal, contain or lie in a network of another space."""
    spaces: list[object] = [_common_space(map(space, owners[network])) for network in group]
    parents: list[int] = []
    for number, network in enumerate(group):
        parent = number - 1
        while parent >= 0 and not contains(group[parent], network):
            parent = parents[parent]
        parents.append(parent)
    above, below = list(spaces), list(spaces)
    for number, parent in enumerate(parents):
        if parent >= 0:
            above[number] = _common_space((above[parent], spaces[number]))
    for number, parent in reversed(list(enumerate(parents))):
        if parent >= 0:
            below[parent] = _common_space((below[parent], below[number]))
    members = [
        (network, owner)
        for network, up, down in zip(group, above, below, strict=True)
        if _common_space((up, down)) is _MANY
        for owner in owners[network]
    ]
    if members:
        yield members


def _common_space(spaces: Iterable[object]) -> object:
    """Return the common space of all, or `_MANY`."""
    different = set(spaces)
    return different.pop() if len(different) == 1 else _MANY


def sort_key(network: addresses.Network) -> tuple[int, int, int]:
    return network.version, int(network.network_address), network.prefixlen


def contains(outer: addresses.Network, inner: addresses.Network) -> bool:
    """Return True if the inner network is inside the outer one or equals it."""
    return inner.network_address in outer and inner.prefixlen >= outer.prefixlen
