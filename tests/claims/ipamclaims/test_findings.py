"""What people should know of claims; nobody is called gone of whom it is not known."""

from __future__ import annotations

from datetime import timedelta

import pytest

from claims.ipamclaims import findings
from claims.models import IPAMClaim
from pools.clusters.reconcile import storage
from pools.models import Finding, Now, ObservedObject
from tests.claims import worlds
from tests.claims.ipamclaims.world import MAC, OTHER_MAC, World
from tests.pools.conftest import Clock


def leaks(world: World) -> list[str]:
    return world.subjects_by_code().get(findings.LEAKED, [])


@pytest.mark.exhaustive
def test_a_claim_whose_vm_is_gone_is_leaked(observed: World, clock: Clock) -> None:
    observed.network()
    uid = observed.machine()
    observed.machine("vm2")
    observed.follow_claim(uid=uid, status={"ips": ["10.0.0.8/24"]})
    clock.advance(storage.GRACE + 1)
    observed.passed()
    assert leaks(observed) == []
    observed.server.remove("virtualmachines", "vm1", "blue")
    observed.passed()
    assert leaks(observed) == [], "one list without it is no proof"
    clock.advance(storage.GRACE + 1)
    observed.passed()
    assert leaks(observed) == ["blue/vm1.podnet"]
    row = Finding.objects.get(code=findings.LEAKED)
    assert row.details["ips"] == ["10.0.0.8/24"]
    command = "kubectl patch ipamclaims.k8s.cni.cncf.io vm1.podnet -n blue"
    assert row.details["command"].startswith(command)
    assert observed.held() == {"10.0.0.8": "blue/vm1"}, "it is shown, and nothing is taken"


def test_the_owner_is_told_by_its_uid(observed: World, clock: Clock) -> None:
    observed.network()
    observed.machine()
    observed.follow_claim(uid="an older one", status={"ips": ["10.0.0.8/24"]})
    clock.advance(storage.GRACE + 1)
    observed.passed()
    assert leaks(observed) == ["blue/vm1.podnet"]


def test_a_claim_that_is_younger_than_the_list_of_vms(observed: World) -> None:
    """Its VM may have come after the VMs were listed."""
    observed.network()
    observed.machine("other")
    observed.follow_claim(status={"ips": ["10.0.0.8/24"]})
    observed.passed()
    assert leaks(observed) == []


def test_unknown_is_not_absent(observed: World, clock: Clock) -> None:
    """Rule `unknown-is-not-absent`: VMs that cannot be listed are not gone."""
    observed.network()
    observed.follow_claim(status={"ips": ["10.0.0.8/24"]})
    clock.advance(storage.GRACE + 1)
    with observed.without_vms():
        observed.run()
        assert leaks(observed) == []
    observed.passed()
    assert leaks(observed) == ["blue/vm1.podnet"]


def test_the_owner_of_a_vmi_alone_is_not_looked_for_among_vms(
    observed: World, clock: Clock
) -> None:
    observed.network()
    created = observed.claim(status={"ips": ["10.0.0.8/24"]})
    created["metadata"]["ownerReferences"][0]["kind"] = "VirtualMachineInstance"
    observed.server.put(created)
    observed.passed()
    clock.advance(storage.GRACE + 1)
    observed.passed()
    assert leaks(observed) == []


def test_a_deletion_that_does_not_end(observed: World) -> None:
    observed.network()
    observed.follow_claim(status={"ips": ["10.0.0.8/24"]})
    IPAMClaim.objects.update(deleted_at=Now() - timedelta(seconds=findings.STUCK_AFTER + 1))
    observed.passed()
    assert observed.subjects_by_code()[findings.STUCK] == ["blue/vm1.podnet"]


