"""Several ranges: apart in a CIDR, but they may withhold the same block; limits of a range."""

import pytest
from django.db import DatabaseError, transaction

from pools.core import errors
from pools.models import ReservedRange
from pools.register import pool_cidrs, pools
from tests import factories


@pytest.mark.sample(4)
@pytest.mark.parametrize("gone", [0, 1], ids=["first one removed", "second one removed"])
@pytest.mark.parametrize("used", [False, True], ids=["free", "in use"])
def test_a_block_comes_back_with_the_last_range_that_touches_it(
    gone: int, used: bool, clock
) -> None:
    pool = factories.pool("10.20.0.0/23", mask=24, cooldown=60)
    if used:
        factories.give_back(factories.take(pool))
    ranges = [
        factories.reserve(pool, span) for span in ("10.20.0.0-10.20.0.9", "10.20.0.99-10.20.0.200")
    ]
    clock.advance(61)
    pools.unreserve(ranges.pop(gone), author=factories.BY)
    assert factories.drain(pool) == ["10.20.1.0/24"]
    pools.unreserve(ranges[0], author=factories.BY)
    assert factories.drain(pool) == ["10.20.0.0/24"]


def test_in_use_and_touched_by_two_it_stays_withheld_with_one() -> None:
    pool = factories.pool("10.20.0.0/24", mask=24)
    block = factories.take(pool)
    range_id = factories.reserve(pool, "10.20.0.0-10.20.0.9")
    factories.reserve(pool, "10.20.0.99-10.20.0.200")
    pools.unreserve(range_id, author=factories.BY)
    assert factories.row(block).withheld
    factories.give_back(block)
    assert factories.drain(pool) == []


def test_ranges_of_a_cidr_do_not_overlap(breaks) -> None:
    pool = factories.pool("10.0.0.0/24", reserved=["10.0.0.10-10.0.0.20"])
    with pytest.raises(errors.RangesOverlap, match=r"overlaps the reserved range 10.0.0.10-"):
        factories.reserve(pool, "10.0.0.20-10.0.0.30")
    row = ReservedRange(
        pool=pool, pool_cidr=factories.cidr(pool), first="10.0.0.5", last="10.0.0.10"
    )
    with breaks("ranges_of_a_cidr_never_overlap"):
        row.save()
    factories.reserve(pool, "10.0.0.21-10.0.0.30")


@pytest.mark.parametrize(
    "span", ["10.0.1.0-10.0.1.5", "10.0.0.250-10.0.1.5", "9.255.255.255-10.0.0.3", "fd00::-fd00::1"]
)
def test_a_range_lies_inside_its_cidr(span: str, breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    first, _, last = span.partition("-")
    row = ReservedRange(pool=pool, pool_cidr=factories.cidr(pool), first=first, last=last)
    with breaks("range_outside_cidr"):
        row.save()


def test_a_range_belongs_to_the_pool_of_its_cidr(breaks) -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")
    row = ReservedRange(
        pool=other, pool_cidr=factories.cidr(pool), first="10.0.0.1", last="10.0.0.1"
    )
    with breaks("range_in_pools_cidr"):
        row.save()


def test_first_comes_before_last(sql) -> None:
    pool = factories.pool("10.0.0.0/24", reserved=["10.0.0.10-10.0.0.20"])
    with pytest.raises(DatabaseError, match="range lower bound"), transaction.atomic():
        sql("UPDATE pools_reservedrange SET first = '10.0.0.21' WHERE pool_id = %s", pool.pk)


def test_a_change_of_the_pool_replaces_its_ranges() -> None:
    pool = factories.pool("10.0.0.0/29", reserved=["10.0.0.1-10.0.0.3"])
    expected = factories.families("10.0.0.0/29", reserved=["10.0.0.3-10.0.0.3", "10.0.0.6/31"])
    changed = pools.change(pool.pk, pools.PoolChange(families=expected), author=factories.BY)
    assert pool_cidrs.families(changed) == expected
    assert set(factories.drain(pool)) == {f"10.0.0.{n}/32" for n in (1, 2, 4, 5)}


@pytest.mark.exhaustive
def test_hundreds_of_ranges_in_an_ipv6_prefix() -> None:
    spans = [f"fd00::{n:x}:0-fd00::{n:x}:ffff" for n in range(0, 400, 2)]
    pool = factories.pool("fd00::/64", reserved=spans)
    assert factories.take(pool)["address"] == "fd00::1:0"
