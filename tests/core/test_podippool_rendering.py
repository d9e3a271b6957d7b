"""A pool written in a cluster's shape is read back as the same pool."""

import dataclasses
from ipaddress import ip_address, ip_network
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import addresses, errors
from pools.core.cilium import podippool
from pools.platform import documents
from tests.core.pod_pool_texts import DUAL_STACK, HELM, PROPOSED, SHIPPED, TODAY

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


def _read(text: str) -> list[podippool.PodIPPool]:
    return [
        pool
        for document in documents.load_yaml(text)
        for pool in podippool.parse_document(document.data)
    ]


def _family(*entries: tuple[str, ...], mask_size: int) -> podippool.Family:
    return podippool.Family(
        tuple(
            podippool.CidrEntry(ip_network(cidr), tuple(map(addresses.parse_range, ranges)))
            for cidr, *ranges in entries
        ),
        mask_size,
    )


PLAIN_V4 = _family(("10.20.0.0/16",), ("10.30.0.0/16",), mask_size=24)


@pytest.mark.parametrize(
    ("text", "families"),
    [
        pytest.param(TODAY, {4: PLAIN_V4}, id="cfp-42466-current"),
        pytest.param(
            PROPOSED,
            {4: _family(("10.20.0.0/16", "10.20.0.0-10.20.0.99"), ("10.30.0.0/16",), mask_size=24)},
            id="cfp-42466-proposed",
        ),
        pytest.param(
            DUAL_STACK, {4: PLAIN_V4, 6: _family(("fd00::/104",), mask_size=120)}, id="documented"
        ),
        pytest.param(
            SHIPPED,
            {
                4: _family(
                    ("10.20.0.0/16", "10.20.0.0-10.20.0.99", "10.20.9.0-10.20.9.0"),
                    ("10.30.0.0/16",),
                    mask_size=24,
                )
            },
            id="shipped",
        ),
    ],
)
def test_the_shapes_of_one_pool(text: str, families: dict[int, podippool.Family]) -> None:
    (pool,) = _read(text)
    assert (pool.name, pool.families, pool.source) == ("green-pool", families, "")


def _indented(text: str, *parents: str) -> str:
    for parent in reversed(parents):
        text = f"{parent}:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    return text


POOLS = "\n".join(line[6:] for line in HELM.splitlines()[5:])
VALUE = "autoCreateCiliumPodIPPools"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        pytest.param(HELM, f"ipam.operator.{VALUE}.", id="documented-values"),
        pytest.param(
            _indented(HELM, "cilium"), f"cilium.ipam.operator.{VALUE}.", id="chart-of-charts"
        ),
        pytest.param(_indented(POOLS, "operator", VALUE), f"operator.{VALUE}.", id="from-operator"),
        pytest.param(_indented(POOLS, VALUE), f"{VALUE}.", id="from-the-value"),
        pytest.param(POOLS, "", id="the-map-alone"),
    ],
)
def test_helm_values(text: str, source: str) -> None:
    pools = _read(text)
    assert [pool.name for pool in pools] == ["default", "other"]
    assert [pool.source for pool in pools] == [f"{source}default", f"{source}other"]
    assert [pool.api_version for pool in pools] == ["", ""]
    assert pools[0].families == {4: _family(("10.10.0.0/16",), mask_size=24)}


@pytest.mark.parametrize("kind", ["List", "CiliumPodIPPoolList"])
def test_lists(kind: str) -> None:
    items = [document.data for document in documents.load_yaml(f"{TODAY}---{SHIPPED}")]
    pools = podippool.parse_document({"apiVersion": "v1", "kind": kind, "items": items})
    assert [pool.source for pool in pools] == ["items.0", "items.1"]
    assert [pool.api_version for pool in pools] == ["cilium.io/v2alpha1", "cilium.io/v2"]
    assert podippool.parse_document({"apiVersion": "v1", "kind": kind, "items": None}) == []


def test_what_a_cluster_has_accepted_may_have_newer_fields() -> None:
    doc: dict[str, Any] = documents.load_yaml(SHIPPED)[0].data
    doc["spec"]["ipv4"]["pool"][0]["weight"] = 7
    doc["spec"]["newer"] = {}
    (pool,) = podippool.parse_document(doc, strict=False)
    assert len(pool.families[4].cidrs[0].reserved) == 2
