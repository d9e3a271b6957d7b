"""Rule `cluster-prefix-is-divided`: node and instance prefixes."""

from ipaddress import IPv6Network, ip_network

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import blocks, errors


@pytest.mark.parametrize(
    ("prefix", "node", "instance"),
    [
        ("2001:db8:10::/48", "2001:db8:10::/64", "2001:db8:10:1::/64"),
        ("2001:db8:10:100::/56", "2001:db8:10:100::/64", "2001:db8:10:101::/64"),
        ("2001:db8:10:2::/63", "2001:db8:10:2::/64", "2001:db8:10:3::/64"),
        ("2001:db8:10::/64", "2001:db8:10::/80", "2001:db8:10:0:1::/80"),
    ],
)
def test_defaults(prefix: str, node: str, instance: str) -> None:
    divided = blocks.divide_cluster_prefix(ip_network(prefix))
    assert [str(part) for part in divided] == [node, instance]


@pytest.mark.parametrize(
    ("prefix", "part_text", "other"),
    [
        ("2001:db8::/48", "2001:db8:0:7::/64", "2001:db8:0:1::/64"),
        ("2001:db8::/48", "2001:db8::/64", "2001:db8:0:1::/64"),
        ("2001:db8::/48", "2001:db8::/49", "2001:db8:0:8000::/64"),
        ("2001:db8::/63", "2001:db8:0:1::/64", "2001:db8::/64"),
        ("2001:db8::/64", "2001:db8::/65", "2001:db8:0:0:8000::/80"),
    ],
)
def test_one_given_part_stays_and_the_other_gives_way(
    prefix: str, part_text: str, other: str
) -> None:
    whole, part = ip_network(prefix), ip_network(part_text)
    assert blocks.divide_cluster_prefix(whole, node=part) == (part, ip_network(other))
    node, instance = blocks.divide_cluster_prefix(whole, instance=part)
    assert instance == part
    assert node.subnet_of(whole)
    assert not node.overlaps(part)


@st.composite
def _prefix_and_part(draw: st.DrawFn) -> tuple[IPv6Network, IPv6Network]:
    length = draw(st.integers(16, 64))
    base = draw(st.integers(0x2000 << 112, 0xFEFF << 112))
    prefix = IPv6Network((base, length), strict=False)
    inner = draw(st.integers(length + 1, 128))
    number = int(prefix.network_address) + draw(st.integers(0, (1 << (128 - length)) - 1))
    return prefix, IPv6Network((number, inner), strict=False)


@hypothesis.given(_prefix_and_part())
def test_there_is_always_room_beside_a_smaller_part(
    case: tuple[IPv6Network, IPv6Network],
) -> None:
    prefix, part = case
    for divided in (
        blocks.divide_cluster_prefix(prefix, node=part),
        blocks.divide_cluster_prefix(prefix, instance=part),
    ):
        assert part in divided
        assert not divided[0].overlaps(divided[1])
        assert all(piece.subnet_of(prefix) for piece in divided)


@pytest.mark.parametrize(
    ("prefix", "parts", "code"),
    [
        ("2001:db8::/65", {}, "cluster_prefix"),
        ("2001:db8::/128", {}, "cluster_prefix"),
        ("10.0.0.0/8", {}, "cluster_prefix"),
        ("2001:db8::/48", {"node": "2001:db9::/64"}, "outside_cluster_prefix"),
        ("2001:db8::/48", {"instance": "2001:db8::/47"}, "outside_cluster_prefix"),
        ("2001:db8::/48", {"instance": "10.0.0.0/24"}, "outside_cluster_prefix"),
        ("2001:db8::/48", {"node": "2001:db8::/48"}, "cidr_overlap"),
        ("ffff:ffff:ffff:ffff::/64", {"node": "ffff:ffff:ffff:ffff::/64"}, "cidr_overlap"),
        (
            "2001:db8::/48",
            {"node": "2001:db8::/64", "instance": "2001:db8::/65"},
            "cidr_overlap",
        ),
    ],
)
def test_refused(prefix: str, parts: dict[str, str], code: str) -> None:
    networks = {name: ip_network(text) for name, text in parts.items()}
    with pytest.raises(errors.InvalidInput) as caught:
        blocks.divide_cluster_prefix(ip_network(prefix), **networks)
    assert caught.value.code == code
