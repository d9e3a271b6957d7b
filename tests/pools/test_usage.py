"""How full a pool is, exactly and in equal shares."""

from ipaddress import ip_network
from typing import Any

import pytest

from pools.models import Pool
from pools.register import occupancy, pools, usage
from pools.register.allocator import requests
from tests import factories


def _numbers(pool: Pool, family: int = 4) -> tuple[int, int, int, int, int]:
    """(capacity, held, cooling, reserved, free), which must sum up."""
    used = usage.pool_usage(Pool.objects.get(pk=pool.pk))[family]
    assert used.held + used.cooling + used.reserved + used.free == used.capacity
    assert usage.usage_by_pool([pool])[pool.pk][family] == used
    return used.capacity, used.held, used.cooling, used.reserved, used.free


def test_it_follows_a_block_through_its_life(clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    assert _numbers(pool) == (254, 0, 0, 0, 254)
    block = factories.take(pool)
    assert _numbers(pool) == (254, 1, 0, 0, 253)
    factories.give_back(block)
    assert _numbers(pool) == (254, 0, 1, 0, 253)
    clock.advance(61)
    assert _numbers(pool) == (254, 0, 0, 0, 254)
    requests.end_cooldowns()
    assert _numbers(pool) == (254, 0, 0, 0, 254)


def test_what_is_reserved_and_in_use_counts_as_in_use(clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    blocks = factories.ask(pool, *factories.holders(10)).blocks
    reserved = factories.reserve(pool, "10.0.0.0-10.0.0.15")
    assert _numbers(pool) == (254, 10, 0, 5, 239)
    for block in blocks[:4]:
        factories.give_back(block)
    assert _numbers(pool) == (254, 6, 4, 5, 239)
    clock.advance(61)
    assert _numbers(pool) == (254, 6, 0, 9, 239)
    requests.end_cooldowns()
    assert _numbers(pool) == (254, 6, 0, 9, 239)
    pools.unreserve(reserved, author=factories.BY)
    assert _numbers(pool) == (254, 6, 0, 0, 248)


CAPACITIES: list[Any] = [
    pytest.param(("10.0.0.0/24",), None, 4, 254, id="addresses"),
    pytest.param(("10.20.0.0/16", "10.30.0.0/16"), 24, 4, 512, id="two CIDRs of blocks"),
    pytest.param(("10.0.0.0/31",), None, 4, 2, id="/31"),
    pytest.param(("fd00::/127",), None, 6, 2, id="/127"),
    pytest.param(("2001:db8::/32",), None, 6, 2**96 - 1, id="exact in IPv6"),
]


@pytest.mark.parametrize(("cidrs", "mask", "family", "capacity"), CAPACITIES)
def test_capacity_is_exact(
    cidrs: tuple[str, ...], mask: int | None, family: int, capacity: int
) -> None:
    pool = factories.pool(*cidrs, mask=mask)
    assert _numbers(pool, family) == (capacity, 0, 0, 0, capacity)
    factories.take(pool)
    assert _numbers(pool, family) == (capacity, 1, 0, 0, capacity - 1)


def test_two_ranges_in_one_block_reserve_it_once() -> None:
    pool = factories.pool("10.20.0.0/22", mask=24)
    factories.reserve(pool, "10.20.0.0-10.20.0.9")
    factories.reserve(pool, "10.20.0.99-10.20.1.9")
    assert _numbers(pool) == (4, 0, 0, 2, 2)


def test_families_apart() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/120")
    factories.take(pool, family=6)
    assert _numbers(pool, 4) == (254, 0, 0, 0, 254)
    assert _numbers(pool, 6) == (255, 1, 0, 0, 254)


@pytest.mark.parametrize(
    ("reserved", "count", "ratio"),
    [((), 0, 0.0), ((), 127, 0.5), (("10.0.0.128/25",), 127, 1.0), (("10.0.0.0/24",), 0, 1.0)],
)
def test_the_ratio_is_of_what_can_be_used(
    reserved: tuple[str, ...], count: int, ratio: float
) -> None:
    pool = factories.pool("10.0.0.0/24", reserved=reserved)
    if count:
        factories.ask(pool, *factories.holders(count))
    assert usage.pool_usage(pool)[4].ratio == ratio


def test_large_pools_show_the_workers_last_count(monkeypatch) -> None:
    monkeypatch.setattr(usage, "LARGE", 2)
    small, large = factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")
    factories.take(small)
    factories.ask(large, *factories.holders(3))
    assert usage.refresh_counts() == 1
    factories.take(large)
    listed = usage.usage_by_pool([small, large])
    assert (listed[small.pk][4].held, listed[small.pk][4].approximate) == (1, False)
    assert (listed[large.pk][4].held, listed[large.pk][4].approximate) == (3, True)
    assert usage.pool_usage(large)[4].held == 4
    assert usage.refresh_counts() == 1
    assert usage.usage_by_pool([large])[large.pk][4].held == 4


# --- Counts in equal shares: exact up to a limit, near the truth beyond it ------------------------
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
