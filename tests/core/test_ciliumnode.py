"""CiliumNodes, and the CIDRs of pods on them."""

import copy
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from pools.core import errors
from pools.core.cilium import ciliumnode, multipool, podippool
from tests.core.cilium_operator import Operator, Verb
from tests.core.pod_cidrs import node, pool

NODE: dict[str, Any] = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumNode",
    "metadata": {"name": "n1", "uid": "0a", "resourceVersion": "17", "labels": {"a": "b"}},
    "spec": {
        "addresses": [{"ip": "192.168.0.1", "type": "InternalIP"}],
        "ipam": {
            "podCIDRs": ["10.100.0.0/24"],
            "resourcepools": {"requested": []},
            "pools": {
                "requested": [
                    {"pool": "default", "needed": {"ipv4-addrs": 16, "ipv6-addrs": 8}},
                    {"pool": "blue", "needed": {"ipv4-addrs": 8}},
                ],
                "allocated": [
                    {
                        "pool": "blue",
                        "cidrs": ["10.20.0.0/27"],
                        "allowFirstIP": True,
                        "x": {"y": 1},
                    },
                    {"pool": "default", "cidrs": ["10.10.0.0/24", "fd00::/120"]},
                ],
            },
        },
    },
    "status": {"ipam": {"operator-status": {"error": "pool empty"}, "used": {}}},
}


def test_a_node_in_use() -> None:
    node = ciliumnode.parse(NODE)
    assert (node.name, node.uid, node.resource_version) == ("n1", "0a", "17")
    assert node.requested == {"default": {4: 16, 6: 8}, "blue": {4: 8, 6: 0}}
    assert node.held_cidrs() == {
        "blue": [ip_network("10.20.0.0/27")],
        "default": [ip_network("10.10.0.0/24"), ip_network("fd00::/120")],
    }
    assert node.pod_cidrs == (ip_network("10.100.0.0/24"),)
    assert node.operator_error == "pool empty"


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"spec": None},
        {"spec": {"ipam": {}}, "status": {}},
        {"spec": {"ipam": {"pools": {"requested": None, "allocated": []}}}},
        {"spec": {"ipam": {"pool": {"10.0.0.1": {}}, "pools": {}}}, "status": {"ipam": None}},
    ],
)
def test_a_node_that_says_nothing(rest: dict[str, Any]) -> None:
    assert ciliumnode.parse({"metadata": {"name": "n1"}} | rest) == ciliumnode.NodeDemand("n1")


def _node(pools: object) -> dict[str, Any]:
    return {"metadata": {"name": "n1"}, "spec": {"ipam": {"pools": pools}}}


def test_a_pool_that_is_listed_twice() -> None:
    twice = {"pool": "a", "cidrs": ["10.0.0.0/24"]}, {"pool": "a", "cidrs": ["10.0.1.0/24"]}
    needed = ({"pool": "a", "needed": {"ipv4-addrs": number}} for number in (16, 8))
    node = ciliumnode.parse(_node({"allocated": [*twice], "requested": [*needed]}))
    assert node.held_cidrs() == {"a": [ip_network("10.0.0.0/24"), ip_network("10.0.1.0/24")]}
    assert node.requested == {"a": {4: 16, 6: 0}}


@pytest.mark.parametrize(
    ("manifest", "field", "code"),
    [
        ([], "", "object_expected"),
        ({"kind": "Node", "metadata": {"name": "a"}}, "kind", "unsupported_kind"),
        ({}, "metadata.name", "required"),
        ({"metadata": {"name": "A"}}, "metadata.name", "k8s_name"),
        ({"metadata": {"name": "a", "uid": 1}}, "metadata.uid", "wrong_type"),
        ({"metadata": {"name": "a"}, "spec": []}, "spec", "wrong_type"),
        (_node({"requested": {}}), "spec.ipam.pools.requested", "wrong_type"),
        (_node({"requested": [{"needed": {}}]}), "spec.ipam.pools.requested.0.pool", "required"),
        (
            _node({"requested": [{"pool": "a", "needed": {"ipv4-addrs": -1}}]}),
            "spec.ipam.pools.requested.0.needed.ipv4-addrs",
            "out_of_range",
        ),
        (
            _node({"requested": [{"pool": "a", "needed": {"ipv6-addrs": True}}]}),
            "spec.ipam.pools.requested.0.needed.ipv6-addrs",
            "wrong_type",
        ),
        (
            _node({"allocated": [{"pool": "a", "cidrs": ["10.0.0.1/24"]}]}),
            "spec.ipam.pools.allocated.0.cidrs.0",
            "host_bits_set",
        ),
        (
            _node({"allocated": [{"pool": "a", "cidrs": [{}]}]}),
            "spec.ipam.pools.allocated.0.cidrs.0",
            "wrong_type",
        ),
    ],
)
def test_malformed_parts(manifest: object, field: str, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        ciliumnode.parse(manifest)
    assert [(problem.field, problem.code) for problem in caught.value.problems] == [(field, code)]


def test_writing_back_changes_the_allocation_only() -> None:
    before = copy.deepcopy(NODE)
    texts = ["10.9.0.0/24", "fd00::/120", "10.10.0.0/24"]
    written = ciliumnode.set_allocated(
        NODE,
        {
            "green": [ip_network("10.30.0.0/24")],
            "default": [*map(ip_network, texts)],
            "blue": [ip_network("10.20.0.32/27")],
            "empty": [],
        },
    )
    assert before == NODE
    expected = copy.deepcopy(NODE)
    expected["spec"]["ipam"]["pools"]["allocated"] = [
        {"pool": "blue", "cidrs": ["10.20.0.32/27"], "allowFirstIP": True, "x": {"y": 1}},
        {"pool": "default", "cidrs": ["10.10.0.0/24", "10.9.0.0/24", "fd00::/120"]},
        {"pool": "green", "cidrs": ["10.30.0.0/24"]},
    ]
    assert written == expected


def test_writing_to_a_node_without_pools() -> None:
    bare = {"metadata": {"name": "n1"}, "spec": None}
    written = ciliumnode.set_allocated(bare, {"a": [ip_network("10.0.0.0/24")]})
    assert ciliumnode.parse(written).held_cidrs() == {"a": [ip_network("10.0.0.0/24")]}
    assert "allocated" not in ciliumnode.set_allocated(NODE, {})["spec"]["ipam"]["pools"]


def test_the_operators_error() -> None:
    assert ciliumnode.error_text([]) == ""
    assert ciliumnode.error_text(["a", "b"]) == "ipam-multi-pool-sync allocation failed: a\nb"


# --- Cilium's multi-pool mode: addresses of blocks and nodes, and the PodCIDRs that nodes get, as
# a model of its operator says
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
NODE_LISTS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["a", "b", "none"]), st.integers(0, 30)),
        st.dictionaries(st.sampled_from(["a", "b", "none"]), st.lists(LISTED, max_size=4)),
    ),
    max_size=4,
)
RESERVED = st.sampled_from(["", "10.0.1.0-10.0.1.5", "10.0.0.15-10.0.0.15"])


@given(NODE_LISTS, RESERVED)
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
