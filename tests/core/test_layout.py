"""The blocks of a CIDR against brute force over small networks, and sizes, ends and numbers that it does not reach."""

from ipaddress import ip_address, ip_network

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import addresses, blocks, errors
from tests import effort


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


@pytest.mark.parametrize(
    ("cidr", "mask_size", "usable"),
    [
        ("10.0.0.0/24", 32, 254),
        ("10.0.0.0/30", 32, 2),
        ("10.0.0.0/31", 32, 2),
        ("10.0.0.0/32", 32, 1),
        ("fd00::/126", 128, 3),
        ("fd00::/127", 128, 2),
        ("fd00::/128", 128, 1),
        ("fd00::/64", 128, 2**64 - 1),
        ("10.0.0.0/16", 24, 256),
        ("10.0.0.0/30", 31, 2),
        ("fd00::/16", 120, 2**104),
    ],
)
def test_capacity(cidr: str, mask_size: int, usable: int) -> None:
    layout = blocks.Layout(ip_network(cidr), mask_size)
    assert blocks.total(layout.usable()) == usable
    assert layout.host_sized == (mask_size == ip_network(cidr).max_prefixlen)


def test_a_range_at_the_beginning_withholds_the_first_block() -> None:
    layout = blocks.Layout(ip_network("10.20.0.0/16"), 24)
    reserved = [addresses.parse_range("10.20.0.0-10.20.0.99")]
    assert layout.withheld(reserved) == [blocks.Span(0, 0)]
    assert layout.allocatable(reserved) == [blocks.Span(1, 255)]


def test_a_range_over_the_whole_cidr_leaves_nothing() -> None:
    layout = blocks.Layout(ip_network("fd00::/48"), 64)
    assert layout.allocatable([addresses.parse_range("fd00::/48")]) == []


def test_a_range_of_the_other_family_with_the_same_numbers_withholds_nothing() -> None:
    layout = blocks.Layout(ip_network("10.0.0.0/16"), 24)
    assert layout.span_touching(addresses.parse_range("::a00:0-::a00:ff")) is None


@pytest.mark.parametrize(
    "network",
    ["10.0.1.0/25", "10.0.0.0/16", "10.1.0.0/24", "fd00::/24", "9.255.255.0/24"],
)
def test_what_is_no_block_has_no_index(network: str) -> None:
    layout = blocks.Layout(ip_network("10.0.0.0/16"), 24)
    with pytest.raises(errors.InvalidInput) as caught:
        layout.index_of(ip_network(network), field="cidr")
    assert (caught.value.code, caught.value.problems[0].field) == ("not_a_block", "cidr")


@pytest.mark.parametrize("address", ["10.1.0.0", "fd00::1", "9.255.255.255"])
def test_an_address_elsewhere_has_no_index(address: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        blocks.Layout(ip_network("10.0.0.0/16"), 24).index_of_address(ip_address(address))
    assert caught.value.code == "not_a_block"


@pytest.mark.parametrize("index", [-1, 256])
def test_no_block_beyond_the_ends(index: int) -> None:
    layout = blocks.Layout(ip_network("10.0.0.0/16"), 24)
    with pytest.raises(IndexError):
        layout.block_at(index)
    with pytest.raises(IndexError):
        layout.cidr_strings(blocks.Span(min(index, 0), max(index, 0)))


def test_a_limit_cuts_a_span_without_enumerating_it() -> None:
    layout = blocks.Layout(ip_network("fd00::/16"), 128)
    (usable,) = layout.usable()
    assert layout.cidr_strings(usable, 2) == ["fd00::1/128", "fd00::2/128"]
    assert [str(block) for block in layout.blocks(usable, 2)] == layout.cidr_strings(usable, 2)
    assert layout.cidr_strings(blocks.Span(0, 1), 5) == ["fd00::/128", "fd00::1/128"]


@pytest.mark.parametrize("cidr", ["::/64", "::ffff:0:0/96", "0:1::/32", "1:0:0:1::/64"])
def test_texts_are_canonical_where_the_c_library_is_not(cidr: str) -> None:
    layout = blocks.Layout(ip_network(cidr), 128)
    span = blocks.Span(0xFFFE, 0x10002)
    assert layout.cidr_strings(span) == [str(network) for network in layout.blocks(span)]


@pytest.mark.parametrize(("cidr", "mask_size"), [("10.0.0.0/8", 24), ("fd00::/48", 64)])
def test_ten_thousand_texts_are_quick(cidr: str, mask_size: int) -> None:
    layout = blocks.Layout(ip_network(cidr), mask_size)
    with effort.at_most(40):  # some 8; above 80 by way of networks
        texts = layout.cidr_strings(blocks.Span(0, 9_999))
    assert len(set(texts)) == 10_000


def test_enormous_layouts_are_accepted_with_a_warning() -> None:
    (warning,) = blocks.Layout(ip_network("fd00::/16"), 120).warnings(field="ipv6.mask_size")
    assert (warning.code, warning.field) == ("many_blocks", "ipv6.mask_size")
    assert blocks.Layout(ip_network("10.0.0.0/8"), 32).warnings() == []


def test_a_layout_without_such_blocks_cannot_be_made() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        blocks.Layout(ip_network("10.0.0.0/26"), 24)
    assert caught.value.code == "mask_size"
