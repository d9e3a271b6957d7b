"""Counts in equal shares: exact up to a limit, near the truth beyond it."""

from ipaddress import ip_network

import pytest

from pools.register import occupancy
from tests import factories


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
