"""A map's cells sum to the capacity, whatever the space; drawing needs no database."""

from ipaddress import ip_network
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from pools.admin.pools import map as maps
from pools.core import addresses, blocks
from pools.register.occupancy import UsedBlocks


def layout(cidr: str, mask: int, **settings: Any) -> blocks.Layout:
    return blocks.Layout(ip_network(cidr), mask, **settings)


def build(cidr: str, mask: int, *reserved: str, view: str = "", **used: UsedBlocks) -> maps.View:
    return maps.build(
        layout(cidr, mask),
        ip_network(view or cidr),
        used={int(name[1:]): used_blocks for name, used_blocks in used.items()},
        ranges=[addresses.parse_range(text) for text in reserved],
    )


@pytest.mark.parametrize(
    ("cidr", "mask", "cells", "capacity"),
    [
        pytest.param("10.0.0.0/24", 32, 256, 254, id="one cell per address of a /24"),
        pytest.param("10.0.0.0/16", 24, 256, 256, id="one cell per block of a /16"),
        pytest.param("10.0.0.0/16", 32, 1024, 65534, id="equal shares of a /16"),
        pytest.param("2001:db8::/64", 128, 1024, 2**64 - 1, id="IPv6 /64"),
        pytest.param("10.0.0.0/32", 32, 1, 1, id="one address"),
        pytest.param("10.0.0.0/31", 32, 2, 2, id="point to point"),
        pytest.param("fd00::/104", 120, 1024, 65536, id="IPv6 blocks"),
    ],
)
def test_the_number_of_cells_and_their_sum(cidr: str, mask: int, cells: int, capacity: int) -> None:
    view = build(cidr, mask)
    assert len(view.cells) == cells
    assert sum(view.totals.values()) == capacity == view.totals["free"]


@given(data=st.data())
def test_counts_agree_with_one_look_at_each_block(data: st.DataObject) -> None:
    length = data.draw(st.integers(16, 24))
    cidr = f"10.0.0.0/{length}"
    mask = data.draw(st.integers(length, min(32, length + 11)))
    grid = layout(cidr, mask)
    base = int(grid.cidr.network_address)
    size = grid.cidr.num_addresses
    points = data.draw(st.lists(st.tuples(*[st.integers(0, size - 1)] * 2), max_size=4))
    ranges = [
        addresses.AddressRange(*(type(grid.cidr.network_address)(base + n) for n in sorted(pair)))
        for pair in points
    ]
    view = maps.build(grid, grid.cidr, used={}, ranges=ranges)
    free = {block for span in grid.allocatable(ranges) for block in grid.blocks(span)}
    for cell in view.cells[:: max(1, len(view.cells) // 16)]:
        assert cell.free == sum(block.subnet_of(cell.network) for block in free)
    assert view.totals["free"] == len(free)


def test_the_name_of_a_cell_of_one_block_has_its_holder() -> None:
    used = {
        "s1": UsedBlocks(held=1, holder="node n-1"),
        "s2": UsedBlocks(cooling=1, holder="node n-2"),
    }
    cells = build("10.0.0.0/16", 24, **used).cells
    assert cells[1].name == "10.0.1.0/24: allocated to node n-1"
    assert cells[2].name == "10.0.2.0/24: in cooldown, last held by node n-2"


def test_a_network_address_is_no_cell_of_the_capacity() -> None:
    view = build("10.0.0.0/24", 32)
    assert [view.cells[item].kind for item in (0, 1, 255)] == ["unusable", "free", "unusable"]


def test_a_mixed_cell_is_drawn_by_share_and_named_by_counts() -> None:
    view = build("10.0.0.0/16", 32, "10.0.0.0-10.0.0.15", s0=UsedBlocks(held=30, cooling=2))
    cell = view.cells[0]
    assert (cell.kind, cell.capacity) == ("mixed", 63)
    assert cell.name == "10.0.0.0/26: 30 allocated, 2 in cooldown, 15 reserved, 16 free"
    drawn = maps.svg(view, href=lambda _cell: "")
    assert all(f'class="m-{state}"' in drawn for state in maps.STATES)


def test_held_blocks_of_a_reserved_range_are_counted_once() -> None:
    view = build(
        "10.0.0.0/16", 32, "10.0.1.0-10.0.1.31", s4=UsedBlocks(held=12, cooling=3, withheld=10)
    )
    cell = view.cells[4]
    assert (cell.held, cell.cooling, cell.reserved, cell.free) == (12, 3, 22, 27)


def test_a_view_of_a_share_has_its_own_part_of_the_counts() -> None:
    view = build("2001:db8::/64", 128, view="2001:db8::/118", s5=UsedBlocks(held=1))
    assert [cell.kind for cell in view.cells[:7]] == ["unusable", *["free"] * 4, "held", "free"]


def test_the_drawing_is_well_formed_and_every_cell_has_a_name() -> None:
    view = build("10.0.0.0/16", 32, s3=UsedBlocks(held=64), s4=UsedBlocks(held=1))
    drawn = maps.svg(view, href=lambda cell: f"?map={cell.network}&x=<")
    root = ElementTree.fromstring(drawn).find("svg")  # noqa: S314  # our own drawing
    assert root is not None
    assert len(root) == len(root.findall("a/title")) == 1024


def test_the_table_behind_it_has_few_rows_and_the_same_sum() -> None:
    for used in ({}, {f"s{n}": UsedBlocks(held=n % 64) for n in range(1024)}):
        view = build("10.0.0.0/16", 32, **used)
        rows = maps.runs(view)
        assert len(rows) <= maps.MOST_RUNS
        assert sum(cell.capacity for _, _, cell in rows) == 65534
