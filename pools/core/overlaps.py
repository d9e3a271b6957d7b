"""Which networks of a list lie inside one another, in one pass over their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from pools.core import addresses

Owner = TypeVar("Owner")
Owned = tuple[addresses.Network, Owner]


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


def _order(network: addresses.Network) -> tuple[int, int, int]:
    return network.version, int(network.network_address), network.prefixlen


def holds(outer: addresses.Network, inner: addresses.Network) -> bool:
    """Whether the inner network lies in the outer one, or equals it."""
    return inner.network_address in outer and inner.prefixlen >= outer.prefixlen
