"""An exact block or address."""

from typing import Any

import pytest

from pools.core import errors
from pools.models import Block
from tests import factories


@pytest.mark.sample(5)
@pytest.mark.parametrize("window", [False, True], ids=["untouched", "window there"])
@pytest.mark.parametrize(
    ("cidr", "mask", "requested"),
    [
        ("10.0.0.0/24", None, "10.0.0.3/32"),
        ("10.0.0.0/24", None, "10.0.0.254/32"),
        ("10.20.0.0/16", 24, "10.20.200.0/24"),
        ("fd00::/64", None, "fd00::dead:beef/128"),
        ("fd00::/48", 64, "fd00:0:0:7::/64"),
    ],
)
def test_it_is_given_once(cidr: str, mask: int | None, requested: str, window: bool) -> None:
    pool = factories.pool(cidr, mask=mask)
    if window:
        factories.take(pool)
    block = factories.take(pool, cidr=requested)
    assert block["cidr"] == requested
    with pytest.raises(errors.AlreadyAllocated, match="held by another holder"):
        factories.take(pool, cidr=requested)
    rest = factories.ask(pool, *factories.holders(200)).blocks
    assert requested not in {item["cidr"] for item in rest}


def test_asking_for_ones_own_is_200() -> None:
    pool, who = factories.pool("10.0.0.0/24"), factories.holder()
    first = factories.ask(pool, who, cidr="10.0.0.9/32")
    second = factories.ask(pool, who, cidr="10.0.0.9/32")
    assert (first.status, second.status) == (201, 200)
    assert second.blocks == first.blocks


def test_of_another_uid_is_not_ones_own() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool, factories.holder("h", uid="u1"), cidr="10.0.0.9/32")
    with pytest.raises(errors.Conflict):
        factories.take(pool, factories.holder("h", uid="u2"), cidr="10.0.0.9/32")


REFUSED: list[Any] = [
    pytest.param({"cidr": "10.0.1.1/32"}, errors.InvalidInput, "is not in any CIDR", id="outside"),
    pytest.param({"cidr": "10.0.0.0/31"}, errors.InvalidInput, "not one of", id="wrong size"),
    pytest.param({"cidr": "fd00::1/128"}, errors.InvalidInput, "is not in any", id="other family"),
    pytest.param({"cidr": "10.0.0.0/32"}, errors.ReservedAddress, "first or last", id="network"),
    pytest.param({"cidr": "10.0.0.255/32"}, errors.ReservedAddress, "first or last", id="last"),
    pytest.param({"cidr": "10.0.0.50/32"}, errors.ReservedAddress, "reserved range", id="range"),
    pytest.param(
        {"cidr": "10.0.0.9/32", "count": 2}, errors.InvalidInput, "one holder", id="twice"
    ),
    pytest.param(
        {"cidr": "10.0.0.9/32", "family": 6},
        errors.InvalidInput,
        "not of the requested family",
        id="mixed",
    ),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("ask", "error", "message"), REFUSED)
def test_refused(ask: dict[str, Any], error: type[errors.IpamError], message: str) -> None:
    pool = factories.pool("10.0.0.0/24", reserved=["10.0.0.50-10.0.0.59"])
    with pytest.raises(error, match=message):
        factories.take(pool, **ask)
    assert not Block.objects.filter(state="held").exists()


def test_allowed_first_and_last_addresses() -> None:
    pool = factories.pool("10.0.0.0/24", allow_first_ip=True, allow_last_ip=True)
    for address in ("10.0.0.0/32", "10.0.0.255/32"):
        assert factories.take(pool, cidr=address)["cidr"] == address


def test_released_and_cooled_down_it_may_be_asked_for_again(clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    first = factories.take(pool, cidr="10.0.0.9/32")
    factories.give_back(first)
    with pytest.raises(errors.CoolingDown):
        factories.take(pool, cidr="10.0.0.9/32")
    clock.advance(61)
    assert factories.take(pool, cidr="10.0.0.9/32")["id"] == first["id"]


def test_of_the_same_pool_only() -> None:
    pool = factories.pool("10.0.0.0/24")
    other = factories.pool("10.0.1.0/24", within=pool.cluster)
    with pytest.raises(errors.InvalidInput, match="is not in any CIDR"):
        factories.take(other, cidr="10.0.0.9/32")
