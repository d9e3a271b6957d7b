"""IPAMClaims are read in every form, and what is wrong in one of them is said of that one."""

from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import pytest

from claims.core.ipamclaims import ipamclaim
from pools.core import errors


def manifest(*, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "vm1.blue", "namespace": "blue", "uid": "u-1"} | spec.pop("metadata", {})
    return {
        "apiVersion": "k8s.cni.cncf.io/v1alpha1",
        "kind": "IPAMClaim",
        "metadata": metadata,
        "spec": {"network": "cluster_udn_blue", "interface": ""} | spec,
        "status": status or {},
    }


def owner(kind: str, name: str, uid: str, group: str = "kubevirt.io/v1") -> dict[str, Any]:
    return {"apiVersion": group, "kind": kind, "name": name, "uid": uid}


def test_the_shipped_form() -> None:
    condition = {"type": "IPsAllocated", "status": "True", "reason": "SuccessfulAllocation"}
    claim = ipamclaim.parse(
        manifest(
            metadata={
                "labels": {"kubevirt.io/vm": "vm1"},
                "ownerReferences": [owner("VirtualMachine", "vm1", "vm-uid")],
                "finalizers": ["kubevirt.io/persistent-ipam"],
                "deletionTimestamp": "2026-05-05T10:00:00Z",
            },
            status={
                "ips": ["10.128.0.7/16", "fd00::07/64"],
                "ownerPod": {"name": "virt-launcher-vm1-x"},
                "conditions": [condition],
            },
        )
    )
    assert claim.ips == ("10.128.0.7/16", "fd00::7/64")
    assert (claim.vm, claim.vm_uid, claim.owner_kind) == ("vm1", "vm-uid", "VirtualMachine")
    assert claim.owner_pod == "virt-launcher-vm1-x"
    assert claim.conditions == (condition,)
    assert claim.finalizers == ("kubevirt.io/persistent-ipam",)
    assert claim.deleted_at == datetime(2026, 5, 5, 10, tzinfo=UTC)
    assert (claim.mac, claim.ips_requested, claim.problems) == (None, (), ())


def test_the_decentralized_form_of_the_proposal() -> None:
    claim = ipamclaim.parse(
        manifest(mac="02:03:04:05:06:07", ips=["192.168.1.5"], status={"ownerPod": "launcher"})
    )
    assert (claim.mac, claim.ips_requested) == ("02:03:04:05:06:07", ("192.168.1.5",))
    assert claim.owner_pod == "launcher"


@pytest.mark.parametrize(
    ("metadata", "vm", "uid"),
    [
        ({}, "vm1", ""),
        ({"name": "a.b.cluster.udn.blue"}, "a.b", ""),
        ({"labels": {"kubevirt.io/vm": "vm9"}}, "vm9", ""),
        ({"labels": ["kubevirt.io/vm"]}, "vm1", ""),
        ({"ownerReferences": [owner("Pod", "p", "u", "v1")]}, "vm1", ""),
        ({"ownerReferences": [owner("VirtualMachine", "x", "u", "other.io/v1")]}, "vm1", ""),
        ({"ownerReferences": [owner("VirtualMachineInstance", "x", "u")]}, "x", "u"),
        (
            {"ownerReferences": [owner("VirtualMachineInstance", "x", "i"), owner("VirtualMachine", "x", "u")]},
            "x", "u",
        ),
        ({"ownerReferences": "x"}, "vm1", ""),
    ],
)  # fmt: skip
def test_the_vm_is_the_owner_or_the_label_or_in_the_name(
    metadata: dict[str, Any], vm: str, uid: str
) -> None:
    claim = ipamclaim.parse(manifest(metadata=metadata))
    assert (claim.vm, claim.vm_uid) == (vm, uid)


@pytest.mark.parametrize(
    ("spec", "status", "problems"),
    [
        ({"mac": "nonsense"}, {}, ["spec.mac mac_syntax"]),
        ({"mac": 112233445506}, {}, ["spec.mac wrong_type"]),
        ({"ips": ["10.0.0.300"]}, {}, ["spec.ips.0 not_an_address"]),
        ({"ips": ["10.0.0.5/33"]}, {}, ["spec.ips.0 prefix_length"]),
        ({"ips": ["10.0.0.5/024"]}, {}, ["spec.ips.0 prefix_length"]),
        ({"ips": [None]}, {}, ["spec.ips.0 wrong_type"]),
        ({"ips": "10.0.0.5"}, {}, ["spec.ips wrong_type"]),
        ({"ips": ["10.0.0.5", "10.0.0.6"]}, {}, ["spec.ips one_per_family"]),
        ({}, {"ips": ["010.0.0.5/24"]}, ["status.ips.0 leading_zero"]),
        ({}, {"ips": ["10.0.0.5/24", "10.0.0.6/24"]}, []),
        ({"interface": 7}, {}, ["spec.interface wrong_type"]),
        ({"mac": ""}, {"ownerPod": 7, "conditions": "x"}, []),
    ],
)
def test_a_part_that_says_nothing_is_told_and_the_rest_is_taken_in(
    spec: dict[str, Any], status: dict[str, Any], problems: list[str]
) -> None:
    claim = ipamclaim.parse(manifest(status=status, **spec))
    assert [f"{problem.field} {problem.code}" for problem in claim.problems] == problems
    assert claim.network == "cluster_udn_blue"


@pytest.mark.parametrize("network", [None, "", 7, "x" * 254, "a\0b"])
def test_a_claim_of_no_network_is_refused(network: object) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        ipamclaim.parse(manifest(network=network))
    assert caught.value.problems[0].field == "spec.network"


@pytest.mark.parametrize(
    "broken", [{}, {"spec": []}, {"metadata": None}, {"metadata": {"name": 7}}]
)
def test_what_is_no_claim_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        ipamclaim.parse(broken)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.5", "10.0.0.5/24"),
        ("10.0.0.5/16", "10.0.0.5/16"),
        ("fd00::5", "fd00::5/64"),
        ("10.9.0.5", "10.9.0.5/32"),
    ],
)
def test_addresses_get_the_prefix_length_of_their_subnet(text: str, expected: str) -> None:
    subnets = [ip_network("10.0.0.0/24"), ip_network("fd00::/64")]
    assert ipamclaim.with_prefix(text, subnets) == expected
