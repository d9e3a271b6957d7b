"""What the webhook lets pass with a word: legal, and hardly what was meant."""

from typing import Any

import pytest

from pools.models import Pool
from pools.webhooks import reviews
from tests import factories
from tests.edges.webhooks import Door, changed, manifest, reserving, warned

CIDR = "10.0.0.0/16"


@pytest.fixture
def door() -> Door:
    return Door(factories.cluster())


def _pool(door: Door, *cidrs: str, name: str = "green", **settings: Any) -> Pool:
    settings = {"mask": 24, "category": "pod"} | settings
    return factories.pool(*cidrs or (CIDR,), within=door.cluster, name=name, **settings)


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (
            manifest("green", CIDR, pool=reserving(CIDR, "10.0.0.0-10.0.255.255")),
            "spec.ipv4.cidrs.0: all of 10.0.0.0/16 is reserved",
        ),
        (
            manifest("green", CIDR, pool=reserving(CIDR, "10.0.0.10-10.0.0.20")),
            "10.0.0.10-10.0.0.20 touches 10.0.0.0/24 in part",
        ),
        (
            manifest("green", {"cidr": CIDR, "reservedRange": "10.0.0.0-10.0.2.7"}),
            "10.0.0.0-10.0.2.7 touches 10.0.2.0/24 in part",
        ),
        (manifest("green", "10.0.0.0/24", mask=26), "spec.ipv4.maskSize: only 4 blocks of /26"),
        (manifest("green", "fd00::/64", mask=112), "has 281474976710656 blocks"),
        (manifest("green", "fd00::/64", mask=112), "operator refuses a mask size above 80"),
        (manifest("green", "100.64.0.0/16"), "carrier-grade NAT"),
        ({**manifest("green"), "spec": {}}, "spec: neither ipv4 nor ipv6"),
    ],
)
def test_odd_specs(door: Door, odd: Any, told: str) -> None:
    warnings = warned(door.ask(odd))
    assert told in warnings
    # Said once: a later change of another part says nothing of it again.
    if odd["spec"]:
        assert told not in warned(door.ask({**odd, "spec": odd["spec"] | {"podSelector": {}}}, odd))


def test_a_good_spec_needs_no_word(door: Door) -> None:
    good = manifest("green", CIDR, pool=reserving(CIDR, "10.0.0.0-10.0.3.255"))
    assert warned(door.ask(good)) == ""


def test_a_range_over_blocks_in_use(door: Door) -> None:
    pool = _pool(door)
    factories.take(pool, factories.holder("n1", kind="node"))
    before = manifest("green", CIDR)
    after = changed(before, pool=reserving(CIDR, "10.0.0.0-10.0.7.255"))
    text = "10.0.0.0-10.0.7.255 is reserved while in use, until it is released: 1 held"
    assert text in warned(door.ask(after, before))
    elsewhere = changed(before, pool=reserving(CIDR, "10.0.8.0-10.0.15.255"))
    assert warned(door.ask(elsewhere, before)) == ""
    added = "10.9.0.0/16"
    unknown = changed(before, cidrs=[CIDR, added], pool=reserving(added, "10.9.0.0-10.9.0.255"))
    assert warned(door.ask(unknown, before)) == ""


def test_v2alpha1_would_drop_reserved_ranges(door: Door) -> None:
    _pool(door, reserved=["10.0.0.0-10.0.7.255"])
    before = manifest("green", CIDR, version="v2alpha1")
    after = changed(before, cidrs=[CIDR, "10.9.0.0/16"])
    assert "v2alpha1 cannot hold the 1 reserved ranges" in warned(door.ask(after, before))


def test_a_family_that_the_other_pools_have(door: Door) -> None:
    _pool(door, "10.1.0.0/16", "fd00:1::/48", name="blue", mask={4: 24, 6: 64})
    assert "no ipv6, which other pools" in warned(door.ask(manifest("green", CIDR)))


def test_the_register_knows_nothing_of_it(door: Door) -> None:
    assert "the register has no pool green" in warned(door.ask(None, manifest("green")))
    both = manifest("green", CIDR, "10.9.0.0/16")
    assert "does not know 10.9.0.0/16" in warned(door.ask(changed(both, cidrs=[CIDR]), both))


def test_overlap_with_another_cluster(door: Door) -> None:
    other = factories.pool("10.0.5.0/24", category="pod", mask=28)
    message = f"10.0.0.0/16 overlaps 10.0.5.0/24 of the pool {other.name} of {other.cluster.name}"
    assert message in warned(door.ask(manifest("green", CIDR)))


def test_a_new_object_without_a_cidr_in_use(door: Door) -> None:
    pool = _pool(door, CIDR, "10.1.0.0/16")
    factories.take(pool, factories.holder("n1", kind="node"))
    assert "10.0.0.0/16 stays an orphan" in warned(door.ask(manifest("green", "10.1.0.0/16")))


def test_lengths() -> None:
    long = reviews.shorten_warnings(["a\nb" + "x" * 300] * 40)
    assert max(map(len, long)) == 256
    assert sum(map(len, long)) <= 4096
    assert long[-1] == f"and {40 - len(long) + 1} more warnings"
    assert long[0].startswith("a b")
    assert reviews.shorten_warnings(["one", "two"]) == ["one", "two"]
