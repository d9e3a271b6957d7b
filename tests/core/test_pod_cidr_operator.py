"""Which PodCIDRs nodes get: facts about Cilium's operator, one by one."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from pools.core.cilium import ciliumnode
from tests.core.cilium_operator import NOT_READY, Operator, Verb
from tests.core.pod_cidrs import node, pool, started, texts


def test_nothing_is_handed_out_before_all_nodes_were_seen() -> None:
    operator = Operator([4])
    operator.upsert_pool(pool("a", "10.0.0.0/16"))
    outcome = operator.allocate_to_node(
        node(demands={"a": 8}, a=["10.0.0.0/24"], b=["10.1.0.0/24"])
    )
    assert outcome.errors == (NOT_READY,)
    assert [step.verb for step in outcome.steps] == [Verb.OCCUPY, Verb.ORPHAN]
    operator.finish_restore()
    second = operator.allocate_to_node(node("n2", demands={"a": 300}))
    assert texts(second.cidrs(Verb.ALLOCATE)) == ["10.0.1.0/24", "10.0.2.0/24"]


@pytest.mark.parametrize(
    ("demands", "flags", "blocks"),
    [
        (0, {}, 0),
        (1, {}, 1),
        (14, {}, 1),
        (15, {}, 2),
        (15, {"first": True}, 1),
        (16, {"first": True}, 2),
        (16, {"first": True, "last": True}, 1),
    ],
)
def test_as_many_blocks_as_are_needed(demands: int, flags: dict[str, bool], blocks: int) -> None:
    operator = started(pool("a", "10.0.0.0/24", mask=28, **flags))
    assert len(operator.allocate_to_node(node(demands={"a": demands})).steps) == blocks


def test_cidrs_in_the_order_of_the_pool_and_next_fit_in_each() -> None:
    operator = started(pool("a", "10.9.0.0/30", "10.1.0.0/30", mask=32))
    first = operator.allocate_to_node(node(demands={"a": 2}))
    assert texts(first.cidrs(Verb.ALLOCATE)) == ["10.9.0.0/32", "10.9.0.1/32"]
    operator.allocate_to_node(node())
    again = operator.allocate_to_node(node(demands={"a": 5}))
    assert texts(again.cidrs(Verb.ALLOCATE)) == [
        *("10.9.0.2/32", "10.9.0.3/32", "10.9.0.0/32", "10.9.0.1/32"),
        "10.1.0.0/32",
    ]


def test_partial_success_keeps_what_there_was_and_joins_the_errors() -> None:
    operator = started(pool("a", "10.0.0.0/23"), pool("b", "10.1.0.0/24"))
    outcome = operator.allocate_to_node(node(demands={"a": 600, "gone": 1, "b": 100}))
    assert texts(outcome.cidrs(Verb.ALLOCATE)) == ["10.0.0.0/24", "10.0.1.0/24", "10.1.0.0/24"]
    assert outcome.errors == (
        'failed to allocate ipv4 address for node "n1" from pool "a": pool empty',
        'failed to allocate ipv4 address for node "n1" from pool "gone": '
        "cannot allocate from non-existing pool: gone",
    )


def test_wrong_lists() -> None:
    operator = started(pool("a", "10.0.0.0/16"), pool("b", "10.1.0.0/16"))
    operator.allocate_to_node(node(a=["10.0.0.0/24"]))
    outcome = operator.allocate_to_node(
        node("n2", a=["10.0.0.0/24", "10.0.0.0/25", "10.1.0.0/24"], gone=["10.7.0.0/24"])
    )
    assert outcome.errors == (
        "unable to reuse from pool a: cidr 10.0.0.0/24 has already been allocated",
        "unable to reuse from pool a: cidr 10.0.0.0/25 has already been allocated",
        "unable to reuse from pool a: cidr 10.1.0.0/24 is not part of the requested pool",
        "unable to find pool gone, prefix 10.7.0.0/24 is still allocated to the node but is "
        "marked as orphan",
    )
    allocated = operator.allocated("n2")
    assert {name: texts(cidrs) for name, cidrs in allocated.items()} == {
        "a": ["10.1.0.0/24"],
        "gone": ["10.7.0.0/24"],
    }


def test_larger_pieces_than_blocks() -> None:
    operator = started(pool("a", "10.0.0.0/22"))
    operator.allocate_to_node(node(a=["10.0.0.0/23"]))
    got = operator.allocate_to_node(node("n2", demands={"a": 999})).cidrs(Verb.ALLOCATE)
    assert texts(got) == ["10.0.2.0/24", "10.0.3.0/24"]
    assert texts(operator.allocate_to_node(node()).cidrs(Verb.RELEASE)) == ["10.0.0.0/23"]
    assert len(operator.allocate_to_node(node("n3", demands={"a": 999})).steps) == 2


def test_reserved_blocks_are_skipped_stay_with_their_nodes_and_come_back() -> None:
    reserved = "10.0.0.10-10.0.0.20 10.0.2.0-10.0.2.255"
    operator = started(pool("a", "10.0.0.0/22", reserved=reserved))
    held = node(demands={"a": 1}, a=["10.0.0.0/24"])
    assert operator.allocate_to_node(held).cidrs(Verb.OCCUPY) == [ip_network("10.0.0.0/24")]
    other = operator.allocate_to_node(node("n2", demands={"a": 999}))
    assert texts(other.cidrs(Verb.ALLOCATE)) == ["10.0.1.0/24", "10.0.3.0/24"]
    operator.allocate_to_node(node())
    assert operator.allocate_to_node(node("n3", demands={"a": 1})).steps == ()
    operator.upsert_pool(pool("a", "10.0.0.0/22"))
    cleared = operator.allocate_to_node(node("n3", demands={"a": 999})).cidrs(Verb.ALLOCATE)
    assert texts(cleared) == ["10.0.0.0/24", "10.0.2.0/24"]


def test_a_node_that_is_gone_gives_everything_back() -> None:
    operator = started(pool("a", "10.0.0.0/24"))
    operator.allocate_to_node(node(demands={"a": 1}, gone=["10.7.0.0/24"]))
    assert texts(operator.release_node("n1").cidrs(Verb.RELEASE)) == ["10.0.0.0/24", "10.7.0.0/24"]
    assert operator.allocated("n1") == operator.orphans("n1") == {}
    assert len(operator.allocate_to_node(node("n2", demands={"a": 1})).steps) == 1


def test_huge_networks_and_huge_demands_end() -> None:
    operator = Operator([6], max_blocks=100)
    reserved = "fd00::-fd00::ffff:ffff:ffff"
    operator.upsert_pool(pool("a", "fd00::/64", mask=120, reserved=reserved))
    operator.upsert_pool(pool("b", "fd10::/16", mask=120))
    operator.finish_restore()
    demand = ciliumnode.NodeDemand("n1", requested={"a": {6: 255}, "b": {6: 2**63 - 1}})
    outcome = operator.allocate_to_node(demand)
    assert str(outcome.steps[0].cidr) == "fd00::1:0:0:0/120"
    assert len(outcome.steps) == 100
    assert outcome.errors[0].endswith("more than 100 blocks at once")
