"""Check the free space of pools against arithmetic: each allocatable block is recorded exactly once.

Of the blocks of a CIDR that no reserved range touches, each one has a row or is in one free span. A
block in neither is lost: it can never be allocated. A block in both, or in a span although a range
reserves it, could be allocated twice.
"""

from __future__ import annotations

import heapq
import socket
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pools.core import blocks
from pools.core.blocks import Span
from pools.models import PoolCIDR
from pools.platform import events
from pools.platform.checks import checks, repairs
from pools.register.allocator import window

_BATCH = 5_000  # differences repaired at once
LOST, DOUBLED, STRAY = "lost", "doubled", "stray"


@dataclass(frozen=True)
class FreeSpaceDifference:
    """Blocks of a CIDR that are neither free nor have a row, or are free although they must not be."""

    kind: str  # LOST, DOUBLED, STRAY
    span: Span


def compare_free_space(
    grid: blocks.Layout,
    allocatable: Sequence[Span],
    free: Iterable[Span],
    rows: Iterable[int],
) -> Iterator[FreeSpaceDifference]:
    """Yield the differences in order; `free` and `rows` (indexes of blocks) must be sorted."""
    parts = _SpanIndex(allocatable)
    covered = 0  # every index below it was compared
    covered_spans = heapq.merge(
        ((span.first, span.last, True) for span in free), ((row, row, False) for row in rows)
    )
    for first, last, is_free in covered_spans:
        if first > covered:
            yield from (
                FreeSpaceDifference(LOST, span)
                for span in parts.intersect(Span(covered, first - 1))
            )
        elif first < covered:
            yield FreeSpaceDifference(DOUBLED, Span(first, min(last, covered - 1)))
        if is_free:
            outside = blocks.subtract([Span(first, last)], parts.intersect(Span(first, last)))
            yield from (FreeSpaceDifference(STRAY, span) for span in outside)
        covered = max(covered, last + 1)
    if covered < grid.count:
        yield from (
            FreeSpaceDifference(LOST, span)
            for span in parts.intersect(Span(covered, grid.count - 1))
        )


class _SpanIndex:
    """Intersect a span with sorted spans by binary search."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._lasts = [span.last for span in spans]

    def intersect(self, whole: Span) -> list[Span]:
        parts = []
        for position in range(bisect_left(self._lasts, whole.first), len(self._spans)):
            span = self._spans[position]
            if span.first > whole.last:
                break
            parts.append(Span(max(span.first, whole.first), min(span.last, whole.last)))
        return parts


def find_differences(cidr: PoolCIDR) -> Iterator[FreeSpaceDifference]:
    """Yield the differences of one CIDR; needs a snapshot transaction or the pool's lock."""
    grid = window.layout(cidr)
    allocatable = [] if cidr.closed else grid.allocatable(window.reserved_ranges(cidr))
    return compare_free_space(grid, allocatable, _free_spans(cidr), _block_indexes(cidr, grid))


def _free_spans(cidr: PoolCIDR) -> Iterator[Span]:
    for first, last in checks.rows(_SPANS, [cidr.pk]):
        yield Span(int(first), int(last))


_SPANS = "SELECT first, last FROM pools_freespan WHERE pool_cidr_id = %s ORDER BY first"


def _block_indexes(cidr: PoolCIDR, grid: blocks.Layout) -> Iterator[int]:
    ends = [str(grid.block_at(0)), str(grid.block_at(grid.count - 1))]
    base = int(cidr.cidr.network_address)
    shift = cidr.cidr.max_prefixlen - grid.mask_size
    family = socket.AF_INET if cidr.cidr.version == 4 else socket.AF_INET6
    before = -1
    for (host,) in checks.rows(_ROWS, [cidr.space_id, *ends, grid.mask_size]):
        index = (int.from_bytes(socket.inet_pton(family, host), "big") - base) >> shift
        if index != before:  # another check reports two rows of one block
            yield index
        before = index


_ROWS = """
    SELECT host(cidr) FROM pools_block
    WHERE space_id = %s AND cidr >= %s::cidr AND cidr <= %s::cidr AND masklen(cidr) = %s
    ORDER BY cidr
"""


_MEANING = {
    LOST: "{} can never be allocated: no row and no free span contains {}",
    DOUBLED: "{} could be allocated twice: more than one free span or row contains {}",
    STRAY: "{} could be allocated although the pool's allocatable space does not contain {}",
}


def _find_violations(pool_id: int) -> Iterator[checks.Violation]:
    for cidr in checks.cidrs(pool_id):
        grid = window.layout(cidr)
        for difference in find_differences(cidr):
            subject, pronoun = _describe(grid, difference.span)
            text = _MEANING[difference.kind].format(subject, pronoun)
            yield checks.Violation(f"{cidr} of pool {cidr.pool}: {text}", pool_id)


def _describe(grid: blocks.Layout, span: Span) -> tuple[str, str]:
    if span.last >= grid.count:
        return f"blocks beyond its end (index {span.first} to {span.last})", "them"
    first = str(grid.block_at(span.first))
    if span.size == 1:
        return f"block {first}", "it"
    return f"{span.size} blocks from {first} to {grid.block_at(span.last)}", "them"


def _repair_free_spans(pool_id: int, _by: events.Author) -> int:
    """Correct the free spans, some thousand differences at a time."""
    window.lock(pool_id)
    repaired = 0
    for cidr in checks.cidrs(pool_id):
        while batch := list(islice(find_differences(cidr), _BATCH)):
            for difference in batch:
                if difference.kind == LOST:
                    window.add_free_spans(cidr, [difference.span])
                else:
                    window.remove_free_span(cidr, difference.span)
            repaired += len(batch)
    if repaired:
        repairs.record_pool_repairs([pool_id])
    return repaired


CHECK = checks.Check(
    code="free_space",
    invariants="usage-adds-up, block-lies-in-one-cidr",
    proves="Every block of a pool that no reserved range touches has a row or is in one free span, and"
    " no other block is: none is lost, none can be allocated twice.",
    steps=checks.pools,
    find=_find_violations,
    mend=_repair_free_spans,
)
