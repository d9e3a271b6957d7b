"""Addresses, CIDRs, spans and sets of them, each in one form."""

import ipaddress
import itertools
from ipaddress import ip_address, ip_network
from itertools import combinations

import hypothesis
import pytest
from hypothesis import given, strategies as st

from pools.core import addresses, blocks, cidr_sets, errors
from pools.core.blocks import IndexSet

NETWORKS = st.one_of(
    st.builds(
        lambda number, length: ipaddress.IPv4Network((number, length), strict=False),
        st.integers(1 << 24, (127 << 24) - 1),
        st.integers(8, 32),
    ),
    st.builds(
        lambda number, length: ipaddress.IPv6Network((number, length), strict=False),
        st.integers(0x2000 << 112, (0xFE00 << 112) - 1),
        st.integers(16, 128),
    ),
)


@hypothesis.given(st.ip_addresses())
def test_every_address_is_read_back_from_its_text(address: addresses.Address) -> None:
    expected = getattr(address, "ipv4_mapped", None) or address
    assert addresses.parse_address(str(address)) == expected
    assert addresses.parse_address(address.exploded, source=addresses.InputSource.TEXT) == expected


@hypothesis.given(NETWORKS)
def test_every_network_is_read_back_from_its_text(network: addresses.Network) -> None:
    assert addresses.parse_cidr(str(network)) == network
    if network.version == 4:
        assert addresses.parse_cidr(network.with_netmask) == network
    assert addresses.parse_cidr(network.exploded.upper()) == network


@hypothesis.given(NETWORKS, st.integers(1))
def test_host_bits_are_never_dropped_silently(network: addresses.Network, offset: int) -> None:
    hypothesis.assume(offset % network.num_addresses)
    address = network[offset % network.num_addresses]
    with pytest.raises(errors.InvalidInput, match=f"did you mean {network}") as caught:
        addresses.parse_cidr(f"{address}/{network.prefixlen}")
    assert caught.value.code == "host_bits_set"


@pytest.mark.parametrize(
    "value",
    [
        ip_address("10.0.0.1"),
        ip_address("fd00::1"),
    ],
    ids=str,
)
def test_a_parsed_address_passes_again(value: addresses.Address) -> None:
    assert addresses.parse_address(value) == value
    assert addresses.parse_cidr(ip_network(value)) == ip_network(value)


@pytest.mark.parametrize("text", ["0.0.0.0/0", "::/0", "128.0.0.0/1", "fc00::/7", "::/8"])
def test_searches_and_aggregates_may_be_short(text: str) -> None:
    assert addresses.parse_cidr(text, allow_short=True) == ip_network(text)
    with pytest.raises(errors.InvalidInput):
        addresses.parse_cidr(text)


def test_a_short_prefix_wholly_inside_an_unusable_network_stays_refused() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        addresses.parse_cidr("240.0.0.0/5", allow_short=True)
    assert caught.value.code == "special_purpose"


def test_a_mapped_network_is_refused_in_a_search_too() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        addresses.parse_cidr("::ffff:10.0.0.0/104", allow_short=True)
    assert caught.value.code == "ipv4_mapped"


def test_the_field_and_the_value_are_reported() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        addresses.parse_cidr("10.0.0.0/2\0", field="ipv4.cidrs.0.cidr")
    (problem,) = caught.value.problems
    assert problem.field == "ipv4.cidrs.0.cidr"
    assert problem.value == "10.0.0.0/2\\u0000"


@pytest.mark.parametrize(
    ("cidr", "codes"),
    [
        ("10.0.0.0/8", []),
        ("fd00::/48", []),
        ("203.0.113.0/26", ["documentation_network"]),
        ("192.0.0.0/16", ["documentation_network"]),
        ("2001:db8:10::/48", ["documentation_network"]),
        ("3fff:1::/32", ["documentation_network"]),
        ("100.64.0.0/10", ["shared_address_space"]),
        ("100.0.0.0/8", ["shared_address_space"]),
    ],
)
def test_odd_but_allowed_networks_have_warnings(cidr: str, codes: list[str]) -> None:
    problems = addresses.warnings_for(ip_network(cidr), field="cidr")
    assert [problem.code for problem in problems] == codes
    assert all(problem.field == "cidr" and problem.value == cidr for problem in problems)


