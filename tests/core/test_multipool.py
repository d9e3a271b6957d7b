"""Cilium's multi-pool mode: addresses of blocks and nodes, and the PodCIDRs that nodes get, as a model of its operator says."""

from ipaddress import ip_network

import pytest
from hypothesis import example, given, strategies as st

from pools.core import errors
from pools.core.cilium import ciliumnode, multipool, podippool
from tests.core.cilium_operator import Operator, Verb
from tests.core.pod_cidrs import node, pool

COUNTS = st.integers(0, 1 << 40)


@pytest.mark.parametrize(
    ("in_use", "pending", "pre_allocated", "needed"),
    [
        (0, 0, 16, 16),
        (1, 0, 16, 32),
        (10, 5, 16, 32),
        (16, 0, 16, 32),
        (16, 1, 16, 48),
        (0, 0, 0, 0),
        (3, 2, 0, 5),
        (7, 0, 1, 8),
    ],
)
def test_needed(in_use: int, pending: int, pre_allocated: int, needed: int) -> None:
    result = multipool.needed_addresses(in_use=in_use, pending=pending, pre_allocated=pre_allocated)
    assert result == needed


@given(COUNTS, COUNTS, COUNTS)
def test_both_forms_agree(in_use: int, pending: int, pre_allocated: int) -> None:
    needed = multipool.needed_addresses(in_use=in_use, pending=pending, pre_allocated=pre_allocated)
    demand = in_use + pending + pre_allocated  # the formula of Cilium's documentation
    assert needed == (-(-demand // pre_allocated) * pre_allocated if pre_allocated else demand)
    assert needed >= in_use + pending + pre_allocated


def test_what_a_node_will_request() -> None:
    requested = multipool.requested_addresses(
        {"default": 8, "idle": 0},
        in_use={"blue": {4: 3}, "default": {4: 9}},
        pending={"blue": {4: 1, 6: 1}},
    )
    assert requested == {"blue": {4: 4, 6: 1}, "default": {4: 24, 6: 8}}
    assert multipool.requested_addresses({"default": 8}, in_use={}, families=[4]) == {
        "default": {4: 8}
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"default": 8}),
        ("  ", {"default": 8}),
        ("default=8", {"default": 8}),
        ("default=0,other=4", {"default": 0, "other": 4}),
        (" default = 8 , other=4\n", {"default": 8, "other": 4}),
        ("a.b-c=2147483647", {"a.b-c": 2147483647}),
    ],
)
def test_pre_allocation(text: str, expected: dict[str, int]) -> None:
    assert multipool.parse_pre_allocation(text) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (8, "wrong_type"),
        ("default", "pre_allocation"),
        ("=8", "pre_allocation"),
        ("default=8,", "pre_allocation"),
        ("a=1,b=2,a=1", "duplicate_key"),
        ("Default=8", "k8s_name"),
        ("default=", "pre_allocation_value"),
        ("default=-1", "pre_allocation_value"),
        ("default=1.5", "pre_allocation_value"),
        ("default=+8", "pre_allocation_value"),
        ("default=\uff18", "pre_allocation_value"),
        ("default=2147483648", "pre_allocation_value"),
        ("default=" + "9" * 5000, "pre_allocation_value"),
        ("default=8=9", "pre_allocation_value"),
    ],
)
def test_pre_allocation_refused(text: object, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        multipool.parse_pre_allocation(text, field="map")
    assert (caught.value.code, caught.value.problems[0].field) == (code, "map")


def test_pre_allocation_in_ciliums_words() -> None:
    with pytest.raises(errors.InvalidInput, match='invalid value for pool "x"'):
        multipool.parse_pre_allocation("default=8,x=many")


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
