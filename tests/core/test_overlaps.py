"""Networks in networks, against looking at every pair."""

from ipaddress import ip_network
from itertools import combinations

from hypothesis import given, strategies as st

from pools.core import cidr_sets

V4 = st.tuples(st.integers(0, 31), st.integers(27, 32)).map(
    lambda pair: ip_network((0x0A000000 + pair[0], pair[1]), strict=False)
)
V6 = st.integers(112, 128).map(lambda length: ip_network(f"fd00::/{length}"))


@given(st.lists(st.one_of(V4, V6), max_size=12))
def test_every_pair(networks: list) -> None:
    owned = [(network, number) for number, network in enumerate(networks)]
    result = [(outer, inner) for outer, inner in cidr_sets.nested_pairs(owned)]
    for (outer, _), (inner, _) in result:
        assert cidr_sets.contains(outer, inner)
    pairs = {frozenset((first[1], other[1])) for first, other in result}
    assert len(pairs) == len(result)
    assert pairs == {
        frozenset((first[1], other[1]))
        for first, other in combinations(owned, 2)
        if first[0].version == other[0].version and first[0].overlaps(other[0])
    }


def test_holds() -> None:
    assert cidr_sets.contains(ip_network("10.0.0.0/8"), ip_network("10.0.0.0/8"))
    assert not cidr_sets.contains(ip_network("10.0.0.0/16"), ip_network("10.0.0.0/8"))
    assert not cidr_sets.contains(ip_network("::/0"), ip_network("10.0.0.0/8"))


SPACED = st.lists(st.tuples(st.one_of(V4, V6), st.integers(0, 3)), max_size=14)


@given(SPACED)
def test_across_spaces_only_what_overlaps_another_space(networks: list) -> None:
    owned = [(network, (space, number)) for number, (network, space) in enumerate(networks)]
    groups = list(cidr_sets.overlap_groups(owned, space=lambda owner: owner[0]))
    for first, *others in groups:
        assert all(cidr_sets.contains(first[0], network) for network, _ in others)
    owners = [owner for group in groups for _, owner in group]
    assert len(owners) == len(set(owners))
    assert set(owners) == {
        owner
        for pair in combinations(owned, 2)
        if pair[0][1][0] != pair[1][1][0]
        and pair[0][0].version == pair[1][0].version
        and pair[0][0].overlaps(pair[1][0])
        for _, owner in pair
    }


def test_a_thousand_equal_networks_are_one_group() -> None:
    equal = [(ip_network("10.0.0.0/16"), number) for number in range(1000)]
    (group,) = cidr_sets.overlap_groups(equal, space=lambda number: number)
    assert len(group) == 1000
