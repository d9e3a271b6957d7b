"""What a claim is granted, whether the cluster or somebody here makes it."""

from typing import Any

import pytest

from claims.ipamclaims import findings, ipamclaims
from claims.models import IPAMClaim, Network
from pools.core import errors
from pools.models import BlockEvent, Drift, Finding, ObservedObject
from tests import factories
from tests.claims import worlds
from tests.claims.ipamclaims.conftest import both, decentralized
from tests.claims.ipamclaims.world import BY, MAC, OTHER_MAC, PROPOSED, SHIPPED, World, manifest


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
    world.follow_claim(mac=MAC, ips=["10.0.0.77", "fd00::77"])
    assert world.status()["ips"] == ["10.0.0.77/24", "fd00::77/64"]
    row = world.row()
    assert (row.mac, row.ips_requested) == (MAC, ["10.0.0.77", "fd00::77"])


@pytest.mark.exhaustive
@decentralized
def test_a_family_that_is_not_requested_is_granted_too(world: World) -> None:
    world.network("10.0.0.0/24", "fd00::/64")
    world.follow_claim(ips=["fd00::77/64"])
    assert world.status()["ips"] == ["10.0.0.3/24", "fd00::77/64"]


def test_the_address_of_the_entry_for_the_vm(world: World) -> None:
    network = world.network()
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24", vm="vm1", namespace="blue")
    world.follow_claim()
    assert world.status()["ips"] == ["10.0.0.5/24"]
    assert world.held() == {"10.0.0.5": "blue/vm1"}


def test_the_address_of_the_entry_for_the_mac_of_the_vm(world: World) -> None:
    network = world.network()
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24")
    uid = world.machine(mac=MAC)
    world.follow_claim(uid=uid)
    assert world.status()["ips"] == ["10.0.0.5/24"]
    assert world.held() == {"10.0.0.5": "blue/vm1"}


def test_a_vm_that_runs_keeps_what_it_runs_with(world: World) -> None:
    network = world.network()
    worlds.workload(network, "vm1", MAC, "10.0.0.9/24", vm_uid="uid-blue-vm1")
    world.follow_claim()
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
    world.follow_claim()
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


# --- Claims that are made here: recorded, and written to a managed cluster that has the managed
# resource
NAME = "vm1.cluster.udn.blue"


def create_claim(network: Network, vm: str = "vm1", **more: Any) -> IPAMClaim:
    spec = ipamclaims.ClaimSpec(network, "blue", vm=vm, **more)
    return ipamclaims.create(spec, author=BY)


@pytest.mark.exhaustive
@both
def test_a_managed_cluster_gets_the_object_and_the_answer(world: World, definition: str) -> None:
    create_claim(world.network(), mac=MAC, ips=["10.0.0.7/24"])
    world.passed()
    assert world.held() == {"10.0.0.7": "blue/vm1"}
    world.passed()
    there = world.there(NAME)
    assert there["metadata"]["labels"] == {"kubevirt.io/vm": "vm1"}
    spec = {"mac": MAC, "ips": ["10.0.0.7/24"]} if definition == PROPOSED else {}
    assert there["spec"] == {"network": "cluster_udn_blue", "interface": ""} | spec
    assert there["status"]["ips"] == ["10.0.0.7/24"]
    row = world.row(NAME)
    assert (row.mac, row.ips_requested, row.follows_cluster) == (MAC, ["10.0.0.7/24"], False)
    assert world.held() == {"10.0.0.7": "blue/vm1"}
    unwritable = [f"blue/{NAME}"] if definition == SHIPPED else []
    assert world.subjects_by_code().get(findings.UNWRITABLE, []) == unwritable
    assert world.passed()["written"] == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("granted", [True, False])
def test_what_is_said_of_a_request_fits_the_condition(world: World, granted: bool) -> None:
    """The shipped definition has no fields for requests; OVN-Kubernetes reads the status."""
    network = world.network()
    if not granted:
        worlds.workload(network, "other", OTHER_MAC, "10.0.0.7/24")
    create_claim(network, ips=["10.0.0.7/24"])
    world.passed()
    assert world.condition(NAME)[1] == str(granted)
    rows = Finding.objects.filter(code=findings.UNWRITABLE)
    if granted:
        assert not rows.exists(), "the status says what was asked for"
        create_claim(network, "vm2", mac=MAC)
        world.passed()
        assert "granted addresses 10.0.0.3/24" in rows.get().message
    else:
        assert "Requested IP 10.0.0.7 is already assigned" in rows.get().message
        assert "grant" not in rows.get().message


