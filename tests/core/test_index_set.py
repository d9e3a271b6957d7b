"""Sets of indexes against Python's own sets, and their cost on huge ones."""

from hypothesis import given, strategies as st

from pools.core import blocks
from pools.core.blocks import IndexSet

SPANS = st.tuples(st.integers(0, 30), st.integers(0, 6)).map(
    lambda pair: blocks.Span(pair[0], pair[0] + pair[1])
)


def _members(span: blocks.Span) -> set[int]:
    return set(range(span.first, span.last + 1))


@given(st.lists(SPANS), st.lists(st.tuples(st.booleans(), SPANS)), SPANS)
def test_it_is_a_set(
    begin: list[blocks.Span], changes: list[tuple[bool, blocks.Span]], queried: blocks.Span
) -> None:
    indexes = IndexSet(begin)
    members = set().union(*map(_members, begin))
    for adds, span in changes:
        if adds:
            indexes.add(span)
            members |= _members(span)
        else:
            indexes.remove(span)
            members -= _members(span)
        assert indexes.spans() == blocks.merge(blocks.Span(member, member) for member in members)
    assert indexes.contains_span(queried) == (_members(queried) <= members)
    outside = next(index for index in range(queried.first, 100) if index not in members)
    assert indexes.next_missing(queried.first) == outside


def test_huge_spans_cost_nothing() -> None:
    indexes = IndexSet([blocks.Span(0, 2**100)])
    indexes.remove(blocks.Span(5, 2**99))
    indexes.add(blocks.Span(2**98, 2**98))
    assert indexes.next_missing(2**98) == 2**98 + 1
    assert indexes.next_missing(2**99 + 1) == 2**100 + 1
