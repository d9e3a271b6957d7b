"""A set of block indexes, stored as spans: 2^64 blocks cost as little as ten."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from pools.core import blocks


class IndexSet:
    """Indexes in the fewest spans; every operation is a binary search and a splice."""

    def __init__(self, spans: Iterable[blocks.Span] = ()) -> None:
        merged = blocks.merge(spans)
        self._firsts = [span.first for span in merged]
        self._lasts = [span.last for span in merged]

    def spans(self) -> list[blocks.Span]:
        return [blocks.Span(*ends) for ends in zip(self._firsts, self._lasts, strict=True)]

    def add(self, span: blocks.Span) -> None:
        # Spans that overlap the new span or are adjacent to it are merged with it.
        start = bisect_left(self._lasts, span.first - 1)
        end = bisect_right(self._firsts, span.last + 1)
        first, last = span.first, span.last
        if start < end:
            first, last = min(first, self._firsts[start]), max(last, self._lasts[end - 1])
        self._firsts[start:end], self._lasts[start:end] = [first], [last]

    def remove(self, span: blocks.Span) -> None:
        start = bisect_left(self._lasts, span.first)
        end = bisect_right(self._firsts, span.last)
        touched = zip(self._firsts[start:end], self._lasts[start:end], strict=True)
        remaining = blocks.subtract([blocks.Span(*ends) for ends in touched], [span])
        self._firsts[start:end] = [part.first for part in remaining]
        self._lasts[start:end] = [part.last for part in remaining]

    def contains_span(self, span: blocks.Span) -> bool:
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