def test_an_observed_cluster_is_not_written_to(observed: World) -> None:
    claim = create_claim(observed.network(), mac=MAC, ips=["10.0.0.7/24"])
    with observed.unwritten():
        observed.passed()
    assert not observed.server.objects("ipamclaims")
    observed.follow_claim(name=claim.name)
    row = observed.row(claim.name)
    assert (row.mac, row.ips_requested, bool(row.uid)) == (MAC, ["10.0.0.7/24"], True)


@pytest.mark.exhaustive
def test_it_belongs_to_its_vm_from_when_it_is_there(world: World) -> None:
    """ipam-extensions takes a claim of another owner for a leaked one."""
    create_claim(world.network())
    world.passed()
    assert "ownerReferences" not in world.there(NAME)["metadata"]
    uid = world.machine(networks=("cluster_udn_blue",))
    world.passed()
    world.passed()
    (owner,) = world.there(NAME)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("VirtualMachine", "vm1", uid)
    assert world.row(NAME).vm_uid == uid
    assert world.passed()["written"] == 0


@decentralized
def test_an_object_of_somebody_else_with_other_requests_is_theirs(world: World) -> None:
    create_claim(world.network(), mac=MAC, ips=["10.0.0.7/24"])
    world.follow_claim(name=NAME, ips=["10.0.0.9"])
    row = world.row(NAME)
    assert (row.follows_cluster, row.ips_requested) == (True, ["10.0.0.9"])
    assert world.status(NAME)["ips"] == ["10.0.0.9/24"]


@pytest.mark.exhaustive
def test_addresses_that_were_given_back_stay_so_while_the_object_is_there(world: World) -> None:
    world.network(cooldown=3600)
    world.follow_claim()
    worlds.leaked(world.row())
    ipamclaims.release(world.row().pk, author=factories.WITH_REASON)
    assert (world.held(), world.cooling()) == ({}, ["10.0.0.3"])
    changed = world.there()
    changed["metadata"]["labels"] = {"a": "b"}
    world.server.put(changed)
    world.passed()
    assert (world.row().ips, world.held()) == ([], {})
    assert world.status()["ips"] == ["10.0.0.3/24"]
    world.server.remove("ipamclaims", "vm1.podnet", "blue")
    world.follow_claim(uid="a new VM")
    assert world.held() == {"10.0.0.4": "blue/vm1"}


@pytest.mark.exhaustive
@decentralized
def test_a_change_before_the_grant_counts(world: World) -> None:
    claim = create_claim(world.network(), ips=["10.0.0.7/24"])
    ipamclaims.change(claim.pk, ipamclaims.ClaimChange(ips=["10.0.0.8/24"]), author=BY)
    world.passed()
    assert world.held() == {"10.0.0.8": "blue/vm1"}
    assert world.there(NAME)["spec"]["ips"] == ["10.0.0.8/24"]
    with pytest.raises(errors.ImmutableInUse):
        ipamclaims.change(claim.pk, ipamclaims.ClaimChange(mac=MAC), author=BY)
    with pytest.raises(errors.ClusterDecides):
        ipamclaims.delete(claim.pk, author=BY)


@pytest.mark.exhaustive
def test_an_object_that_was_deleted_is_not_made_again(world: World) -> None:
    """Not even by the list that first lacks it; its claim goes with the second one."""
    create_claim(world.network(), ips=["10.0.0.7/24"])
    world.passed()
    world.passed()
    world.server.remove("ipamclaims", NAME, "blue")
    world.passed()
    assert not world.server.objects("ipamclaims")
    ObservedObject.objects.filter(missed_at__isnull=False).update(missed_at="2026-01-01T00:00Z")
    world.passed()
    assert world.held() == {}
    assert not IPAMClaim.objects.exists()
