"""Reserved ranges: of one CIDR, several of them, and what a preview says of them."""

import pytest
from django.db import DatabaseError, transaction

from pools.core import errors
from pools.core.cilium.podippool import Family
from pools.models import ReservedRange
from pools.register import pool_cidrs, pools, previews, usage
from pools.register.allocator import requests
from tests import factories


def _unreserve(range_id: int) -> None:
    pools.unreserve(range_id, author=factories.BY)


SHAPES = [
    pytest.param("10.0.0.2-10.0.0.4", [1, 5, 6], id="first-last"),
    pytest.param("10.0.0.0/30", [4, 5, 6], id="CIDR"),
    pytest.param("10.0.0.6-10.0.0.7", [1, 2, 3, 4, 5], id="with the broadcast address"),
    pytest.param("10.0.0.3-10.0.0.3", [1, 2, 4, 5, 6], id="one address"),
    pytest.param("10.0.0.0/29", [], id="the whole CIDR"),
]


@pytest.mark.sample(12)
@pytest.mark.parametrize("window", [False, True], ids=["untouched", "window there"])
@pytest.mark.parametrize(("span", "remaining"), SHAPES)
def test_no_new_blocks_in_it_and_all_back_afterwards(
    span: str, remaining: list[int], window: bool
) -> None:
    pool = factories.pool("10.0.0.0/29")
    if window:
        factories.give_back(factories.take(pool))
    reserved = factories.reserve(pool, span)
    assert set(factories.drain(pool)) == {f"10.0.0.{n}/32" for n in remaining}
    _unreserve(reserved)
    assert set(factories.drain(pool)) == {
        f"10.0.0.{n}/32" for n in set(range(1, 7)) - set(remaining)
    }


def test_a_block_that_it_touches_in_part_is_withheld_whole() -> None:
    pool = factories.pool("10.20.0.0/22", mask=24)
    reserved = factories.reserve(pool, "10.20.1.200-10.20.2.3")
    assert factories.drain(pool) == ["10.20.0.0/24", "10.20.3.0/24"]
    _unreserve(reserved)
    assert factories.drain(pool) == ["10.20.1.0/24", "10.20.2.0/24"]


def test_what_is_in_use_stays_and_is_withheld_after_its_release(clock) -> None:
    pool = factories.pool("10.0.0.0/30", cooldown=60)
    first, second = factories.take(pool), factories.take(pool)
    reserved = factories.reserve(pool, "10.0.0.1-10.0.0.1")
    assert factories.row(first).state == "held"
    assert factories.row(first).withheld
    factories.give_back(first)
    factories.give_back(second)
    clock.advance(61)
    assert factories.drain(pool) == ["10.0.0.2/32"]
    _unreserve(reserved)
    assert factories.drain(pool) == ["10.0.0.1/32"]