def test_what_disagrees(observed: World) -> None:
    network = observed.network()
    pool = worlds.ippool(network)
    worlds.entry(pool, MAC, "10.0.0.5/24", vm="vm1", namespace="blue")
    worlds.entry(pool, OTHER_MAC, "10.0.0.7/24", vm="vm4", namespace="blue")
    worlds.workload(network, "vm2", OTHER_MAC, "10.0.0.9/24", vm_uid="uid-blue-vm2")
    for vm, address in (("vm1", "10.0.0.6"), ("vm2", "10.0.0.8"), ("vm3", "10.0.0.8"), ("vm4", "10.0.0.7"), ("vm5", "10.7.0.1")):  # fmt: skip
        observed.claim(vm, status={"ips": [f"{address}/24"]})
    observed.follow_claim("vm6", network="nowhere", status={"ips": ["10.0.0.1/24"]})
    result = observed.subjects_by_code()
    assert result == {
        findings.DIFFERS_FROM_ENTRY: ["blue/vm1.podnet"],
        findings.DIFFERS_FROM_WORKLOAD: ["blue/vm2.podnet"],
        findings.DUPLICATE: ["blue/vm2.podnet", "blue/vm3.podnet"],
        findings.OUTSIDE: ["blue/vm5.podnet"],
        findings.UNKNOWN_NETWORK: ["blue/vm6.podnet"],
    }


def test_what_a_claim_has_beside_others_is_named(observed: World) -> None:
    """Who else has an address, what the network keeps, and which addresses are outside."""
    observed.network()
    for vm, ips in {"vm1": ["10.0.0.8/24"], "vm2": ["10.0.0.8/24", "fd00::8/64"]}.items():
        observed.claim(vm, status={"ips": ips})
    observed.claim("vm3", status={"ips": ["10.0.0.1/24"]})
    observed.passed()
    rows = Finding.objects.filter(code__in=[findings.DUPLICATE, findings.OUTSIDE])
    messages = {
        (row.code, row.subject): row.message.partition(" has ")[2].partition(": ")[2] or row.message
        for row in rows
    }
    assert messages == {
        (findings.DUPLICATE, "blue/vm1.podnet"):
            "The address 10.0.0.8 is also used by the IPAMClaim blue/vm2.",
        (findings.DUPLICATE, "blue/vm2.podnet"):
            "The address 10.0.0.8 is also used by the IPAMClaim blue/vm1.",
        (findings.DUPLICATE, "blue/vm3.podnet"):
            "The address 10.0.0.1 is also used by the gateway 10.0.0.1.",
        (findings.OUTSIDE, "blue/vm2.podnet"):
            "The IPAMClaim blue/vm2.podnet has fd00::8/64, outside of 10.0.0.0/24.",
    }  # fmt: skip


def test_names(observed: World) -> None:
    observed.network()
    observed.network("10.1.0.0/24", name="random_net")
    observed.network("10.2.0.0/24", name="random.net")
    observed.machine("a.b", networks=("c",))
    observed.machine("a", networks=("b.c", "podnet"))
    observed.machine("vm1", networks=("podnet",))
    observed.claim("a", name="a.podnet")
    observed.claim("vm1", name="vm1.elsewhere")
    observed.claim("vm2", name="vm2.one", network="random_net")
    observed.follow_claim("vm2", name="vm2.two", network="random.net")
    result = observed.subjects_by_code()
    assert result[findings.COLLISION] == ["blue/a.b.c", "blue/vm2.random.net"]
    assert result[findings.NAME] == ["blue/vm1.elsewhere"]


def test_a_claim_that_cannot_be_read_is_in_trouble_alone(observed: World) -> None:
    observed.network()
    observed.claim(status={"ips": ["10.0.0.300/24"]})
    observed.claim("vm2", status={"ips": ["10.0.0.8/24"]})
    observed.run()
    row = ObservedObject.objects.get(name="vm1.podnet")
    assert (row.problem_code, "status.ips.0" in row.problem) == ("not_an_address", True)
    assert observed.held() == {"10.0.0.8": "blue/vm2"}
