"""Nodes of a cluster: what is recorded of them, and what is found."""

import json
import pathlib
from ipaddress import ip_network
from typing import Any

import pytest

from pools.core.cilium import ciliumnode, multipool, podippool
from pools.models import Block, Finding, Now, Pool, PoolCIDR
from pools.register.allocator import allocation
from tests import factories
from tests.core.cilium_operator import Operator
from tests.handlers.cilium_world import NODES, POOLS, CiliumWorld
from tests.handlers.node_world import World, manifest
from tests.kube.fake import FakeCluster
from tests.kube.manifests import build
from tests.pools.conftest import Clock


def test_what_a_node_lists_is_held_by_it(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.1.0/24", "10.0.0.0/24"]})
    world.follow_node("n2", lists={"a": ["10.0.3.0/24"]})
    assert world.held() == {"10.0.0.0/24": "n1", "10.0.1.0/24": "n1", "10.0.3.0/24": "n2"}
    block = Block.objects.get(cidr="10.0.3.0/24")
    assert (block.holder_kind, block.holder_uid) == ("node", world.observed_node("n2").uid)
    assert not world.fake.log.writes
    assert not world.subjects_by_code()


def test_what_is_in_use_is_not_handed_out_by_the_register(world: World) -> None:
    world.follow_node("n1", lists={"a": ["10.0.0.0/24", "10.0.2.0/24"]})
    pool = world.cluster.pools.get()
    assert factories.drain(pool) == ["10.0.1.0/24", "10.0.3.0/24"]


def test_what_a_node_lists_no_more_is_released(world: World) -> None:
    world.follow_node("n1", lists={"a": ["10.0.0.0/24", "10.0.1.0/24"]})
    world.follow_node("n1", lists={"a": ["10.0.1.0/24"]})
    assert world.held() == {"10.0.1.0/24": "n1"}


def test_in_use_is_in_use_also_in_a_reserved_range(world: World) -> None:
    pool = world.cluster.pools.get()
    factories.reserve(pool, "10.0.1.10-10.0.1.20")
    world.follow_node("n1", lists={"a": ["10.0.1.0/24"]})
    assert world.held() == {"10.0.1.0/24": "n1"}
    world.follow_node("n1")
    assert world.held() == {}
    assert "10.0.1.0/24" not in factories.drain(pool)


def test_both_families(fake: FakeCluster) -> None:
    world = World(fake)
    world.pool("a", "10.0.0.0/16", "fd00::/104", mask={4: 24, 6: 120})
    world.follow_node("n1", lists={"a": ["10.0.7.0/24", "fd00::700/120"]})
    assert world.held() == {"10.0.7.0/24": "n1", "fd00::700/120": "n1"}


def test_a_block_that_had_a_row_is_taken_again(world: World) -> None:
    pool = world.cluster.pools.get()
    factories.give_back(factories.take(pool))
    world.follow_node("n1", lists={"a": ["10.0.0.0/24"]})
    assert world.held() == {"10.0.0.0/24": "n1"}


def test_a_second_pass_writes_nothing(world: World) -> None:
    world.follow_node("n1", demands={"a": 300}, lists={"a": ["10.0.0.0/24"]})
    before = Block.objects.values_list("pk", "allocated_at", "holder_uid").first()
    version = world.observed_node().changed_at
    world.passed()
    assert Block.objects.values_list("pk", "allocated_at", "holder_uid").first() == before
    assert world.observed_node().changed_at == version
    assert not world.fake.log.writes


def test_what_somebody_released_in_the_register_is_held_again(world: World) -> None:
    """The register may not hand out what a node uses, whoever said that it is free."""
    world.follow_node("n1", lists={"a": ["10.0.0.0/24"]})
    block = Block.objects.get(state="held")
    allocation.release(block.pk, None, author=factories.WITH_REASON, force=True)
    assert world.held() == {}
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}


FILE = pathlib.Path(__file__).parent.parent / "vectors" / "cilium.json"
VECTORS = json.loads(FILE.read_text(encoding="utf-8"))
SCENARIOS = VECTORS["scenarios"]
Nodes = dict[str, dict[str, Any]]


def _names(scenarios: list[Any]) -> list[str]:
    return [scenario["name"] for scenario in scenarios]


