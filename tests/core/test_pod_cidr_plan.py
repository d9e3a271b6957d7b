"""The plan of PodCIDRs is what a model of Cilium's operator does that starts with the same pools and nodes."""

from __future__ import annotations

from ipaddress import ip_network

from hypothesis import example, given
from hypothesis import strategies as st

from pools.core.cilium import ciliumnode, multipool, podippool
from tests.core.cilium_operator import Operator, Verb
from tests.core.pod_cidrs import node, pool

OLD = {"n1": ["10.0.0.0/24", "10.0.1.0/24"], "n2": ["10.0.2.0/24", "10.0.3.0/24"]}
# In the CIDRs of `a` and `b`, twice the same, larger than a block, and outside.
LISTED = st.sampled_from(
    ["10.0.1.0/30", "10.0.1.4/30", "10.0.1.8/29", "10.0.0.4/30", "10.1.0.0/30", "10.9.0.0/30"]
)
NODES = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["a", "b", "none"]), st.integers(0, 30)),
        st.dictionaries(st.sampled_from(["a", "b", "none"]), st.lists(LISTED, max_size=4)),
    ),
    max_size=4,
)
RESERVED = st.sampled_from(["", "10.0.1.0-10.0.1.5", "10.0.0.15-10.0.0.15"])


@given(NODES, RESERVED)
@example([({"a": 30}, {"a": ["10.0.1.0/30"]}), ({"b": 9}, {"a": ["10.0.1.0/30"]})], "")
def test_as_the_operator_does(
    demands: list[tuple[dict[str, int], dict[str, list[str]]]], reserved: str
) -> None:
    pools = [
        pool("a", "10.0.1.0/27", "10.0.0.0/28", mask=30, reserved=reserved),
        pool("b", "10.1.0.0/28", mask=30),
    ]
    nodes = [
        node(f"n{number}", demands=requested, **listed)
        for number, (requested, listed) in enumerate(demands)
    ]
    plans = multipool.plan(pools, nodes, families=[4])
    assert {name: (plan.blocks, plan.errors) for name, plan in plans.items()} == operator_plans(
        pools, nodes
    )


def operator_plans(
    pools: list[podippool.PodIPPool], nodes: list[ciliumnode.NodeDemand]
) -> dict[str, tuple[object, object]]:
    operator = Operator([4])
    for item in pools:
        operator.upsert_pool(item)
    for item in nodes:
        operator.allocate_to_node(item)
    operator.finish_restore()
    outcomes = {demand.name: operator.allocate_to_node(demand) for demand in nodes}
    return {
        name: (
            tuple((step.pool, step.cidr) for step in outcome.steps if step.verb is Verb.ALLOCATE),
            outcome.errors,
        )
        for name, outcome in outcomes.items()
    }


def test_does_the_new_cidr_fit_the_present_nodes() -> None:
    nodes = [node(name, demands={"a": 300}, a=cidrs) for name, cidrs in OLD.items()]
    after = multipool.drain_nodes(nodes, ip_network("10.0.0.0/16"))
    assert all(item.held_cidrs() == {"a": []} for item in after)
    fits = multipool.plan([pool("a", "10.1.0.0/22")], after, families=[4])
    assert [len(plan.blocks) for plan in fits.values()] == [2, 2]
    tight = multipool.plan([pool("a", "10.1.0.0/23")], after, families=[4])
    assert [bool(plan.errors) for plan in tight.values()] == [False, True]
    now = multipool.plan([pool("a", "10.0.0.0/22")], nodes, families=[4])
    assert not any(plan.blocks for plan in now.values())


def test_a_huge_demand_ends() -> None:
    demand = ciliumnode.NodeDemand("n1", requested={"b": {6: 2**63 - 1}})
    plans = multipool.plan([pool("b", "fd10::/16", mask=120)], [demand], families=[6])
    assert len(plans["n1"].blocks) == 10_000
    assert plans["n1"].errors[0].endswith("more than 10000 blocks at once")
