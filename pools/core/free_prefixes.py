"""Free parts of a CIDR: what no other CIDR in it covers, as aligned prefixes.

Gaps are ranges of addresses as integers, both ends included. Every function is O(1) for each gap or prefix.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from pools.core import addresses

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
