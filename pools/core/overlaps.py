"""Which networks lie inside one another, in one pass over their order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from pools.core import addresses

Owner = TypeVar("Owner")
Owned = tuple[addresses.Network, Owner]
_MANY = object()  # more than one space


def nested(networks: Iterable[Owned[Owner]]) -> Iterator[tuple[Owned[Owner], Owned[Owner]]]:
    """Every pair of which the second lies in the first, or is equal to it.

    Networks overlap only by nesting, so that in order of their addresses, the wider ones first,
    those that hold a network are on a stack. O(n log n) and the pairs that there are.
    """
    around: list[Owned[Owner]] = []
    for network, owner in sorted(networks, key=lambda pair: _order(pair[0])):
        while around and not holds(around[-1][0], network):
            around.pop()
        for outer in around:
            yield outer, (network, owner)
        around.append((network, owner))


def across(
    networks: Iterable[Owned[Owner]], *, space: Callable[[Owner], Hashable]
) -> Iterator[list[Owned[Owner]]]:
    """The networks that overlap one of another space, in groups: the first holds all others.

    What overlaps only networks of its own space is left out. In order of addresses, O(n log n)
    however many pairs there are: a thousand equal networks are one group.
    """
    owners: dict[addresses.Network, list[Owner]] = {}
    for network, owner in networks:
        owners.setdefault(network, []).append(owner)
    group: list[addresses.Network] = []
    for network in sorted(owners, key=_order):
        if group and not holds(group[0], network):
            yield from _across(group, owners, space)
            group = []
        group.append(network)
    yield from _across(group, owners, space)


def _across(
    group: list[addresses.Network],
    owners: dict[addresses.Network, list[Owner]],
    space: Callable[[Owner], Hashable],
) -> Iterator[list[Owned[Owner]]]:
    """The members of a group with another space in themselves, around them or inside of them."""
    spaces: list[object] = [_joined(map(space, owners[network])) for network in group]
    parents: list[int] = []
    for number, network in enumerate(group):
        parent = number - 1
        while parent >= 0 and not holds(group[parent], network):
            parent = parents[parent]
        parents.append(parent)
    above, below = list(spaces), list(spaces)
    for number, parent in enumerate(parents):
        if parent >= 0:
            above[number] = _joined((above[parent], spaces[number]))
    for number, parent in reversed(list(enumerate(parents))):
        if parent >= 0:
            below[parent] = _joined((below[parent], below[number]))
    members = [
        (network, owner)
        for network, up, down in zip(group, above, below, strict=True)
        if _joined((up, down)) is _MANY
        for owner in owners[network]
    ]
    if members:
        yield members


def _joined(spaces: Iterable[object]) -> object:
    """The one space that all of them are, or that they are many."""
    different = set(spaces)
    return different.pop() if len(different) == 1 else _MANY


def _order(network: addresses.Network) -> tuple[int, int, int]:
    return network.version, int(network.network_address), network.prefixlen


def holds(outer: addresses.Network, inner: addresses.Network) -> bool:
    """Whether the inner network lies in the outer one, or equals it."""
    return inner.network_address in outer and inner.prefixlen >= outer.prefixlen
