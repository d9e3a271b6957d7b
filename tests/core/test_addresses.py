"""Addresses and CIDRs: what is accepted, in what form. What is refused: test_bad_input."""

import ipaddress
from ipaddress import ip_address, ip_network

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import addresses, errors

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
