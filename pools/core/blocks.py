"""Block arithmetic: which blocks a CIDR has, and which of them can be allocated.

Beside it: a set of block indexes, stored as spans: 2^64 blocks cost as little as ten.

A block is identified by its index in its CIDR, from 0. A set of blocks is a list of index spans, so
that an IPv6 /16 costs no more than an IPv4 /30. Every function is O(n log n) in the number of spans
or ranges; only `cidr_strings` and `blocks` create one value for each block of the requested span.
"""

import socket
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from pools.core import addresses, errors

MANY_BLOCKS = 1 << 31
_LAST_IPV6 = (1 << 128) - 1
LONGEST_CLUSTER_PREFIX = 64  # rule `cluster-prefix-is-divided`


@dataclass(frozen=True, order=True)
class Span:
    """The block indexes `first` to `last`, both included; never empty."""

    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def merge(spans: Iterable[Span]) -> list[Span]:
    """Return the same indexes in the fewest spans, in order."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = Span(merged[-1].first, max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return merged


def subtract(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """Return the indexes of `spans` that are in none of `holes`, merged and in order."""
    remaining: list[Span] = []
    gaps = merge(holes)
    position = 0
    for span in merge(spans):
        first = span.first
        while position < len(gaps) and gaps[position].last < first:
            position += 1
        # The last gap that touches this span may reach into the next one, so it is not skipped.
        for gap in _touching_gaps(gaps, position, span.last):
            if gap.first > first:
                remaining.append(Span(first, gap.first - 1))
            first = gap.last + 1
        if first <= span.last:
            remaining.append(Span(first, span.last))
    return remaining


def total(spans: Iterable[Span]) -> int:
    """Return the number of distinct indexes in the spans."""
    return sum(span.size for span in merge(spans))


def _touching_gaps(gaps: list[Span], position: int, last: int) -> Iterator[Span]:
    while position < len(gaps) and gaps[position].first <= last:
        yield gaps[position]
        position += 1


@dataclass(frozen=True)
class Layout:
    """The blocks of one CIDR, all of `mask_size`.

    The constructor raises InvalidInput `mask_size` if the CIDR cannot have such blocks. `allow_first`
    and `allow_last` are Cilium's allowFirstIP and allowLastIP; they affect host-sized blocks only.
    """

    cidr: addresses.Network
    mask_size: int
    allow_first: bool = False
    allow_last: bool = False

    def __post_init__(self) -> None:
        check_mask_size(self.mask_size, self.cidr)

    @property
    def count(self) -> int:
        """The number of blocks, including those that cannot be allocated."""
        return 1 << (self.mask_size - self.cidr.prefixlen)

    @property
    def block_size(self) -> int:
        """The number of addresses in one block."""
        return 1 << self._shift

    @property
    def host_sized(self) -> bool:
        return self._shift == 0

    @property
    def _shift(self) -> int:
        return self.cidr.max_prefixlen - self.mask_size

    @property
    def _base(self) -> int:
        return int(self.cidr.network_address)

    def usable(self) -> list[Span]:
        """Return the blocks that can be allocated if no range is reserved.

        Host-sized blocks exclude the first address (IPv4: network address, IPv6: subnet-router
        anycast address, RFC 4291) and the last IPv4 address (broadcast), except in networks of one
        or two addresses (RFC 3021, RFC 6164).
        """
        first, last = 0, self.count - 1
        if self.host_sized and self.count > 2:
            first += not self.allow_first
            last -= self.cidr.version == 4 and not self.allow_last
        return [Span(first, last)]

    def block_at(self, index: int) -> addresses.Network:
        if not 0 <= index < self.count:
            raise IndexError(f"{self.cidr} has no block {index} of /{self.mask_size}")
        return _network(self.cidr, self._base + (index << self._shift), self.mask_size)

    def index_of(self, network: addresses.Network, *, field: str = "") -> int:
        """Return the index of a block. Raises InvalidInput `not_a_block` for any other network."""
        if network.prefixlen != self.mask_size or not self._holds(network.network_address):
            message = f"{network} is not one of the /{self.mask_size} blocks of {self.cidr}"
            raise errors.InvalidInput.for_field(field, "not_a_block", message, str(network))
        return self.index_of_address(network.network_address)

    def index_of_address(self, address: addresses.Address) -> int:
        """Return the index of the block with this address. Raises InvalidInput `not_a_block`."""
        if not self._holds(address):
            message = f"{address} is not in {self.cidr}"
            raise errors.InvalidInput.for_field("", "not_a_block", message, str(address))
        return (int(address) - self._base) >> self._shift

    def span_touching(self, reserved: addresses.AddressRange) -> Span | None:
        """Return the span of blocks that the range overlaps, even in part; None if there is none.

        Cilium withholds such blocks as a whole (operator/pkg/ipam/allocator/multipool).
        """
        if reserved.family != self.cidr.version:
            return None
        end = self._base + self.cidr.num_addresses - 1
        first, last = max(int(reserved.first), self._base), min(int(reserved.last), end)
        if first > last:
            return None
        return Span((first - self._base) >> self._shift, (last - self._base) >> self._shift)

    def withheld(self, ranges: Iterable[addresses.AddressRange]) -> list[Span]:
        """Return the blocks that reserved ranges exclude from allocation, merged."""
        touched = (self.span_touching(reserved) for reserved in ranges)
        return merge(span for span in touched if span is not None)

    def allocatable(self, ranges: Iterable[addresses.AddressRange]) -> list[Span]:
        """Return the blocks that can be allocated, in address order."""
        return subtract(self.usable(), self.withheld(ranges))

    def blocks(self, span: Span, limit: int | None = None) -> Iterator[addresses.Network]:
        """Yield the blocks of a span in order, at most `limit`."""
        for number in self._numbers(self._cut(span, limit)):
            yield _network(self.cidr, number, self.mask_size)

    def cidr_strings(self, span: Span, limit: int | None = None) -> list[str]:
        """Return the canonical strings of a span's blocks in order, at most `limit`.

        About five times faster than creating networks: the refill of a pool's window, which holds a
        lock, calls it.
        """
        suffix = f"/{self.mask_size}"
        numbers = self._numbers(self._cut(span, limit))
        if self.cidr.version == 4:
            ntoa = socket.inet_ntoa
            return [ntoa(number.to_bytes(4, "big")) + suffix for number in numbers]
        if self._base >> 48 == 0:
            # The C library writes IPv4-compatible and IPv4-mapped addresses with dots.
            return [str(_network(self.cidr, number, self.mask_size)) for number in numbers]
        ntop, family = socket.inet_ntop, socket.AF_INET6
        return [ntop(family, number.to_bytes(16, "big")) + suffix for number in numbers]

    def warnings(self, *, field: str = "") -> list[errors.FieldProblem]:
        """Return the warnings about a valid layout; code many_blocks."""
        if self.count <= MANY_BLOCKS:
            return []
        message = f"{self.cidr} has {self.count} blocks of /{self.mask_size}"
        return [errors.FieldProblem(field, "many_blocks", message, str(self.mask_size))]

    def _holds(self, address: addresses.Address) -> bool:
        return address.version == self.cidr.version and address in self.cidr

    def _cut(self, span: Span, limit: int | None) -> Span:
        last = span.last if limit is None else min(span.last, span.first + limit - 1)
        if span.first < 0 or last >= self.count:
            raise IndexError(f"{self.cidr} has no blocks {span.first} to {last}")
        return Span(span.first, last)

    def _numbers(self, span: Span) -> range:
        step = self.block_size
        return range(self._base + span.first * step, self._base + (span.last + 1) * step, step)


def check_mask_size(value: object, parent: addresses.Network | int, *, field: str = "") -> int:
    """Return `value` if it is a valid mask size in `parent`, an IP family (4, 6) or a CIDR.

    A mask size equal to the CIDR's prefix length means one block. Raises InvalidInput wrong_type or
    mask_size.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a whole number", value)
    if isinstance(parent, int):
        smallest, largest, parent_name = 1, 32 if parent == 4 else 128, f"IPv{parent}"
    else:
        smallest, largest, parent_name = max(parent.prefixlen, 1), parent.max_prefixlen, str(parent)
    if not smallest <= value <= largest:
        message = f"the mask size must be {smallest} to {largest} in {parent_name}"
        raise errors.InvalidInput.for_field(field, "mask_size", message, value)
    return value


