"""Free parts of a CIDR: what no other CIDR in it covers, as aligned prefixes.

Gaps are ranges of addresses as integers, both ends included. Every function is O(1) for each gap or prefix.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network

from pools.core import addresses

Gap = tuple[int, int]


def split(gap: Gap, family: int) -> Iterator[addresses.Network]:
    """Yield the fewest aligned prefixes that cover a gap, in address order."""
    first, last = gap
    bits = 32 if family == 4 else 128
    while first <= last:
        aligned = (first & -first).bit_length() - 1 if first else bits
        fitting = (last - first + 1).bit_length() - 1
        shift = min(aligned, fitting)
        yield _network(family, first, bits - shift)
        first += 1 << shift


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
    step = 1 << ((32 if family == 4 else 128) - length)
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
