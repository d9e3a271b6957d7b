"""With the managed resource, a claim without addresses is granted some, in the words of the cluster's CRD."""

import pytest

from pools.models import BlockEvent, Drift, Finding
from tests.claims import worlds
from tests.claims.ipamclaims.conftest import both, decentralized
from tests.claims.ipamclaims.world import MAC, SHIPPED, World, manifest


@pytest.mark.exhaustive
@both
def test_the_next_free_addresses_in_both_dialects(world: World, definition: str) -> None:
    world.network("10.0.0.0/29", "fd00::/125")
    world.claim()
    assert world.passed()["written"] == 1
    kind = "IPsAllocated" if definition == SHIPPED else "IPAllocated"
    assert world.status()["ips"] == ["10.0.0.3/29", "fd00::3/125"]
    assert world.condition() == (
        kind, "True", "SuccessfulAllocation", "IPs 10.0.0.3, fd00::3 allocated successfully",
    )  # fmt: skip
    assert world.held() == {"10.0.0.3": "blue/vm1", "fd00::3": "blue/vm1"}
    assert world.row().ips == ["10.0.0.3/29", "fd00::3/125"]


@decentralized
def test_what_is_requested_is_reserved(world: World) -> None:
    world.network("10.0.0.0/24", "fd00::/64")
    world.claim(mac=MAC, ips=["10.0.0.77", "fd00::77"])
    world.passed()
    assert world.status()["ips"] == ["10.0.0.77/24", "fd00::77/64"]
    row = world.row()
    assert (row.mac, row.ips_requested) == (MAC, ["10.0.0.77", "fd00::77"])


@pytest.mark.exhaustive
@decentralized
def test_a_family_that_is_not_requested_is_granted_too(world: World) -> None:
    world.network("10.0.0.0/24", "fd00::/64")
    world.claim(ips=["fd00::77/64"])
    world.passed()
    assert world.status()["ips"] == ["10.0.0.3/24", "fd00::77/64"]


def test_the_address_of_the_entry_for_the_vm(world: World) -> None:
    network = world.network()
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24", vm="vm1", namespace="blue")
    world.claim()
    world.passed()
    assert world.status()["ips"] == ["10.0.0.5/24"]
    assert world.held() == {"10.0.0.5": "blue/vm1"}


def test_the_address_of_the_entry_for_the_mac_of_the_vm(world: World) -> None:
    network = world.network()
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24")
    uid = world.machine(mac=MAC)
    world.claim(uid=uid)
    world.passed()
    assert world.status()["ips"] == ["10.0.0.5/24"]
    assert world.held() == {"10.0.0.5": "blue/vm1"}


def test_a_vm_that_runs_keeps_what_it_runs_with(world: World) -> None:
    network = world.network()
    worlds.workload(network, "vm1", MAC, "10.0.0.9/24", vm_uid="uid-blue-vm1")
    world.claim()
    world.passed()
    assert world.status()["ips"] == ["10.0.0.9/24"]


def test_addresses_that_a_claim_has_are_the_truth(world: World) -> None:
    network = world.network()
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24", vm="vm1", namespace="blue")
    world.claim(status={"ips": ["10.0.0.44/24"]})
    assert world.passed()["written"] == 0
    assert world.status() == {"ips": ["10.0.0.44/24"]}
    assert world.held()["10.0.0.44"] == "blue/vm1"
    finding = Finding.objects.get(code="ipamclaim_differs_from_entry")
    assert "If these are right, change the entry." in finding.message
    assert "stop the VM, delete the claim, and start the VM" in finding.message


@pytest.mark.exhaustive
def test_addresses_that_were_taken_out_of_the_status_come_back(world: World) -> None:
    world.network()
    world.claim()
    world.passed()
    bare = world.there()
    del bare["status"]
    world.server.remove("ipamclaims", "vm1.podnet", "blue")
    world.tell(("MODIFIED", bare | {"metadata": bare["metadata"] | {"resourceVersion": "99999"}}))
    assert world.row().ips == ["10.0.0.3/24"]
    world.server.put(manifest("vm1"))
    world.passed()
    labels = list(BlockEvent.objects.values_list("pgh_label", flat=True))
    assert labels == ["allocated"], "they were never given back meanwhile"
    assert world.status()["ips"] == ["10.0.0.3/24"]
    assert world.held() == {"10.0.0.3": "blue/vm1"}


def test_fields_of_another_manager_are_shown_and_not_forced(world: World) -> None:
    world.network()
    world.claim(status={"ips": []})
    assert world.run().kinds["IPAMClaim"]["written"] == 0
    assert world.status() == {"ips": []}
    (row,) = Drift.objects.filter(path="status.ips")
    assert (row.desired, row.managers) == (["10.0.0.3/24"], ["ipam-extensions"])
    assert world.held() == {"10.0.0.3": "blue/vm1"}


def test_without_the_managed_resource_it_is_only_recorded(observed: World) -> None:
    observed.network()
    observed.claim()
    observed.claim("vm2", status={"ips": ["10.0.0.8/24"], "ownerPod": {"name": "launcher"}})
    with observed.unwritten():
        assert observed.passed()["written"] == 0
    assert (observed.row().ips, observed.row("vm2.podnet").ips) == ([], ["10.0.0.8/24"])
    assert observed.held() == {"10.0.0.8": "blue/vm2"}
    assert observed.row("vm2.podnet").owner_pod == "launcher"


def test_a_network_that_nobody_has_seen_is_waited_for(world: World) -> None:
    world.claim()
    assert world.passed()["written"] == 0
    assert world.status() == {}
    assert world.subjects_by_code() == {"ipamclaim_unknown_network": ["blue/vm1.podnet"]}
