"""Address ranges as values; their texts are in the bad-input catalogue."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import addresses, errors

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


@pytest.mark.parametrize("text", ["10.0.0.0/30", "10.0.0.7/32", "fd00::/16", "fd00::/127"])
def test_a_cidr_is_the_range_of_its_addresses(text: str) -> None:
    span = addresses.parse_range(text)
    assert span == addresses.AddressRange.from_network(ip_network(text))
    assert span.size == ip_network(text).num_addresses


def test_no_reversed_or_mixed_range_can_be_made() -> None:
    first, last = ip_address("10.0.0.1"), ip_address("10.0.0.9")
    with pytest.raises(errors.InvalidInput) as caught:
        addresses.AddressRange(last, first)
    assert caught.value.code == "range_reversed"
    with pytest.raises(errors.InvalidInput) as caught:
        addresses.AddressRange(first, ip_address("fd00::1"))
    assert caught.value.code == "mixed_family"


def test_ranges_of_one_family_can_be_sorted() -> None:
    spans = [_range(5, 9), _range(1, 30), _range(1, 2)]
    assert [str(span) for span in sorted(spans)] == [
        "10.0.0.1-10.0.0.2",
        "10.0.0.1-10.0.0.30",
        "10.0.0.5-10.0.0.9",
    ]


def test_the_field_of_a_reversed_range_is_reported() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        addresses.parse_range("10.0.0.9-10.0.0.1", field="reserved_ranges.2")
    assert [problem.field for problem in caught.value.problems] == ["reserved_ranges.2"]
