"""Sets of indexes as spans, against Python's sets."""

import itertools

import hypothesis
from hypothesis import strategies as st

from pools.core import blocks

SPANS = st.lists(
    st.builds(
        lambda first, size: blocks.Span(first, first + size), st.integers(0, 60), st.integers(0, 12)
    ),
    max_size=12,
)


def _members(spans: list[blocks.Span]) -> set[int]:
    return {index for span in spans for index in range(span.first, span.last + 1)}


def _is_minimal(spans: list[blocks.Span]) -> bool:
    ordered = all(span.first <= span.last for span in spans)
    return ordered and all(a.last + 1 < b.first for a, b in itertools.pairwise(spans))


@hypothesis.given(SPANS)
def test_merge_keeps_the_indexes_in_the_fewest_spans(spans: list[blocks.Span]) -> None:
    merged = blocks.merge(spans)
    assert _members(merged) == _members(spans)
    assert _is_minimal(merged)


@hypothesis.given(SPANS, SPANS)
def test_subtract_is_the_difference_of_sets(
    spans: list[blocks.Span], holes: list[blocks.Span]
) -> None:
    remaining = blocks.subtract(spans, holes)
    assert _members(remaining) == _members(spans) - _members(holes)
    assert _is_minimal(remaining)


@hypothesis.given(SPANS)
def test_total_counts_every_index_once(spans: list[blocks.Span]) -> None:
    assert blocks.total(spans) == len(_members(spans))


def test_the_size_of_a_span_is_exact_beyond_floats() -> None:
    assert blocks.Span(0, 2**120).size == 2**120 + 1
    assert blocks.total([blocks.Span(0, 2**120), blocks.Span(1, 3)]) == 2**120 + 1


def test_many_spans_are_subtracted_in_one_pass() -> None:
    holes = [blocks.Span(step * 10, step * 10 + 3) for step in range(20_000)]
    remaining = blocks.subtract([blocks.Span(0, 10**30)], holes)
    assert len(remaining) == 20_000
    assert blocks.total(remaining) == 10**30 + 1 - 80_000
