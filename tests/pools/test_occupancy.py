"""Counts in equal shares: exact up to a limit, near the truth beyond it."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from pools.register import occupancy
from pools.register.allocator import allocation
from pools.register.occupancy import UsedBlocks
from tests import factories
from tests.pools.conftest import Clock


def test_blocks_are_counted_in_their_share() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60, reserved=["10.0.0.128/25"])
    factories.cidrs(pool, 20)
    factories.give_back(factories.take(pool))
    result = occupancy.count_by_share(factories.cidr(pool), ip_network("10.0.0.0/24"), 28)
    assert result.exact
    assert result.shares == {0: UsedBlocks(held=15), 1: UsedBlocks(held=5, cooling=1)}


def test_a_view_counts_only_what_lies_in_it() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.cidrs(pool, 20)
    result = occupancy.count_by_share(factories.cidr(pool), ip_network("10.0.0.16/28"), 32)
    assert result.shares == {number: UsedBlocks(held=1) for number in range(5)}


def test_shares_of_one_block_name_their_holder() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    factories.give_back(factories.take(pool, allocation.Holder("instance", "i-1")))
    factories.take(pool, allocation.Holder("instance", "i-2"))
    cidr, view = factories.cidr(pool), ip_network("10.0.0.0/24")
    shares = occupancy.count_by_share(cidr, view, 32, with_holders=True).shares
    assert sorted(used.holder for used in shares.values()) == ["instance i-1", "instance i-2"]
    assert {
        used.holder
        for used in occupancy.count_by_share(cidr, view, 28, with_holders=True).shares.values()
    } == {""}


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param([], None, id="nothing in use"),
        pytest.param(["10.0.7.9"], "10.0.7.9/32", id="one block"),
        pytest.param(["10.0.7.9", "10.0.7.12"], "10.0.7.8/29", id="neighbours"),
        pytest.param(["10.0.0.1", "10.0.7.9", "10.0.255.1"], "10.0.0.0/16", id="both ends"),
    ],
)
def test_the_smallest_part_with_all_used_blocks(used: list[str], expected: str | None) -> None:
    pool = factories.pool("10.0.0.0/16")
    for address in used:
        factories.take(pool, cidr=f"{address}/32")
    part = occupancy.used_part(factories.cidr(pool), ip_network("10.0.0.0/16"))
    assert (part and str(part)) == expected


def test_withheld_blocks_and_ended_cooldowns(clock: Clock) -> None:
    pool = factories.pool("10.0.0.0/28", cooldown=60)
    factories.give_back(factories.take(pool))
    factories.take(pool)
    factories.reserve(pool, "10.0.0.0/29")
    whole = (factories.cidr(pool), ip_network("10.0.0.0/28"), 28)
    assert occupancy.count_by_share(*whole).shares == {0: UsedBlocks(held=1, cooling=1, withheld=2)}
    clock.advance(61)
    assert occupancy.count_by_share(*whole).shares == {0: UsedBlocks(held=1, withheld=1)}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("cidr", "prefix", "probed"),
    [
        pytest.param("10.0.0.0/20", 22, 1 << 16, id="probes"),
        pytest.param("2001:db8::/96", 106, 1 << 16, id="statistics"),
        pytest.param("10.0.0.0/20", 32, 1 << 16, id="one block each"),
    ],
)
def test_estimates_are_near(
    monkeypatch: pytest.MonkeyPatch, cidr: str, prefix: int, probed: int
) -> None:
    monkeypatch.setattr(occupancy, "MOST_COUNTED", 100)
    pool = factories.pool(cidr)
    factories.ask(pool, *factories.holders(1500))
    whole = (factories.cidr(pool), ip_network(cidr), prefix)
    result = occupancy.count_by_share(*whole)
    monkeypatch.setattr(occupancy, "MOST_COUNTED", 100_000)
    exact = occupancy.count_by_share(*whole)
    assert not result.exact
    assert set(result.shares) == set(exact.shares)
    for number, used in exact.shares.items():
        least = min(used.total, occupancy.CAP)
        assert result.shares[number].total >= least
    if prefix != 106:  # the planner's estimate is as good as its statistics
        total = sum(used.total for used in result.shares.values())
        assert total == pytest.approx(1500, rel=0.15)
