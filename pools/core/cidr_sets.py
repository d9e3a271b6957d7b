"""Sets of CIDRs: overlaps of networks, found in one scan of their sorted order, and the free parts of a CIDR.

A free part is what no other CIDR in it covers, as aligned prefixes. Gaps are ranges of addresses as integers, both
ends included. Every function on gaps is O(1) for each gap or prefix.
"""

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
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


Gap = tuple[int, int]
_BITS = {4: 32, 6: 128}


def split(gap: Gap, family: int) -> Iterator[addresses.Network]:
    """Yield the fewest aligned prefixes that cover a gap, in address order."""
    for first, shift in _pieces(gap, _BITS[family]):
        yield _network(family, first, _BITS[family] - shift)


def _pieces(gap: Gap, bits: int) -> Iterator[tuple[int, int]]:
    """Yield the first address and the size, as a power of two, of the prefixes of `split`."""
    first, last = gap
    while first <= last:
        aligned = (first & -first).bit_length() - 1 if first else bits
        fitting = (last - first + 1).bit_length() - 1
        shift = min(aligned, fitting)
        yield first, shift
        first += 1 << shift


@dataclass(frozen=True)
class Fit:
    """How many aligned prefixes of a length are free, and the first one by address; None if none is."""

    length: int
    count: int
    first: addresses.Network | None


@dataclass(frozen=True)
class FreeSummary:
    """The number of free parts, the largest one, and what fits into them for each length."""

    parts: int
    largest: addresses.Network | None
    fits: list[Fit]


def summarize(gaps: Iterable[Gap], family: int, lengths: Sequence[int]) -> FreeSummary:
    """Return what is free in some gaps. Counts without making the prefixes: a level may have thousands."""
    bits = _BITS[family]
    chosen = list(gaps)
    pieces = [piece for gap in chosen for piece in _pieces(gap, bits)]
    largest = max(pieces, key=lambda piece: piece[1], default=None)
    return FreeSummary(
        len(pieces),
        _network(family, largest[0], bits - largest[1]) if largest else None,
        [_fit(chosen, family, length) for length in lengths],
    )


def _fit(gaps: Iterable[Gap], family: int, length: int) -> Fit:
    step = 1 << (_BITS[family] - length)
    count, first = 0, None
    for low, high in gaps:
        start = -(-low // step) * step
        if (number := (high + 1 - start) // step) > 0:
            count += number
            first = start if first is None else first
    return Fit(length, count, None if first is None else _network(family, first, length))


def first_fit(
    found_gaps: Iterable[Gap], family: int, length: int, limit: int
) -> list[addresses.Network]:
    """Return the first free prefixes of a length in address order, at most `limit`."""
    prefixes = (
        prefix
        for gap in found_gaps
        for part in split(gap, family)
        if part.prefixlen <= length
        for prefix in _divide(part, length, limit)
    )
    return list(itertools.islice(prefixes, limit))


def best_fit(
    found_gaps: Iterable[Gap], family: int, length: int, limit: int
) -> list[addresses.Network]:
    """Return free prefixes of a length from the smallest free parts first, so that large ones stay whole."""
    step = 1 << (_BITS[family] - length)
    parts = (
        part
        for gap in found_gaps
        if -(-gap[0] // step) * step + step - 1 <= gap[1]  # it has an aligned prefix of the length
        for part in split(gap, family)
        if part.prefixlen <= length
    )
    smallest = heapq.nsmallest(
        limit, parts, key=lambda part: (-part.prefixlen, int(part.network_address))
    )
    prefixes = (prefix for part in smallest for prefix in _divide(part, length, limit))
    return list(itertools.islice(prefixes, limit))


def _divide(part: addresses.Network, length: int, limit: int) -> Iterator[addresses.Network]:
    """Yield the first `limit` prefixes of a length in a free part."""
    step = 1 << (part.max_prefixlen - length)
    first = int(part.network_address)
    for number in range(min(limit, 1 << (length - part.prefixlen))):
        yield _network(part.version, first + number * step, length)


def _network(family: int, first: int, length: int) -> addresses.Network:
    return IPv4Network((first, length)) if family == 4 else IPv6Network((first, length))