@pytest.mark.parametrize("tidied", [False, True], ids=["untidied", "tidied"])
def test_a_block_that_cooled_down_in_it_comes_back(tidied: bool, clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    factories.give_back(factories.take(pool))
    reserved = factories.reserve(pool, "10.0.0.0-10.0.0.0")
    clock.advance(61)
    assert factories.drain(pool) == []
    if tidied:
        assert requests.end_cooldowns() == 1
    _unreserve(reserved)
    assert factories.drain(pool) == ["10.0.0.0/32"]


def test_removed_while_cooling_the_cooldown_goes_on(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    factories.give_back(factories.take(pool))
    reserved = factories.reserve(pool, "10.0.0.0-10.0.0.0")
    _unreserve(reserved)
    assert factories.drain(pool) == []
    clock.advance(61)
    assert factories.drain(pool) == ["10.0.0.0/32"]


def test_released_without_a_cooldown_it_is_withheld() -> None:
    pool = factories.pool("10.0.0.0/31", cooldown=0)
    block = factories.take(pool)
    factories.reserve(pool, "10.0.0.0-10.0.0.0")
    factories.give_back(block)
    assert factories.drain(pool) == ["10.0.0.1/32"]
    assert usage.pool_usage(pool)[4].reserved == 1


def test_the_former_holder_does_not_get_it_back_either() -> None:
    pool = factories.pool("10.0.0.0/31", cooldown=60)
    who = factories.holder()
    block = factories.take(pool, who)
    factories.give_back(block)
    factories.reserve(pool, "10.0.0.0-10.0.0.0")
    assert factories.take(pool, who)["cidr"] == "10.0.0.1/32"


@pytest.mark.parametrize("state", ["fresh", "window", "cooling"])
def test_no_exact_block_inside(state: str) -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=60)
    who = factories.holder()
    if state == "window":
        factories.take(pool)
    if state == "cooling":
        factories.give_back(factories.take(pool, who, cidr="10.0.0.5/32"))
    factories.reserve(pool, "10.0.0.4-10.0.0.5")
    with pytest.raises(errors.ReservedAddress, match="lies in a reserved range"):
        factories.take(pool, who, cidr="10.0.0.5/32")
    assert factories.take(pool, cidr="10.0.0.6/32")["address"] == "10.0.0.6"


def test_a_holder_keeps_asking_for_what_it_has() -> None:
    pool = factories.pool("fd00::/120", category="node")
    node = factories.holder(kind="node")
    block = factories.take(pool, node)
    factories.reserve(pool, "fd00::-fd00::ff")
    assert factories.ask(pool, node).status == 200
    assert factories.take(pool, node)["id"] == block["id"]


def test_a_range_written_by_hand_is_kept_too() -> None:
    pool = factories.pool("10.0.0.0/29")
    ReservedRange.objects.create(
        pool=pool, pool_cidr=factories.cidr(pool), first="10.0.0.2", last="10.0.0.4"
    )
    assert set(factories.drain(pool)) == {f"10.0.0.{n}/32" for n in (1, 5, 6)}


# --- Several ranges: apart in a CIDR, but they may withhold the same block; limits of a range -----
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


# --- A preview names what changes, not what stays: ranges are compared address by address ---------
@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("before", "after", "reserved", "given_back"),
    [
        (["10.0.0.1-10.0.0.20"], ["10.0.0.1-10.0.0.30"], ["10.0.0.21-10.0.0.30"], []),
        (["10.0.0.1-10.0.0.20"], ["10.0.0.5-10.0.0.9"], [], ["10.0.0.1-10.0.0.4", "10.0.0.10-10.0.0.20"]),
        (["10.0.0.1-10.0.0.20"], ["10.0.0.1-10.0.0.9", "10.0.0.10-10.0.0.20"], [], []),
        ([], ["10.0.0.0-10.0.0.255"], ["10.0.0.0-10.0.0.255"], []),
        (["10.0.0.3-10.0.0.3"], [], [], ["10.0.0.3-10.0.0.3"]),
    ],
)  # fmt: skip
def test_only_the_difference(
    before: list[str], after: list[str], reserved: list[str], given_back: list[str]
) -> None:
    pool = factories.pool("10.0.0.0/24")
    for span in before:
        factories.reserve(pool, span)
    entry = factories.entry("10.0.0.0/24", *after)
    change = pools.PoolChange(families={4: Family((entry,), 32)})
    preview = previews.preview_change(pool, change, author=factories.BY)
    assert [str(item) for item in preview.reserved] == reserved
    assert [str(item) for item in preview.given_back] == given_back
    assert preview.withholds is bool(reserved)


def test_who_was_withheld_before_is_not_counted_again() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.cidrs(pool, 10)
    factories.reserve(pool, "10.0.0.1-10.0.0.4")
    entry = factories.entry("10.0.0.0/24", "10.0.0.1-10.0.0.6")
    change = pools.PoolChange(families={4: Family((entry,), 32)})
    preview = previews.preview_change(pool, change, author=factories.BY)
    assert preview.affected == 2
    assert [str(block.cidr) for block in preview.holders] == ["10.0.0.5/32", "10.0.0.6/32"]
