"""Holders whose Kubernetes object is gone though one that was derived from it lives."""

import pytest

from pools.models import Block, Leak
from pools.observed import cidrs as observed_handlers
from pools.platform import events
from pools.register.allocator.allocation import Holder
from pools.register.leaks import detection, reclaim
from tests import factories
from tests.leaks.conftest import GRACE
from tests.leaks.feeds import Nodes
from tests.leaks.vm_world import Machines

AUTHOR = events.Author(actor="pia", source="api", reason="the machine is gone")
(NODE_HANDLER,) = [handler for handler in observed_handlers.ALL if handler.kind == "Node"]


def sync_all(nodes: Nodes, *, with_cilium: bool = True) -> None:
    """A full sync that lists the Nodes, too."""
    nodes.sync(*([nodes.handler, NODE_HANDLER] if with_cilium else [NODE_HANDLER]))


def put_node(nodes: Nodes, name: str) -> None:
    nodes.fake.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}})


def reclaim_all() -> list[str]:
    targets = [
        reclaim.ReclaimTarget(leak.block_id, leak.holder_kind, leak.holder_id, leak.holder_uid)
        for leak in detection.confirmed_leaks()
    ]
    return [result.outcome for result in reclaim.reclaim_all(targets, author=AUTHOR)]


@pytest.fixture
def scaled_down(nodes: Nodes) -> Nodes:
    """CiliumNodes a, w1, w2 with blocks; only a has a Node."""
    put_node(nodes, "a")
    for number, name in enumerate(("a", "w1", "w2")):
        nodes.node(name, lists={"a": [f"10.0.{number}.0/24"]})
    return nodes


@pytest.mark.parametrize("with_cilium", [True, False])
def test_an_address_of_a_node_without_a_node_leaks(nodes: Nodes, *, with_cilium: bool) -> None:
    pool = factories.pool("2001:db8:1::/120", category="node", within=nodes.cluster)
    put_node(nodes, "n1")
    for name in ("n1", "scaled-down"):
        nodes.node(name)
        factories.take(pool, Holder("node", name, f"uid of {name}"))
    for seconds in (1, GRACE, 1):
        sync_all(nodes, with_cilium=with_cilium)
        nodes.clock.advance(seconds)
    assert nodes.leaked() == ["scaled-down"]


@pytest.mark.exhaustive
def test_a_ciliumnode_without_a_node_leaks_and_is_reclaimed(scaled_down: Nodes) -> None:
    nodes = scaled_down
    sync_all(nodes)
    nodes.clock.advance(1)
    sync_all(nodes)
    assert (nodes.suspected(), nodes.leaked()) == (["w1", "w2"], [])
    nodes.clock.advance(GRACE)
    sync_all(nodes)
    assert nodes.leaked() == ["w1", "w2"]
    sync_all(nodes)
    result = nodes.subjects_by_code()
    assert sorted(result["ciliumnode_without_node"]) == ["w1", "w2"]
    assert reclaim_all() == ["reclaimed", "reclaimed"]
    for _ in range(2):
        sync_all(nodes)
        nodes.clock.advance(GRACE)
    assert list(Block.objects.filter(state="held").values_list("holder_id", flat=True)) == ["a"]


def test_it_ends_when_the_node_comes(scaled_down: Nodes) -> None:
    nodes = scaled_down
    for _ in range(2):
        sync_all(nodes)
        nodes.clock.advance(GRACE)
    put_node(nodes, "w1")
    sync_all(nodes)
    assert nodes.leaked() == ["w2"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("trouble", ["not listed", "forbidden", "none"])
def test_unknown_nodes_conclude_nothing(trouble: str, scaled_down: Nodes) -> None:
    nodes = scaled_down
    if trouble == "forbidden":
        put_node(nodes, "w1")
        put_node(nodes, "w2")
        sync_all(nodes)
        for name in ("w1", "w2"):
            nodes.fake.remove("nodes", name)
    for _ in range(3):
        if trouble == "not listed":
            nodes.passed()
        elif trouble == "forbidden":
            nodes.fake.faults.add(verb="list", path="/api/v1/nodes", status=403)
            sync_all(nodes)
        else:
            if nodes.fake.objects("nodes"):
                nodes.fake.remove("nodes", "a")
            sync_all(nodes)
        nodes.clock.advance(GRACE)
    assert not Leak.objects.exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("lives", ["", "VirtualMachine", "Pod", "unknown pods"])
def test_an_instance_without_its_vm_and_without_pods(lives: str, vms: Machines) -> None:
    answer = vms.fake.put(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": "vm1", "namespace": "blue"},
            "spec": {"domain": {"devices": {}}},
        }
    )
    vms.claim("vm1", uid=answer["metadata"]["uid"], status={"ips": ["10.0.0.8/24"]})
    if lives == "VirtualMachine":
        vms.machine("vm1")
    if lives == "Pod":
        owner = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "name": "vm1",
            "uid": answer["metadata"]["uid"],
        }
        metadata = {
            "name": "virt-launcher-vm1-a",
            "namespace": "blue",
            "labels": {"kubevirt.io": "virt-launcher"},
            "ownerReferences": [owner],
        }
        vms.fake.put(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}
        )
    vms.times(2, without="Pod" if lives == "unknown pods" else "")
    assert vms.leaked() == ([] if lives else ["10.0.0.8"])
