"""The operator against one that looks at every block: small pools, random lives of nodes.

One pool of two CIDRs (8 and 4 blocks of /30, two usable addresses each), three nodes, random
reserved ranges. Each step is a node that asks, a node that gives back, or a node that goes.
"""

from dataclasses import dataclass, field
from ipaddress import IPv4Network, ip_network
from typing import Any

from hypothesis import given, strategies as st

from pools.core import addresses
from pools.core.cilium import ciliumnode
from tests.core.cilium_operator import Verb
from tests.core.pod_cidrs import node, pool, started, texts

CIDRS = ["10.0.1.0/27", "10.0.0.0/28"]
PLACES = [list(ip_network(cidr).subnets(new_prefix=30)) for cidr in CIDRS]


@dataclass
class Naive:
    """Every block in a list; a pointer for each CIDR."""

    reserved: list[addresses.AddressRange]
    holders: dict[IPv4Network, str] = field(default_factory=dict)
    pointers: list[int] = field(default_factory=lambda: [0, 0])

    def free(self, block: IPv4Network) -> bool:
        touched = (
            span.overlaps(addresses.AddressRange.from_network(block)) for span in self.reserved
        )
        return block not in self.holders and not any(touched)

    def take(self, name: str) -> IPv4Network | None:
        for number, place in enumerate(PLACES):
            start = self.pointers[number]
            for index in (*range(start, len(place)), *range(start)):
                if self.free(place[index]):
                    self.pointers[number] = (index + 1) % len(place)
                    self.holders[place[index]] = name
                    return place[index]
        return None

    def blocks_of(self, name: str) -> list[IPv4Network]:
        return sorted(block for block, holder in self.holders.items() if holder == name)

    def serve(self, name: str, keeps: list[IPv4Network], needed: int) -> list[IPv4Network]:
        for block in set(self.blocks_of(name)) - set(keeps):
            del self.holders[block]
        got = []
        while 2 * (len(keeps) + len(got)) < needed and (block := self.take(name)):
            got.append(block)
        return got


NODES = st.sampled_from(["n1", "n2", "n3"])
STEPS = st.one_of(
    st.tuples(st.just("ask"), NODES, st.integers(0, 30)),
    st.tuples(st.just("give back"), NODES, st.integers(0, 3)),
    st.tuples(st.just("go"), NODES, st.just(0)),
)
RANGES = st.lists(st.tuples(st.integers(0, 31), st.integers(0, 8)), max_size=2)


@given(RANGES, st.lists(STEPS, max_size=25))
def test_the_same_blocks_in_the_same_order(
    ranges: list[tuple[int, int]], steps: list[tuple[str, str, int]]
) -> None:
    base = ip_network(CIDRS[0])[0]
    spans = [
        addresses.AddressRange(base + start, base + min(start + length, 31))
        for start, length in ranges
    ]
    naive = Naive(spans)
    operator = started(pool("a", *CIDRS, mask=30, reserved=" ".join(map(str, spans))))
    for verb, name, number in steps:
        if verb == "go":
            operator.release_node(name)
            naive.serve(name, [], 0)
            continue
        keeps = naive.blocks_of(name)[number if verb == "give back" else 0 :]
        expected = number if verb == "ask" else 0
        outcome = operator.allocate_to_node(_listing(name, keeps, expected))
        assert outcome.cidrs(Verb.ALLOCATE) == naive.serve(name, keeps, expected)
        assert bool(outcome.errors) == (2 * len(naive.blocks_of(name)) < expected)
        _nobody_shares(operator, naive)


def _listing(name: str, keeps: list[IPv4Network], needed: int) -> ciliumnode.NodeDemand:
    return node(name, demands={"a": needed}, a=texts(keeps))


def _nobody_shares(operator: Any, naive: Naive) -> None:
    for name in ("n1", "n2", "n3"):
        assert operator.allocated(name).get("a", []) == naive.blocks_of(name)
