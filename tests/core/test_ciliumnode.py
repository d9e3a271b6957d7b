"""CiliumNodes: what is read of them, and what is written back."""

import copy
from ipaddress import ip_network
from typing import Any

import pytest

from pools.core import errors
from pools.core.cilium import ciliumnode

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
