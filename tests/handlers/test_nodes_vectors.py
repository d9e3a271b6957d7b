"""What the real operator and agent did (tests/vectors/cilium.json): the model and the handler do the same."""

from __future__ import annotations

import json
import pathlib
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest

from pools.core.cilium import ciliumnode, multipool, podippool
from tests.core.cilium_operator import Operator
from tests.handlers.cilium_world import NODES, POOLS, CiliumWorld
from tests.handlers.node_world import manifest

if TYPE_CHECKING:
    from tests.kube.fake import FakeCluster
    from tests.pools.conftest import Clock

VECTORS = json.loads(
    (pathlib.Path(__file__).parent.parent / "vectors" / "cilium.json").read_text(encoding="utf-8")
)
SCENARIOS = VECTORS["scenarios"]
Nodes = dict[str, dict[str, Any]]


def _names(scenarios: list[Any]) -> list[str]:
    return [scenario["name"] for scenario in scenarios]


def _node(name: str, change: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """The node as its agent leaves it: what it requests, and of its entries what it keeps."""
    node = manifest(
        name,
        demands={pool: {4: ipv4, 6: ipv6} for pool, (ipv4, ipv6) in change["requested"].items()},
    )
    allocated = _allocated(before) if before else []
    if stored := change.get("allocated", allocated):
        node["spec"]["ipam"]["pools"]["allocated"] = stored
    if before and "status" in before:
        node["status"] = before["status"]
    return node


def _pool(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": name},
        "spec": spec,
    }


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
                operator.allocate_to_node(
                    ciliumnode.parse(_node(name, change | {"requested": {}}, nodes[name]))
                )
        for name, node in nodes.items():
            outcome = operator.allocate_to_node(ciliumnode.parse(node))
            node["spec"]["ipam"]["pools"]["allocated"] = operator.allocated_entries(name)
            node["status"] = {
                "ipam": {"operator-status": {"error": ciliumnode.error_text(outcome.errors)}}
            }
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
    counted = multipool.usable_addresses(
        ip_network(row["block"]),
        allow_first=row.get("allowFirstIP", False),
        allow_last=row.get("allowLastIP", False),
    )
    assert counted == row["usable"]
