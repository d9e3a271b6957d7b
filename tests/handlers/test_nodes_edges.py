"""Which addresses of a block pods can use is what the node's entry says (rule `entry-says-what-is-usable`)."""

import copy
from typing import Any

import pytest

from pools.cilium import pod_cidrs
from tests.handlers.node_world import World, manifest
from tests.kube.fake import FakeCluster
from tests.kube.fake.cluster import CRDS, definitions

NODES = "ciliumnodes"


@pytest.fixture
def world(server: Any, db: None, settings: Any) -> World:
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    for node in server.objects(NODES):
        server.remove(NODES, node["metadata"]["name"])
    world = World(server, managed_resource=True)
    world.pool("a", "10.30.0.0/24", mask=30, allow_first_ip=True, allow_last_ip=True)
    return world


def _entries(world: World) -> list[dict[str, Any]]:
    pools: dict[str, list[dict[str, Any]]] = world.fake.object(NODES, "n1")["spec"]["ipam"]["pools"]
    return pools["allocated"]


def _converged(world: World) -> None:
    """Nothing more is written."""
    world.passed()
    before = world.fake.object(NODES, "n1")["metadata"]["resourceVersion"]
    world.passed()
    assert world.fake.object(NODES, "n1")["metadata"]["resourceVersion"] == before


def test_a_new_entry_repeats_the_flags_of_its_pool(world: World) -> None:
    world.follow_node("n1", demands={"a": 4})
    assert _entries(world) == [
        {"pool": "a", "cidrs": ["10.30.0.0/30"], "allowFirstIP": True, "allowLastIP": True}
    ]
    _converged(world)
    assert len(world.held()) == 1


def test_false_flags_are_not_written(world: World) -> None:
    world.pool("b", "10.31.0.0/24", mask=30, allow_first_ip=True)
    world.pool("c", "10.32.0.0/24", mask=30)
    world.follow_node("n1", demands={"b": 3, "c": 2})
    assert _entries(world) == [
        {"pool": "b", "cidrs": ["10.31.0.0/30"], "allowFirstIP": True},
        {"pool": "c", "cidrs": ["10.32.0.0/30"]},
    ]


def test_an_entry_without_flags_has_two_addresses_less_and_stays_as_it_is(world: World) -> None:
    world.follow_node("n1", demands={"a": 4}, lists={"a": ["10.30.0.4/30"]})
    assert _entries(world) == [{"pool": "a", "cidrs": ["10.30.0.0/30", "10.30.0.4/30"]}]
    (node,) = pod_cidrs.list_nodes(world.cluster.pk)
    (demand,) = node.pools
    assert (demand.usable[4], demand.missing[4]) == (4, 0)
    _converged(world)


def test_an_entry_with_flags_keeps_them_although_the_pool_has_none(world: World) -> None:
    world.pool("b", "10.31.0.0/24", mask=30)
    node = manifest("n1", demands={"b": 8})
    entry = {"pool": "b", "cidrs": ["10.31.0.0/30"], "allowLastIP": True}
    node["spec"]["ipam"]["pools"]["allocated"] = [entry]
    world.fake.put(node, manager="cilium-agent")
    world.passed()
    assert _entries(world) == [entry | {"cidrs": ["10.31.0.0/30", "10.31.0.4/30", "10.31.0.8/30"]}]


def test_an_entry_that_the_agent_emptied_is_made_anew(world: World) -> None:
    node = manifest("n1", demands={"a": 4})
    node["spec"]["ipam"]["pools"]["allocated"] = [{"pool": "a", "cidrs": [], "allowFirstIP": False}]
    world.fake.put(node, manager="cilium-agent")
    world.passed()
    assert _entries(world)[0]["cidrs"] == ["10.30.0.0/30"]
    (demand,) = pod_cidrs.list_nodes(world.cluster.pk)[0].pools
    assert demand.missing[4] == 0


def test_a_definition_that_prunes_the_flags_is_not_written_forever(fake: FakeCluster) -> None:
    """Cilium before 1.20: what the API server stored is what counts."""
    world = World(fake, managed_resource=True)
    world.pool("a", "10.30.0.0/24", mask=30, allow_first_ip=True, allow_last_ip=True)
    (shipped,) = definitions(CRDS / "cilium.io_ciliumnodes.yaml")
    definition = copy.deepcopy(shipped)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    pools = schema["properties"]["spec"]["properties"]["ipam"]["properties"]["pools"]
    for flag in ("allowFirstIP", "allowLastIP"):
        del pools["properties"]["allocated"]["items"]["properties"][flag]
    world.fake.put(definition)
    world.node("n1", demands={"a": 4})
    world.passed()  # one block of four addresses, of which the stored entry allows two
    _converged(world)
    assert _entries(world) == [{"pool": "a", "cidrs": ["10.30.0.0/30", "10.30.0.4/30"]}]
