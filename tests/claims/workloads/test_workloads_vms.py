"""VMs: their interfaces, and one workload of an instance with its launcher pods."""

from ipaddress import ip_interface, ip_network
from typing import Any

import pytest

from claims.core.workloads import attachments
from claims.core.workloads.attachments import Attachment, Pod
from claims.workloads import running
from claims.workloads.running import ClusterNetworks, Net

NET = Net(7, (ip_network("10.0.0.0/24"), ip_network("fd00::/64")))
KNOWN = ClusterNetworks({"shop/prod": NET, "shop/free": Net(8)}, {"shop": "shop/prod"})
MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def vmi(*reported: dict[str, Any], phase: str = "Running", **nic: Any) -> attachments.Instance:
    interfaces = [{"name": "default", "bridge": {}, "macAddress": MAC} | nic, {"name": "extra"}]
    networks = [{"name": "default", "pod": {}}, {"name": "extra", "multus": {"networkName": "free"}}]  # fmt: skip
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "db", "uid": "vm-1"}
    return attachments.parse_instance(
        {
            "metadata": {"namespace": "shop", "name": "db", "uid": "vmi-1", "ownerReferences": [owner],
                         "creationTimestamp": "2026-05-05T10:00:00Z"},
            "spec": {"networks": networks, "domain": {"devices": {"interfaces": interfaces}}},
            "status": {"phase": phase, "nodeName": "n1", "interfaces": list(reported)},
        }
    )  # fmt: skip


def launcher(name: str, *ips: str, node: str = "n1", mac: str = MAC, over: bool = False) -> Pod:
    attachment = Attachment(
        "shop/prod", "shop/prod", mac, tuple(map(ip_interface, ips)), True, True
    )
    return Pod(
        "shop", name, f"u-{name}", node, "Running", "", over, "db", "vmi-1", True, (attachment,), ()
    )


def test_what_the_guest_reports_counts_in_the_subnets_only() -> None:
    addresses = ["10.0.0.5", "172.17.0.1", "fe80::1%eth0", "127.0.0.1", "fd00::5%eth0"]
    instance = vmi({"name": "default", "mac": OTHER, "ipAddresses": addresses, "infoSource": "domain, guest-agent"},
                {"interfaceName": "docker0", "ipAddress": "10.0.0.77", "mac": MAC})  # fmt: skip
    (first, second) = running.vm_attachments(instance, [], KNOWN)
    assert (first.network_id, first.interface, first.mac) == (7, "default", OTHER)
    assert first.ips == ["10.0.0.5/24", "fd00::5/64"]
    assert (first.vm_uid, first.uid, first.name) == ("vm-1", "vmi-1", "db")
    assert (second.network_id, second.interface, second.mac, second.ips) == (8, "extra", None, [])


def test_a_network_without_subnets_takes_every_address() -> None:
    instance = vmi({"name": "extra", "ipAddresses": ["192.0.2.20", "fe80::1"]})
    assert [vm_attachment.ips for vm_attachment in running.vm_attachments(instance, [], KNOWN)] == [
        [],
        ["192.0.2.20/32"],
    ]


def test_the_pods_annotation_counts_first() -> None:
    instance = vmi({"name": "default", "mac": OTHER, "ipAddresses": ["10.0.0.5", "10.0.0.9"]})
    (result,) = running.vm_attachments(instance, [launcher("a", "10.0.0.5/24")], KNOWN)
    assert (result.mac, result.ips, result.pods) == (MAC, ["10.0.0.5/24", "10.0.0.9/24"], ["a"])


@pytest.mark.parametrize("phase", ["Pending", "Scheduling", "Succeeded", "Failed"])
def test_what_does_not_run_holds_nothing(phase: str) -> None:
    assert list(running.vm_attachments(vmi(phase=phase), [], KNOWN)) == []


def test_an_unplugged_interface_and_one_of_an_unknown_network() -> None:
    assert [
        vm_attachment.interface
        for vm_attachment in running.vm_attachments(vmi(state="absent"), [], KNOWN)
    ] == ["extra"]
    assert list(running.vm_attachments(vmi(), [launcher("a")], ClusterNetworks())) == []
    assert ClusterNetworks().lacks(launcher("a"))
    assert not KNOWN.lacks(launcher("a"))


def test_a_vm_and_what_it_requests() -> None:
    template = {
        "metadata": {"annotations": {attachments.ADDRESSES: '{"default": ["10.0.0.5", "x"], "extra": 7}'}},
        "spec": {"networks": [{"name": "default", "pod": {}}],
                 "domain": {"devices": {"interfaces": [{"name": "default", "macAddress": MAC}]}}},
    }  # fmt: skip
    metadata = {"namespace": "shop", "name": "db", "uid": "vm-1"}
    status = {"printableStatus": "Stopped"}
    machine = attachments.parse_machine({"metadata": metadata, "spec": {"template": template}, "status": status})  # fmt: skip
    assert machine.addresses == {"default": ("10.0.0.5",)}
    assert (machine.status, [nic.mac for nic in machine.nics]) == ("Stopped", [MAC])
    assert [problem.code for problem in machine.problems] == ["not_an_address", "wrong_type"]
