"""Blocks come in address order, CIDR after CIDR in the order in which they were added."""

import pytest

from pools.register import pools
from tests import factories

ORDER = [
    pytest.param(("10.0.0.0/29",), None, ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"], id="v4"),
    pytest.param(("fd00::/120",), None, ["fd00::1/128", "fd00::2/128", "fd00::3/128"], id="v6"),
    pytest.param(("10.20.0.0/16",), 24, ["10.20.0.0/24", "10.20.1.0/24", "10.20.2.0/24"], id="pod"),
    pytest.param(("10.9.0.0/31", "10.1.0.0/30"), None,
        ["10.9.0.0/32", "10.9.0.1/32", "10.1.0.1/32"], id="second CIDR"),
    pytest.param(("10.9.0.0/24", "10.1.0.0/24"), 24,
        ["10.9.0.0/24", "10.1.0.0/24"], id="one block each"),
]  # fmt: skip


@pytest.mark.parametrize(("cidrs", "mask", "expected"), ORDER)
def test_fresh_blocks_come_in_address_order(
    cidrs: tuple[str, ...], mask: int | None, expected: list[str]
) -> None:
    pool = factories.pool(*cidrs, mask=mask)
    assert factories.cidrs(pool, len(expected)) == expected


def test_order_goes_on_over_the_end_of_a_window() -> None:
    pool = factories.pool("10.0.0.0/16", cooldown=3600)
    expected = [f"10.0.{n >> 8}.{n & 255}/32" for n in range(1, 1001)]
    assert factories.cidrs(pool, 300) == expected[:300]
    batch = factories.ask(pool, *factories.holders(700)).blocks
    assert [block["cidr"] for block in batch] == expected[300:]


def test_what_was_released_comes_after_what_is_fresh_in_the_window(clock) -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=0)
    first = factories.take(pool)
    clock.advance(1)
    factories.give_back(first)
    assert factories.drain(pool) == [f"10.0.0.{n}/32" for n in (2, 3, 4, 5, 6, 1)]


def test_a_cidr_that_was_added_comes_last() -> None:
    pool = factories.pool("10.5.0.0/31")
    pools.add_cidr(pool.pk, factories.entry("10.1.0.0/31"), author=factories.BY)
    pools.add_cidr(pool.pk, factories.entry("10.3.0.0/31"), author=factories.BY)
    assert factories.drain(pool) == [
        "10.5.0.0/32", "10.5.0.1/32", "10.1.0.0/32", "10.1.0.1/32", "10.3.0.0/32", "10.3.0.1/32",
    ]  # fmt: skip