BASES = {4: int(ip_address("10.0.0.0")), 6: int(ip_address("fd00::"))}


def _range(first: int, last: int, family: int = 4) -> addresses.AddressRange:
    low, high = sorted((first, last))
    kind = addresses.IPv4Address if family == 4 else addresses.IPv6Address
    return addresses.AddressRange(kind(BASES[family] + low), kind(BASES[family] + high))


RANGES = st.builds(_range, st.integers(0, 40), st.integers(0, 40), st.sampled_from([4, 6]))


def _members(span: addresses.AddressRange) -> set[addresses.Address]:
    return {span.first + step for step in range(span.size)}


@hypothesis.given(RANGES)
def test_text_and_value_are_the_same(span: addresses.AddressRange) -> None:
    assert addresses.parse_range(str(span)) == span
    assert addresses.parse_range(f"{span.first} -\t{span.last}") == span


@hypothesis.given(RANGES, RANGES)
def test_overlap_is_a_common_address(
    first: addresses.AddressRange, other: addresses.AddressRange
) -> None:
    assert first.overlaps(other) == bool(_members(first) & _members(other))


@hypothesis.given(RANGES, st.integers(26, 32))
def test_within_is_every_address_in_the_network(span: addresses.AddressRange, length: int) -> None:
    network = ip_network((BASES[4], length))
    inside = _members(span) <= set(network)
    assert span.within(network) == inside
    if inside:
        addresses.require_within(span, network)
    else:
        with pytest.raises(errors.InvalidInput) as caught:
            addresses.require_within(span, network, "reserved_ranges.0")
        assert caught.value.code == ("range_outside_cidr" if span.family == 4 else "mixed_family")
        assert caught.value.problems[0].field == "reserved_ranges.0"


# --- Sets of indexes as spans, against Python's sets ----------------------------------------------
SPANS = st.lists(
    st.builds(
        lambda first, size: blocks.Span(first, first + size), st.integers(0, 60), st.integers(0, 12)
    ),
    max_size=12,
)


def _indexes(spans: list[blocks.Span]) -> set[int]:
    return {index for span in spans for index in range(span.first, span.last + 1)}


def _is_minimal(spans: list[blocks.Span]) -> bool:
    ordered = all(span.first <= span.last for span in spans)
    return ordered and all(a.last + 1 < b.first for a, b in itertools.pairwise(spans))


@hypothesis.given(SPANS)
def test_merge_keeps_the_indexes_in_the_fewest_spans(spans: list[blocks.Span]) -> None:
    merged = blocks.merge(spans)
    assert _indexes(merged) == _indexes(spans)
    assert _is_minimal(merged)


@hypothesis.given(SPANS, SPANS)
def test_subtract_is_the_difference_of_sets(
    spans: list[blocks.Span], holes: list[blocks.Span]
) -> None:
    remaining = blocks.subtract(spans, holes)
    assert _indexes(remaining) == _indexes(spans) - _indexes(holes)
    assert _is_minimal(remaining)


@hypothesis.given(SPANS)
def test_total_counts_every_index_once(spans: list[blocks.Span]) -> None:
    assert blocks.total(spans) == len(_indexes(spans))


def test_the_size_of_a_span_is_exact_beyond_floats() -> None:
    assert blocks.Span(0, 2**120).size == 2**120 + 1
    assert blocks.total([blocks.Span(0, 2**120), blocks.Span(1, 3)]) == 2**120 + 1


def test_many_spans_are_subtracted_in_one_pass() -> None:
    holes = [blocks.Span(step * 10, step * 10 + 3) for step in range(20_000)]
    remaining = blocks.subtract([blocks.Span(0, 10**30)], holes)
    assert len(remaining) == 20_000
    assert blocks.total(remaining) == 10**30 + 1 - 80_000