def divide_cluster_prefix(
    prefix: addresses.Network,
    *,
    node: IPv6Network | None = None,
    instance: IPv6Network | None = None,
) -> tuple[IPv6Network, IPv6Network]:
    """Return the node prefix and the instance prefix of a cluster.

    The defaults are the first and the second /64, or /80 if the cluster prefix is a /64. If one of
    the two is given, the other is the nearest free prefix of that length. Raises InvalidInput
    cluster_prefix, outside_cluster_prefix, cidr_overlap.
    """
    prefix = _cluster_prefix(prefix)
    _check_part(prefix, node, "node_prefix")
    _check_part(prefix, instance, "instance_prefix")
    first, second = _pieces(prefix)
    node = node or _free_piece(prefix, instance, (first, second), "node_prefix")
    instance = instance or _free_piece(prefix, node, (second, first), "instance_prefix")
    if node.overlaps(instance):
        message = f"the node prefix {node} and the instance prefix {instance} overlap"
        raise errors.InvalidInput.for_field(
            "instance_prefix", "cidr_overlap", message, str(instance)
        )
    return node, instance


def _cluster_prefix(prefix: addresses.Network) -> IPv6Network:
    if isinstance(prefix, IPv4Network) or prefix.prefixlen > LONGEST_CLUSTER_PREFIX:
        message = f"a cluster prefix is an IPv6 network of at least /{LONGEST_CLUSTER_PREFIX}"
        raise errors.InvalidInput.for_field(
            "cluster_prefix", "cluster_prefix", message, str(prefix)
        )
    return prefix


