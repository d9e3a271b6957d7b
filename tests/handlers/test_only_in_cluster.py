"""What only the cluster's objects have is said as it is, and found by its address; findings follow nodes."""

from ipaddress import ip_network
from typing import Any

import pytest

from pools.clusters import drift
from pools.core.cilium import ciliumnode, podippool
from pools.models import Block, Finding, Mode, ObservedCIDR, Pool, PoolCIDR
from tests import factories
from tests.handlers.cilium_world import NODES, POOLS, CiliumWorld
from tests.pools.conftest import Clock


@pytest.fixture
def empty(server: Any, db: None, settings: Any) -> CiliumWorld:
    """A connected cluster without pools and nodes."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    return CiliumWorld(server)


@pytest.fixture
def world(empty: CiliumWorld) -> CiliumWorld:
    """Managed pools; `green` has 10.10.0.0/24, and somebody added 10.11.0.0/24 to its object."""
    world = empty
    world.connection.mode, world.connection.managed_resources = Mode.MANAGED, ["pools"]
    world.connection.save()
    world.pool("green", "10.10.0.0/24", mask=27)
    world.passed()
    green = world.fake.object(POOLS, "green")
    green["spec"]["ipv4"]["cidrs"].append("10.11.0.0/24")
    world.fake.put(green, manager="kubectl-edit")
    world.node("n1", lists={"green": ["10.11.0.0/27"]})
    world.run()
    return world


def _messages(world: CiliumWorld) -> dict[str, str]:
    return dict(Finding.objects.filter(cluster=world.cluster).values_list("code", "message"))


def _found(address: str) -> set[tuple[str, str]]:
    rows = ObservedCIDR.objects.filter(cidr__net_contains_or_equals=address)
    return set(rows.values_list("kind", "name"))


def test_a_cidr_that_only_the_object_has(world: CiliumWorld) -> None:
    message = _messages(world)["orphaned_pod_cidr"]
    assert "the pool green has 10.11.0.0/24 in the cluster, but not in the register" in message
    assert "Adopt the object green" in message
    assert _found("10.11.0.5") == {(ciliumnode.KIND, "n1"), (podippool.KIND, "green")}
    assert _found("10.11.0.77") == {(podippool.KIND, "green")}


@pytest.mark.exhaustive
def test_after_the_adoption_it_is_a_block_and_nothing_else(world: CiliumWorld) -> None:
    drift.adopt(drift.ClusterObject(world.cluster, podippool.KIND, "green"), author=factories.BY)
    world.run()
    assert Block.objects.get(cidr="10.11.0.0/27").holder_id == "n1"
    assert not _found("10.11.0.5")
    assert "orphaned_pod_cidr" not in _messages(world)


def test_a_pool_that_the_register_refused(empty: CiliumWorld) -> None:
    world = empty
    world.cidrs("blue", "10.12.0.0/22")
    world.passed()
    world.cidrs("red", "10.12.0.0/23")
    world.node("n1", lists={"red": ["10.12.0.0/24"]})
    world.run()
    messages = _messages(world)
    assert "is in the cluster, but not in the register: n1." in messages["unknown_pool"]
    assert "The register refused its object: 10.12.0.0/23 overlaps" in messages["unknown_pool"]
    assert (podippool.KIND, "red") in _found("10.12.0.7")


@pytest.mark.exhaustive
def test_a_pool_that_does_not_exist(world: CiliumWorld) -> None:
    world.node("n2", lists={"gone": ["10.99.0.0/27"]})
    world.run()
    assert "does not exist: n2." in _messages(world)["unknown_pool"]
    assert _found("10.99.0.1") == {(ciliumnode.KIND, "n2")}
    world.fake.remove(NODES, "n2")


@pytest.mark.exhaustive
def test_a_block_that_two_nodes_list_names_both(world: CiliumWorld) -> None:
    world.node("n2", lists={"green": ["10.10.0.0/27"]})
    world.run()
    world.node("n3", lists={"green": ["10.10.0.0/27"]})
    world.run()
    assert Block.objects.get(cidr="10.10.0.0/27").holder_id == "n2"
    assert _found("10.10.0.1") == {(ciliumnode.KIND, "n3")}


def _tell_node(world: CiliumWorld, *events: tuple[str, dict[str, Any]]) -> None:
    world.ingest(ciliumnode.KIND, [world.pools, world.handler], *events)


@pytest.mark.exhaustive
def test_findings_of_pools_follow_events_of_nodes(empty: CiliumWorld, clock: Clock) -> None:
    world = empty
    world.cidrs("a", "10.0.0.0/22", "10.1.0.0/22")
    world.cidrs("b", "10.2.0.0/22")
    listed = {"n1": ("a", "10.1.0.0/24"), "n2": ("a", "10.1.1.0/24"), "n3": ("b", "10.2.0.0/24")}
    nodes = {name: world.node(name, lists={a: [b]}) for name, (a, b) in listed.items()}
    world.passed()
    world.cidrs("a", "10.0.0.0/22")
    world.fake.remove(POOLS, "b")
    world.passed()
    clock.advance(31)
    world.passed()
    messages = _messages(world)
    assert "n1 (10.1.0.0/24), n2 (10.1.1.0/24)" in messages["orphaned_cidr"]
    assert "n3" in messages["orphaned_pool"]
    _tell_node(world, ("DELETED", nodes["n1"]))
    assert "n1" not in _messages(world)["orphaned_cidr"]
    _tell_node(world, ("DELETED", nodes["n2"]), ("DELETED", nodes["n3"]))
    assert not {"orphaned_cidr", "orphaned_pool"} & set(_messages(world))
    assert not PoolCIDR.objects.filter(cidr=ip_network("10.1.0.0/22")).exists()
    assert not Pool.objects.filter(name="b").exists()
