"""The blocks of a CIDR against brute force over small networks of both families."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import hypothesis
from hypothesis import strategies as st

from pools.core import addresses, blocks


def _layout(family: int, offset: int, length: int, depth: int, *flags: bool) -> blocks.Layout:
    width, base = (32, "10.0.0.0") if family == 4 else (128, "fd00::")
    prefix = width - length
    number = int(ip_address(base)) + (offset << length)
    cidr = type(ip_network(base))((number, prefix))
    return blocks.Layout(cidr, min(prefix + depth, width), *flags)


LAYOUTS = st.builds(
    _layout,
    st.sampled_from([4, 6]),
    st.integers(0, 9),
    st.integers(0, 7),
    st.integers(0, 7),
    st.booleans(),
    st.booleans(),
)


@st.composite
def _ranges_near(draw: st.DrawFn) -> tuple[blocks.Layout, list[addresses.AddressRange]]:
    """A layout and ranges around it, some of them outside or half outside."""
    layout = draw(LAYOUTS)
    size = layout.cidr.num_addresses
    bounds = draw(st.lists(st.tuples(st.integers(-9, size + 9), st.integers(0, size)), max_size=5))
    start = layout.cidr.network_address
    ranges = [
        addresses.AddressRange(start + offset, start + offset + more) for offset, more in bounds
    ]
    other = "fd00::1-fd00::ffff" if layout.cidr.version == 4 else "10.0.0.0-10.0.255.255"
    return layout, [*ranges, addresses.parse_range(other)]


def _members(spans: list[blocks.Span]) -> set[int]:
    return {index for span in spans for index in range(span.first, span.last + 1)}


def _all_blocks(layout: blocks.Layout) -> list[addresses.Network]:
    return list(layout.cidr.subnets(new_prefix=layout.mask_size))


@hypothesis.given(LAYOUTS)
def test_blocks_are_the_subnets_in_order(layout: blocks.Layout) -> None:
    expected = _all_blocks(layout)
    assert layout.count == len(expected)
    assert layout.block_size == expected[0].num_addresses
    assert [layout.block_at(index) for index in range(layout.count)] == expected
    everything = blocks.Span(0, layout.count - 1)
    assert list(layout.blocks(everything)) == expected
    assert layout.cidr_strings(everything) == [str(network) for network in expected]


@hypothesis.given(LAYOUTS)
def test_index_and_block_are_inverse(layout: blocks.Layout) -> None:
    for index, network in enumerate(_all_blocks(layout)):
        assert layout.index_of(network) == index
        assert layout.index_of_address(network.network_address) == index
        assert layout.index_of_address(network.broadcast_address) == index


def _is_usable(layout: blocks.Layout, network: addresses.Network) -> bool:
    cidr = layout.cidr
    if network.num_addresses > 1 or cidr.num_addresses <= 2:
        return True
    if network.network_address == cidr.network_address:
        return layout.allow_first
    return (
        cidr.version == 6 or layout.allow_last or network.network_address != cidr.broadcast_address
    )


@hypothesis.given(LAYOUTS)
def test_only_the_edges_of_host_pools_are_unusable(layout: blocks.Layout) -> None:
    expected = {i for i, block in enumerate(_all_blocks(layout)) if _is_usable(layout, block)}
    assert _members(layout.usable()) == expected


@hypothesis.given(_ranges_near())
def test_a_block_touched_by_a_range_is_withheld_whole(
    case: tuple[blocks.Layout, list[addresses.AddressRange]],
) -> None:
    layout, ranges = case
    withheld = {
        index
        for index, block in enumerate(_all_blocks(layout))
        if any(addresses.AddressRange.from_network(block).overlaps(span) for span in ranges)
    }
    assert _members(layout.withheld(ranges)) == withheld
    assert _members(layout.allocatable(ranges)) == _members(layout.usable()) - withheld
    for span in ranges:
        touched = layout.span_touching(span)
        assert _members([touched] if touched else []) <= withheld