def _check_part(prefix: IPv6Network, part: IPv6Network | None, field: str) -> None:
    if part is not None and not (part.version == 6 and part.subnet_of(prefix)):
        message = f"{part} is not inside the cluster prefix {prefix}"
        raise errors.InvalidInput.for_field(field, "outside_cluster_prefix", message, str(part))


def _pieces(prefix: IPv6Network) -> tuple[IPv6Network, IPv6Network]:
    length = 64 if prefix.prefixlen < 64 else 80
    base = int(prefix.network_address)
    return IPv6Network((base, length)), IPv6Network((base + (1 << (128 - length)), length))


def _free_piece(
    prefix: IPv6Network,
    other_part: IPv6Network | None,
    pieces: tuple[IPv6Network, IPv6Network],
    field: str,
) -> IPv6Network:
    if other_part is None:
        return pieces[0]
    after = min(int(other_part.broadcast_address) + 1, _LAST_IPV6)
    beyond = IPv6Network((after, pieces[0].prefixlen), strict=False)
    for piece in (*pieces, beyond):
        if piece.subnet_of(prefix) and not piece.overlaps(other_part):
            return piece
    message = f"{other_part} leaves no room in the cluster prefix {prefix}"
    raise errors.InvalidInput.for_field(field, "cidr_overlap", message, str(other_part))


def _network(like: addresses.Network, number: int, length: int) -> addresses.Network:
    kind = IPv4Network if like.version == 4 else IPv6Network
    return kind((number, length))


class IndexSet:
    """Indexes in the fewest spans; every operation is a binary search and a splice."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        merged = merge(spans)
        self._firsts = [span.first for span in merged]
        self._lasts = [span.last for span in merged]

    def spans(self) -> list[Span]:
        return [Span(*ends) for ends in zip(self._firsts, self._lasts, strict=True)]

    def add(self, span: Span) -> None:
        # Spans that overlap the new span or are adjacent to it are merged with it.
        start = bisect_left(self._lasts, span.first - 1)
        end = bisect_right(self._firsts, span.last + 1)
        first, last = span.first, span.last
        if start < end:
            first, last = min(first, self._firsts[start]), max(last, self._lasts[end - 1])
        self._firsts[start:end], self._lasts[start:end] = [first], [last]

    def remove(self, span: Span) -> None:
        start = bisect_left(self._lasts, span.first)
        end = bisect_right(self._firsts, span.last)
        touched = zip(self._firsts[start:end], self._lasts[start:end], strict=True)
        remaining = subtract([Span(*ends) for ends in touched], [span])
        self._firsts[start:end] = [part.first for part in remaining]
        self._lasts[start:end] = [part.last for part in remaining]

    def contains_span(self, span: Span) -> bool:
        """Return True if every index of the span is in the set."""
        position = bisect_left(self._lasts, span.first)
        return position < len(self._lasts) and (
            self._firsts[position] <= span.first and span.last <= self._lasts[position]
        )

    def next_missing(self, index: int) -> int:
        """Return the first index from `index` on that is not in the set."""
        position = bisect_left(self._lasts, index)
        if position < len(self._lasts) and self._firsts[position] <= index:
            return self._lasts[position] + 1
        return index