def _node(name: str, change: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """The node as its agent leaves it: what it requests, and of its entries what it keeps."""
    demands = {pool: {4: ipv4, 6: ipv6} for pool, (ipv4, ipv6) in change["requested"].items()}
    node = manifest(name, demands=demands)
    allocated = _allocated(before) if before else []
    if stored := change.get("allocated", allocated):
        node["spec"]["ipam"]["pools"]["allocated"] = stored
    if before and "status" in before:
        node["status"] = before["status"]
    return node


def _pool(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return build("cilium.io/v2", "CiliumPodIPPool", name, spec=spec)


def _allocated(node: dict[str, Any]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = node["spec"]["ipam"].get("pools", {}).get("allocated", [])
    return entries


def _error(node: dict[str, Any]) -> str:
    status = node.get("status") or {}
    return str(status.get("ipam", {}).get("operator-status", {}).get("error", ""))


def _check(step: dict[str, Any], nodes: Nodes) -> None:
    assert {name: _allocated(node) for name, node in nodes.items()} == step["allocated"]
    errors = {name: text for name, node in nodes.items() if (text := _error(node))}
    assert errors == step.get("errors", {})


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_names(SCENARIOS))
def test_the_model(scenario: dict[str, Any]) -> None:
    operator = Operator()
    operator.finish_restore()
    nodes: Nodes = {}
    for step in scenario["steps"]:
        for name, spec in step.get("pools", {}).items():
            if spec is None:
                operator.delete_pool(name)
            else:
                (pool,) = podippool.parse_document(_pool(name, spec))
                operator.upsert_pool(pool)
        for name, change in step.get("nodes", {}).items():
            if change is None:
                operator.release_node(name)
                del nodes[name]
            else:
                nodes[name] = _node(name, change, nodes.get(name))
                without = _node(name, change | {"requested": {}}, nodes[name])
                operator.allocate_to_node(ciliumnode.parse(without))
        for name, node in nodes.items():
            outcome = operator.allocate_to_node(ciliumnode.parse(node))
            node["spec"]["ipam"]["pools"]["allocated"] = operator.allocated_entries(name)
            error = {"error": ciliumnode.error_text(outcome.errors)}
            node["status"] = {"ipam": {"operator-status": error}}
        _check(step, nodes)


SERVED = [scenario for scenario in SCENARIOS if not scenario.get("operator_only")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("scenario", SERVED, ids=_names(SERVED))
def test_what_pod_cidrs_writes(scenario: dict[str, Any], fake: FakeCluster, clock: Clock) -> None:
    world = CiliumWorld(fake, managed_resource=True)
    for step in scenario["steps"]:
        gone = False
        for name, spec in step.get("pools", {}).items():
            if spec is None:
                fake.remove(POOLS, name)
                gone = True
            else:
                fake.put(_pool(name, spec), manager="kubectl")
        for name, change in step.get("nodes", {}).items():
            if change is None:
                fake.remove(NODES, name)
                gone = True
            else:
                there = name in {node["metadata"]["name"] for node in fake.objects(NODES)}
                before = fake.object(NODES, name) if there else None
                fake.put(_node(name, change, before), manager="cilium-agent")
        world.passed()
        if gone:  # after two complete lists
            clock.advance(31)
            world.passed()
        _check(step, {node["metadata"]["name"]: node for node in fake.objects(NODES)})


@pytest.mark.parametrize("row", VECTORS["usable"], ids=str)
def test_what_the_agent_counts(row: dict[str, Any]) -> None:
    first, last = (row.get(name, False) for name in ("allowFirstIP", "allowLastIP"))
    block = ip_network(row["block"])
    counted = multipool.usable_addresses(block, allow_first=first, allow_last=last)
    assert counted == row["usable"]


# --- What is odd about PodCIDRs is told as long as it is so (rule `duplicates-are-reported`) ------
def test_two_nodes_with_one_block_the_first_keeps_it(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.follow_node("n2", lists={"a": ["10.0.0.0/24"]})
    assert world.held() == {"10.0.0.0/24": "n1"}
    assert world.subjects_by_code() == {"pod_cidr_overlap": ["10.0.0.0/24 n2"]}
    message = Finding.objects.get().message
    assert "n1" in message
    assert "n2" in message
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}


def test_the_other_takes_it_over_when_the_first_lets_go(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.follow_node("n2", lists={"a": ["10.0.0.0/24"]})
    world.follow_node("n1")
    assert world.held() == {"10.0.0.0/24": "n2"}
    assert not world.subjects_by_code()


def test_a_cidr_outside_its_pool_is_an_orphan(world: World) -> None:
    world.follow_node("n1", lists={"a": ["10.9.0.0/24", "10.0.0.0/24"]})
    assert world.held() == {"10.0.0.0/24": "n1"}
    assert world.subjects_by_code() == {"orphaned_pod_cidr": ["10.9.0.0/24 n1"]}
    factories.pool("10.9.0.0/16", mask=24, category="pod", within=world.cluster, name="b")
    world.passed()
    assert world.subjects_by_code() == {"orphaned_pod_cidr": ["10.9.0.0/24 n1"]}


def test_an_orphan_that_its_pool_regains_is_a_block_again(world: World) -> None:
    world.follow_node("n1", lists={"a": ["10.9.0.0/24"]})
    world.add_cidr("10.9.0.0/16")
    world.passed()
    assert world.held() == {"10.9.0.0/24": "n1"}
    assert not world.subjects_by_code()


def test_a_cidr_that_the_cluster_lost_is_still_in_use(world: World) -> None:
    world.follow_node("n1", lists={"a": ["10.0.0.0/24"]})
    PoolCIDR.objects.update(orphaned_at=Now())
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}
    assert world.subjects_by_code() == {"orphaned_pod_cidr": ["10.0.0.0/24 n1"]}
    world.follow_node("n2", lists={"a": ["10.0.1.0/24"]})
    assert world.held() == {"10.0.0.0/24": "n1", "10.0.1.0/24": "n2"}
    assert Block.objects.get(cidr="10.0.1.0/24").withheld


def test_a_block_listed_under_the_pools_former_name_is_in_use(world: World) -> None:
    """cilium/cilium#41986: the CIDR came back under another pool, and was handed out twice."""
    world.pool("new", "10.5.0.0/23")
    world.follow_node("n1", lists={"old": ["10.5.0.0/24"]})
    assert world.held() == {"10.5.0.0/24": "n1"}
    assert "10.5.0.0/24" not in factories.drain(Pool.objects.get(name="new"))
    assert world.subjects_by_code()["unknown_pool"] == ["old"]


def test_a_pool_that_is_not_there(world: World) -> None:
    world.node("n1", lists={"x": ["10.7.0.0/24"]})
    world.follow_node("n2", demands={"x": 5, "y": 0})
    assert world.subjects_by_code() == {"unknown_pool": ["x"]}
    assert Finding.objects.get().details == {"pool": "x", "nodes": ["n1", "n2"], "count": 2}
    world.pool("x", "10.7.0.0/16")
    world.passed()
    assert world.held() == {"10.7.0.0/24": "n1"}
    assert not world.subjects_by_code()


def test_a_cidr_of_another_size_is_no_block(world: World) -> None:
    world.follow_node("n1", lists={"a": ["10.0.0.0/25"]})
    assert world.held() == {}
    assert world.subjects_by_code() == {"pod_cidr_size": ["10.0.0.0/25 n1"]}


def test_a_block_whose_node_comes_after_the_list_is_no_leak(world: World, clock: Clock) -> None:
    """whereabouts#207: the owner was made between the two lists."""
    pool = world.cluster.pools.get()
    factories.take(pool, factories.holder("n9", kind="node"))
    world.passed()
    assert not world.subjects_by_code()
    clock.advance(60)
    world.passed()
    assert world.subjects_by_code() == {"leaked_pod_cidr": ["10.0.0.0/24 n9"]}
    assert world.held() == {"10.0.0.0/24": "n9"}
    clock.advance(60)
    world.follow_node("n9", lists={"a": ["10.0.0.0/24"]})
    assert not world.subjects_by_code()


def test_a_block_that_its_node_does_not_list(world: World) -> None:
    """Nobody is going to tell the node of it, and it is not ours to say that it is free."""
    factories.take(world.cluster.pools.get(), factories.holder("n1", kind="node"))
    world.follow_node("n1")
    assert world.subjects_by_code() == {"unlisted_pod_cidr": ["10.0.0.0/24 n1"]}
    assert world.held() == {"10.0.0.0/24": "n1"}


def test_what_cools_and_is_handed_out_by_the_cluster_is_recorded(
    world: World, clock: Clock
) -> None:
    world.pool("slow", "10.8.0.0/23", cooldown=3600)
    world.follow_node("n1", lists={"slow": ["10.8.0.0/24"]})
    world.follow_node("n1")
    assert Block.objects.get(cidr="10.8.0.0/24").state == "cooling"
    world.follow_node("n2", lists={"slow": ["10.8.0.0/24"]})
    assert world.held() == {"10.8.0.0/24": "n2"}
    assert world.subjects_by_code() == {"cooldown_not_kept": ["10.8.0.0/24 n2"]}
    clock.advance(3601)
    world.passed()
    assert not world.subjects_by_code()