# --- Sets of indexes against Python's own sets, and their cost on huge ones -----------------------
SPAN = st.tuples(st.integers(0, 30), st.integers(0, 6)).map(
    lambda pair: blocks.Span(pair[0], pair[0] + pair[1])
)


def _positions(span: blocks.Span) -> set[int]:
    return set(range(span.first, span.last + 1))


@given(st.lists(SPAN), st.lists(st.tuples(st.booleans(), SPAN)), SPAN)
def test_it_is_a_set(
    begin: list[blocks.Span], changes: list[tuple[bool, blocks.Span]], queried: blocks.Span
) -> None:
    indexes = IndexSet(begin)
    members = set().union(*map(_positions, begin))
    for adds, span in changes:
        if adds:
            indexes.add(span)
            members |= _positions(span)
        else:
            indexes.remove(span)
            members -= _positions(span)
        assert indexes.spans() == blocks.merge(blocks.Span(member, member) for member in members)
    assert indexes.contains_span(queried) == (_positions(queried) <= members)
    outside = next(index for index in range(queried.first, 100) if index not in members)
    assert indexes.next_missing(queried.first) == outside


def test_huge_spans_cost_nothing() -> None:
    indexes = IndexSet([blocks.Span(0, 2**100)])
    indexes.remove(blocks.Span(5, 2**99))
    indexes.add(blocks.Span(2**98, 2**98))
    assert indexes.next_missing(2**98) == 2**98 + 1
    assert indexes.next_missing(2**99 + 1) == 2**100 + 1


# --- Networks in networks, against looking at every pair ------------------------------------------
V4 = st.tuples(st.integers(0, 31), st.integers(27, 32)).map(
    lambda pair: ip_network((0x0A000000 + pair[0], pair[1]), strict=False)
)
V6 = st.integers(112, 128).map(lambda length: ip_network(f"fd00::/{length}"))


@given(st.lists(st.one_of(V4, V6), max_size=12))
def test_every_pair(networks: list) -> None:
    owned = [(network, number) for number, network in enumerate(networks)]
    result = [(outer, inner) for outer, inner in cidr_sets.nested_pairs(owned)]
    for (outer, _), (inner, _) in result:
        assert cidr_sets.contains(outer, inner)
    pairs = {frozenset((first[1], other[1])) for first, other in result}
    assert len(pairs) == len(result)
    assert pairs == {
        frozenset((first[1], other[1]))
        for first, other in combinations(owned, 2)
        if first[0].version == other[0].version and first[0].overlaps(other[0])
    }


def test_holds() -> None:
    assert cidr_sets.contains(ip_network("10.0.0.0/8"), ip_network("10.0.0.0/8"))
    assert not cidr_sets.contains(ip_network("10.0.0.0/16"), ip_network("10.0.0.0/8"))
    assert not cidr_sets.contains(ip_network("::/0"), ip_network("10.0.0.0/8"))


SPACED = st.lists(st.tuples(st.one_of(V4, V6), st.integers(0, 3)), max_size=14)


@given(SPACED)
def test_across_spaces_only_what_overlaps_another_space(networks: list) -> None:
    owned = [(network, (space, number)) for number, (network, space) in enumerate(networks)]
    groups = list(cidr_sets.overlap_groups(owned, space=lambda owner: owner[0]))
    for first, *others in groups:
        assert all(cidr_sets.contains(first[0], network) for network, _ in others)
    owners = [owner for group in groups for _, owner in group]
    assert len(owners) == len(set(owners))
    assert set(owners) == {
        owner
        for pair in combinations(owned, 2)
        if pair[0][1][0] != pair[1][1][0]
        and pair[0][0].version == pair[1][0].version
        and pair[0][0].overlaps(pair[1][0])
        for _, owner in pair
    }


def test_a_thousand_equal_networks_are_one_group() -> None:
    equal = [(ip_network("10.0.0.0/16"), number) for number in range(1000)]
    (group,) = cidr_sets.overlap_groups(equal, space=lambda number: number)
    assert len(group) == 1000
