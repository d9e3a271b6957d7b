"""Leaks of VMs, and of blocks without an object."""

import pytest

from claims.models import IPAMClaim
from pools.models import Block, Event, Leak
from pools.observed import cidrs as observed_handlers
from pools.platform import events
from pools.register.allocator import allocation
from pools.register.allocator.allocation import Holder
from pools.register.leaks import detection, reclaim
from tests import factories
from tests.claims import worlds
from tests.leaks.conftest import GRACE
from tests.leaks.feeds import Nodes
from tests.leaks.vm_world import Machines


def _reclaim(block: Block) -> reclaim.ReclaimResult:
    target = reclaim.ReclaimTarget(block.pk, block.holder_kind, block.holder_id, block.holder_uid)
    return reclaim.reclaim(target, author=factories.WITH_REASON)


@pytest.mark.exhaustive
def test_a_claim_whose_vm_is_gone_leaks_its_addresses(vms: Machines) -> None:
    vms.vm_with_claim("10.0.0.8/24", "2001:db8::8/64")
    vms.vm_with_claim("10.0.0.9/24", vm="vm2")
    vms.times(2)
    assert not Leak.objects.exists()
    vms.fake.remove("virtualmachines", "vm1", "blue")
    vms.times(1)
    assert vms.suspected() == ["10.0.0.8", "2001:db8::8"]
    vms.times(1)
    assert vms.leaked() == ["10.0.0.8", "2001:db8::8"]


@pytest.mark.exhaustive
def test_the_claims_way_gives_back_all_addresses_of_the_claim(vms: Machines) -> None:
    vms.vm_with_claim("10.0.0.8/24", "2001:db8::8/64")
    vms.times(1)
    vms.fake.remove("virtualmachines", "vm1", "blue")
    vms.times(2)
    four, six = Block.objects.filter(state="held").order_by("cidr")
    done = _reclaim(four)
    assert done.block is not None
    assert done.block["state"] == "cooling", "although its pool has no cooldown"
    assert vms.cooling() == ["10.0.0.8", "2001:db8::8"]
    claim = IPAMClaim.objects.get()
    assert (claim.ips, claim.gone_at is None) == ([], False)
    assert not Leak.objects.exists()
    assert _reclaim(six).repeated
    vms.times(2)
    assert vms.held() == {}, "its object, which is still there, takes nothing back"
    reasons = Event.objects.filter(type="reclaimed").values_list("reason", flat=True)
    assert set(reasons) == {factories.WITH_REASON.reason}


@pytest.mark.exhaustive
def test_a_vm_that_was_made_anew_is_not_the_owner(vms: Machines) -> None:
    vms.machine()
    vms.claim(uid="of an older one", status={"ips": ["10.0.0.8/24"]})
    vms.times(2)
    assert vms.leaked() == ["10.0.0.8"]


@pytest.mark.exhaustive
def test_during_a_live_migration_the_address_is_the_vms(vms: Machines) -> None:
    vms.vm_with_claim()
    instance = vms.instance(owner=vms.fake.object("virtualmachines", "vm1", "blue"))
    for name in ("virt-launcher-vm1-a", "virt-launcher-vm1-b"):
        vms.launcher(name, instance)
        vms.times(1)
    vms.fake.remove("pods", "virt-launcher-vm1-a", "blue")
    vms.times(2)
    vms.fake.remove("pods", "virt-launcher-vm1-b", "blue")
    vms.times(2)
    assert vms.held() == {"10.0.0.8": "blue/vm1"}
    assert not Leak.objects.exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("without", ["VirtualMachine", "VirtualMachineInstance", "IPAMClaim"])
def test_without_one_of_the_kinds_nothing_is_concluded(vms: Machines, without: str) -> None:
    vms.vm_with_claim()
    vms.times(1)
    vms.fake.remove("virtualmachines", "vm1", "blue")
    vms.times(3, without=without)
    assert not Leak.objects.exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("status", [401, 403, 410, 500, 503])
@pytest.mark.parametrize("kind", ["virtualmachines", "virtualmachineinstances"])
def test_an_error_of_one_list_is_no_observation(vms: Machines, kind: str, status: int) -> None:
    vms.vm_with_claim()
    vms.times(1)
    vms.fake.remove("virtualmachines", "vm1", "blue")
    vms.fake.faults.add(verb="list", path=kind, times=None, status=status)
    for _ in range(2):
        assert not vms.run().succeeded
        vms.clock.advance(900)
    assert not Leak.objects.exists()


@pytest.mark.exhaustive
def test_an_entry_is_a_reference(vms: Machines) -> None:
    """Who wrote it says that the address is used, also before its VM is there."""
    worlds.entry(worlds.ippool(vms.blue), "02:00:00:00:00:01", "10.0.0.7/24", vm="db", namespace="blue")  # fmt: skip
    vms.times(2)
    assert vms.held() == {"10.0.0.7": "blue/db"}
    assert not Leak.objects.exists()


@pytest.mark.exhaustive
def test_an_owner_that_is_no_vm_is_unknown(vms: Machines) -> None:
    vms.machine()
    created = vms.claim(uid="of a database", status={"ips": ["10.0.0.8/24"]})
    created["metadata"]["ownerReferences"][0]["kind"] = "Database"
    vms.fake.put(created)
    vms.times(3)
    assert not Leak.objects.exists()


def test_an_address_that_was_asked_for_by_rest_leaks_with_its_vm(vms: Machines) -> None:
    pool = vms.blue.pool
    assert pool is not None
    uid = vms.machine()
    factories.take(pool, allocation.Holder("vm", "blue/vm1", uid), cidr="10.0.0.20/32")
    factories.take(pool, allocation.Holder("vm", "blue/gone", "a"), cidr="10.0.0.21/32")
    factories.take(pool, allocation.Holder("pod", "blue/gone", "b"), cidr="10.0.0.22/32")
    factories.take(pool, allocation.Holder("vm", "no-namespace"), cidr="10.0.0.23/32")
    vms.times(2)
    assert vms.leaked() == ["10.0.0.21", "10.0.0.22"]
    done = _reclaim(Block.objects.get(cidr="10.0.0.21/32"))
    assert done.block is not None
    assert done.block["state"] == "cooling"


def test_a_pool_of_tooling_is_not_judged_by_the_cluster(vms: Machines) -> None:
    factories.take(factories.pool("10.8.0.0/24", within=vms.cluster), factories.holder("blue/x"))
    vms.times(2)
    assert not Leak.objects.exists()


# --- Holders whose Kubernetes object is gone though one that was derived from it lives ------------
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
    instance = vms.instance()
    vms.claim("vm1", uid=instance["metadata"]["uid"], status={"ips": ["10.0.0.8/24"]})
    if lives == "VirtualMachine":
        vms.machine("vm1")
    if lives == "Pod":
        vms.launcher("virt-launcher-vm1-a", instance)
    vms.times(2, without="Pod" if lives == "unknown pods" else "")
    assert vms.leaked() == ([] if lives else ["10.0.0.8"])
