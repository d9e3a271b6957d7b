"""A pool written in a cluster's shape is read back as the same pool."""

from __future__ import annotations

import dataclasses
from ipaddress import ip_address, ip_network
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import addresses, errors
from pools.core.cilium import podippool

BASES = {4: ("10.0.0.0", 8), 6: ("fd00::", 104)}


@st.composite
def _entry(draw: st.DrawFn, family: int, number: int, most: int) -> podippool.CidrEntry:
    base, length = BASES[family]
    start = ip_address(base) + (number << 16)
    bounds = draw(st.lists(st.integers(0, 0xFFFF), max_size=2 * most, unique=True).map(sorted))
    ranges = [
        addresses.AddressRange(start + first, start + last)
        for first, last in zip(bounds[::2], bounds[1::2], strict=False)
    ]
    return podippool.CidrEntry(ip_network((int(start), length + 8)), tuple(ranges))


@st.composite
def _pools(draw: st.DrawFn, most: int) -> podippool.PodIPPool:
    families = {}
    for family in draw(st.sampled_from([(4,), (6,), (4, 6)])):
        numbers = draw(st.lists(st.integers(0, 255), min_size=1, max_size=4, unique=True))
        entries = tuple(draw(_entry(family, number, most)) for number in numbers)
        families[family] = podippool.Family(entries, BASES[family][1] + 16)
    texts = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2)
    selectors = st.none() | st.just({}) | st.just({"matchLabels": {"a": "b"}})
    return podippool.PodIPPool(
        name=draw(st.sampled_from(["default", "green-pool", "a.b"])),
        families=families,
        allow_first_ip=draw(st.booleans()),
        allow_last_ip=draw(st.booleans()),
        annotations=draw(texts),
        labels=draw(texts),
        pod_selector=draw(selectors),
        namespace_selector=draw(selectors),
    )


MOST = {
    podippool.Shape.V2ALPHA1: 0,
    podippool.Shape.V2_PROPOSAL: 1,
    podippool.Shape.V2: 4,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", MOST, ids=lambda shape: shape.value)
@hypothesis.given(data=st.data())
def test_round_trip(shape: podippool.Shape, data: st.DataObject) -> None:
    pool = data.draw(_pools(MOST[shape]))
    version = "cilium.io/v2alpha1" if shape is podippool.Shape.V2ALPHA1 else "cilium.io/v2"
    rendered = podippool.render(pool, shape=shape)
    assert podippool.parse_document(rendered) == [dataclasses.replace(pool, api_version=version)]


RANGES = (
    addresses.parse_range("10.0.0.0-10.0.0.9"),
    addresses.parse_range("10.0.1.0-10.0.1.0"),
)


def _pool(*ranges: addresses.AddressRange) -> podippool.PodIPPool:
    entry = podippool.CidrEntry(ip_network("10.0.0.0/16"), ranges)
    plain = podippool.CidrEntry(ip_network("10.1.0.0/16"))
    return podippool.PodIPPool("green", {4: podippool.Family((plain, entry), 24)})


@pytest.mark.parametrize(
    ("shape", "ranges"),
    [
        (podippool.Shape.V2ALPHA1, RANGES[:1]),
        (podippool.Shape.V2_PROPOSAL, RANGES),
    ],
    ids=["v2alpha1", "proposal-two"],
)
def test_a_range_is_never_left_out(
    shape: podippool.Shape, ranges: tuple[addresses.AddressRange, ...]
) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        podippool.render(_pool(*ranges), shape=shape)
    assert caught.value.code == "shape_cannot_hold_ranges"
    assert caught.value.problems[0].field == "spec.ipv4.cidrs.1"


@pytest.mark.parametrize(
    ("shape", "ranges", "ipv4"),
    [
        (
            podippool.Shape.V2,
            RANGES,
            {
                "cidrs": ["10.1.0.0/16", "10.0.0.0/16"],
                "maskSize": 24,
                "pool": [
                    {
                        "cidr": "10.0.0.0/16",
                        "reservedRanges": [
                            {"start": "10.0.0.0", "end": "10.0.0.9"},
                            {"start": "10.0.1.0", "end": "10.0.1.0"},
                        ],
                    }
                ],
            },
        ),
        (
            podippool.Shape.V2_PROPOSAL,
            RANGES[:1],
            {
                "cidrs": [
                    {"cidr": "10.1.0.0/16"},
                    {"cidr": "10.0.0.0/16", "reservedRange": "10.0.0.0-10.0.0.9"},
                ],
                "maskSize": 24,
            },
        ),
        (
            podippool.Shape.V2ALPHA1,
            (),
            {"cidrs": ["10.1.0.0/16", "10.0.0.0/16"], "maskSize": 24},
        ),
    ],
    ids=["shipped", "proposal", "v2alpha1"],
)
def test_the_shape_is_that_of_the_crd(
    shape: podippool.Shape, ranges: tuple[addresses.AddressRange, ...], ipv4: dict[str, Any]
) -> None:
    assert podippool.render(_pool(*ranges), shape=shape)["spec"] == {"ipv4": ipv4}
