"""Pools of every size: tiny ones, whole blocks, IPv6 by rule `nothing-enumerates-a-network`."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pools.core import errors
from pools.models import Block
from pools.register import usage
from tests import factories

TINY = [
    ("10.0.0.6/31", ["10.0.0.6/32", "10.0.0.7/32"]),
    ("10.0.0.6/32", ["10.0.0.6/32"]),
    ("fd00::6/127", ["fd00::6/128", "fd00::7/128"]),
    ("fd00::6/128", ["fd00::6/128"]),
    ("10.0.0.4/30", ["10.0.0.5/32", "10.0.0.6/32"]),
    ("fd00::4/126", ["fd00::5/128", "fd00::6/128", "fd00::7/128"]),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("cidr", "expected"), TINY)
@pytest.mark.parametrize("batch", [False, True], ids=["one by one", "together"])
def test_tiny_pools(cidr: str, expected: list[str], batch: bool) -> None:
    pool = factories.pool(cidr)
    if batch:
        got = [b["cidr"] for b in factories.ask(pool, *factories.holders(len(expected))).blocks]
    else:
        got = factories.drain(pool)
    assert got == expected
    with pytest.raises(errors.PoolExhausted):
        factories.take(pool)
    assert usage.pool_usage(pool)[6 if ":" in cidr else 4].capacity == len(expected)


def test_network_and_broadcast_addresses_are_blocks_when_blocks_are_larger() -> None:
    pool = factories.pool("10.20.0.0/22", mask=24)
    assert factories.drain(pool) == [f"10.20.{n}.0/24" for n in range(4)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["10.0.0.1/32", "10.0.0.2/32"]),
        ({"allow_first_ip": True}, ["10.0.0.0/32", "10.0.0.1/32", "10.0.0.2/32"]),
        ({"allow_last_ip": True}, ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"]),
    ],
)
def test_first_and_last_address_are_a_setting(
    settings: dict[str, bool], expected: list[str]
) -> None:
    assert factories.drain(factories.pool("10.0.0.0/30", **settings)) == expected


HUGE = [
    ("2001:db8:10::/48", 128, ["2001:db8:10::1/128", "2001:db8:10::2/128"], 2**80 - 1),
    ("fd00::/8", 120, ["fd00::/120", "fd00::100/120"], 2**112),
    ("10.0.0.0/8", 32, ["10.0.0.1/32", "10.0.0.2/32"], 2**24 - 2),
]


@pytest.mark.parametrize(("cidr", "mask", "expected", "capacity"), HUGE)
def test_huge_pools_are_not_enumerated(
    cidr: str, mask: int, expected: list[str], capacity: int
) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        pool = factories.pool(cidr, mask=mask)
        assert factories.cidrs(pool, 2) == expected
        middle = {
            "2001:db8:10::/48": "2001:db8:10:8000::1/128",
            "fd00::/8": "fdff:ffff::/120",
            "10.0.0.0/8": "10.128.0.0/32",
        }[cidr]
        assert factories.take(pool, cidr=middle)["cidr"] == middle
        factories.reserve(pool, str(factories.cidr(pool).cidr[1000]) + "-" + _last(pool))
    assert len(queries) < 100
    assert Block.objects.count() < 1000
    (used,) = usage.pool_usage(pool).values()
    assert used.capacity == capacity
    assert used.held + used.cooling + used.reserved + used.free == capacity


def _last(pool) -> str:
    return str(factories.cidr(pool).cidr[-1])


def test_a_block_as_large_as_its_cidr() -> None:
    assert factories.drain(factories.pool("10.0.0.0/24", mask=24)) == ["10.0.0.0/24"]


@pytest.mark.parametrize(("cidr", "mask"), [("10.0.0.0/24", 23), ("fd00::/64", 63)])
def test_a_cidr_smaller_than_a_block_is_refused(cidr: str, mask: int, breaks) -> None:
    from pools.models import PoolCIDR

    with pytest.raises(errors.InvalidInput):
        factories.pool(cidr, mask=mask)
    pool = factories.pool("10.8.0.0/13", "fd08::/16", mask={4: 23, 6: 63})
    with breaks("cidr_holds_a_block"):
        PoolCIDR.objects.bulk_create([PoolCIDR(pool=pool, space=pool.space, cidr=cidr)])
