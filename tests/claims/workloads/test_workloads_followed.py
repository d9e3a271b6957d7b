"""Workloads as a cluster has them: followed, many, gone, and the VMs that have none."""

from ipaddress import ip_interface, ip_network
from typing import Any

import pytest

from claims.core.workloads import attachments
from claims.core.workloads.attachments import Attachment, Pod
from claims.workloads import running
from claims.workloads.running import ClusterNetworks, Net
from pools.models import Block, BlockState
from tests.claims.networks import ovn
from tests.claims.workloads import kubevirt
from tests.claims.workloads.kubevirt import MAC, KubeVirt, attachment

FIVE = "10.0.0.5/16"


def held() -> dict[str, tuple[str, str, str]]:
    rows = Block.objects.filter(state=BlockState.HELD)
    return {str(row.cidr): (row.holder_kind, row.holder_id, row.holder_uid) for row in rows}


@pytest.mark.exhaustive
def test_a_vm_from_start_to_stop(cluster: KubeVirt) -> None:
    vm = cluster.vm("db", "Starting")
    cluster.passed()
    vmi = cluster.vmi(vm, phase="Scheduling")
    pod = cluster.launcher("virt-launcher-db-1", vmi)
    cluster.passed()
    cluster.put(pod | {"metadata": cluster.launcher("virt-launcher-db-1", vmi, FIVE)["metadata"]})
    cluster.vmi(vm, "10.0.0.5", "fe80::1")
    cluster.passed()
    assert cluster.running() == [("vmi", "db", MAC, [FIVE], ["virt-launcher-db-1"])]
    (row,) = cluster.rows()
    assert (row.vm_uid, row.node, row.phase) == (vm["metadata"]["uid"], "n1", "Running")
    assert held() == {"10.0.0.5/32": ("vm", "default/db", vm["metadata"]["uid"])}
    assert cluster.counted() == {"changed": 0, "written": 0, "failed": 0}
    cluster.remove("virtualmachineinstances", "db")
    cluster.remove("pods", "virt-launcher-db-1")
    cluster.passed()
    assert len(cluster.rows()) == 1  # one list without it is no end
    cluster.twice()
    assert cluster.rows() == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("late", ["VirtualMachineInstance", "Pod"])
def test_in_whatever_order(cluster: KubeVirt, late: str) -> None:
    vmi = cluster.vmi(cluster.vm("db"), "10.0.0.5")
    pods = [] if late == "Pod" else ["virt-launcher-db-1"]
    cluster.launcher("virt-launcher-db-1", vmi, FIVE)
    cluster.passed(without=late)
    assert cluster.running() == [("vmi", "db", MAC, [FIVE], pods)]
    cluster.passed()
    assert cluster.running() == [("vmi", "db", MAC, [FIVE], ["virt-launcher-db-1"])]
    assert [row.interface for row in cluster.rows()] == ["default"]


@pytest.mark.exhaustive
def test_a_live_migration(cluster: KubeVirt) -> None:
    vm = cluster.vm("db")
    vmi = cluster.vmi(vm, "10.0.0.5")
    cluster.launcher("virt-launcher-db-1", vmi, FIVE)
    cluster.passed()
    before = held()
    cluster.launcher("virt-launcher-db-2", vmi, FIVE, node="n2")
    cluster.passed()
    both = ["virt-launcher-db-1", "virt-launcher-db-2"]
    assert cluster.running() == [("vmi", "db", MAC, [FIVE], both)]
    cluster.vmi(vm, "10.0.0.5", node="n2")
    cluster.launcher("virt-launcher-db-1", vmi, FIVE, phase="Succeeded")
    cluster.passed()
    assert cluster.running() == [("vmi", "db", MAC, [FIVE], both[1:])]
    assert (cluster.rows()[0].node, held()) == ("n2", before)


@pytest.mark.exhaustive
def test_a_restarted_vm_is_another_instance_of_the_same_vm(cluster: KubeVirt) -> None:
    vm = cluster.vm("db")
    cluster.vmi(vm, "10.0.0.5")
    cluster.passed()
    before = held()
    cluster.remove("virtualmachineinstances", "db")
    again = cluster.vmi(vm, "10.0.0.5")
    cluster.passed()
    assert [row.uid for row in cluster.rows()] == [again["metadata"]["uid"]]
    assert held() == before


def test_plain_pods(cluster: KubeVirt) -> None:
    cluster.pod("web", attachment(FIVE))
    cluster.pod("done", attachment("10.0.0.6/16"), phase="Succeeded")
    cluster.pod("plain", {"default": {"ip_addresses": ["10.244.0.7/24"]}})
    cluster.passed()
    assert cluster.running() == [("pod", "web", MAC, [FIVE], ["web"])]
    cluster.pod("web", attachment(FIVE), phase="Succeeded")
    cluster.passed()
    assert cluster.rows() == []


@pytest.mark.exhaustive
def test_a_network_that_is_known_later(cluster: KubeVirt) -> None:
    networks = attachment("10.9.0.5/24", nad="default/late")
    cluster.pod("web", networks)
    cluster.passed()
    assert cluster.rows() == []
    cluster.put(ovn.nad("late", name="default_late", subnets="10.9.0.0/24"))
    cluster.passed()
    assert cluster.running() == [("pod", "web", MAC, ["10.9.0.5/24"], ["web"])]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("networks", "code", "ips"),
    [
        ("{", "json_syntax", None),
        (attachment(FIVE, mac="nonsense"), "mac_syntax", [FIVE]),
        (attachment(FIVE, "nonsense"), "not_an_address", [FIVE]),
        (attachment(FIVE) | {"nonsense": {}}, "attachment", [FIVE]),
    ],
)
def test_a_malformed_annotation_is_that_objects_problem(
    cluster: KubeVirt, networks: Any, code: str, ips: list[str] | None
) -> None:
    status = '[{"name": "default/other"}]'
    cluster.pod("odd", networks, annotations={"k8s.v1.cni.cncf.io/network-status": status})
    cluster.pod("well", attachment("10.0.0.9/16"))
    cluster.passed()
    assert cluster.problems() == {"odd": code}
    result = {row.name: row.ips for row in cluster.rows()}
    assert result == ({"odd": ips} if ips else {}) | {"well": ["10.0.0.9/16"]}


# --- A workload goes when its object is gone, and never because a cluster did not answer ----------
def tell(cluster: KubeVirt, kind: str, *events: tuple[str, kubevirt.Manifest]) -> None:
    """What a watch told, between two passes."""
    run = cluster.ingest(kind, kubevirt.handlers(), *events)
    assert not run.error_code


def test_what_a_watch_tells_counts_at_once(cluster: KubeVirt) -> None:
    cluster.passed()
    pod = cluster.pod("web", attachment(FIVE))
    tell(cluster, "Pod", ("ADDED", pod))
    assert cluster.running() == [("pod", "web", MAC, [FIVE], ["web"])]
    tell(cluster, "Pod", ("DELETED", pod))
    assert cluster.rows() == []
    assert not Block.objects.filter(state=BlockState.HELD).exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", [("Pod", "VirtualMachineInstance"), ("VirtualMachineInstance", "Pod")])  # fmt: skip
def test_a_vm_that_stops_in_whatever_order(cluster: KubeVirt, order: tuple[str, str]) -> None:
    vmi = cluster.vmi(cluster.vm("db"), "10.0.0.5")
    pod = cluster.launcher("virt-launcher-db-1", vmi, FIVE)
    cluster.passed()
    objects = {"Pod": pod, "VirtualMachineInstance": vmi}
    tell(cluster, order[0], ("DELETED", objects[order[0]]))
    assert [row.name for row in cluster.rows()] == ["db"]
    tell(cluster, order[1], ("DELETED", objects[order[1]]))
    assert cluster.rows() == []


def test_a_cluster_without_nads_says_nothing_of_workloads(cluster: KubeVirt) -> None:
    cluster.pod("web", attachment(FIVE))
    cluster.passed()
    crd = "network-attachment-definitions.k8s.cni.cncf.io"
    cluster.server.remove("customresourcedefinitions", crd)
    for _ in range(2):
        run = cluster.sync(*kubevirt.handlers())
        assert run.kinds["Pod"]["code"] == "crd_missing"
        assert "NetworkAttachmentDefinition" in run.kinds["Pod"]["message"]
    assert [row.name for row in cluster.rows()] == ["web"]


# --- VMs: their interfaces, and one workload of an instance with its launcher pods ----------------
NET = Net(7, (ip_network("10.0.0.0/24"), ip_network("fd00::/64")))
KNOWN = ClusterNetworks({"shop/prod": NET, "shop/free": Net(8)}, {"shop": "shop/prod"})
VM_MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def vmi(*reported: dict[str, Any], phase: str = "Running", **nic: Any) -> attachments.Instance:
    interfaces = [{"name": "default", "bridge": {}, "macAddress": VM_MAC} | nic, {"name": "extra"}]
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


def launcher(name: str, *ips: str, node: str = "n1", mac: str = VM_MAC, over: bool = False) -> Pod:
    addresses = tuple(map(ip_interface, ips))
    nics = (Attachment("shop/prod", "shop/prod", mac, addresses, True, True),)
    return Pod("shop", name, f"u-{name}", node, "Running", "", over, "db", "vmi-1", True, nics, ())


def test_what_the_guest_reports_counts_in_the_subnets_only() -> None:
    addresses = ["10.0.0.5", "172.17.0.1", "fe80::1%eth0", "127.0.0.1", "fd00::5%eth0"]
    instance = vmi({"name": "default", "mac": OTHER, "ipAddresses": addresses, "infoSource": "domain, guest-agent"},
                {"interfaceName": "docker0", "ipAddress": "10.0.0.77", "mac": VM_MAC})  # fmt: skip
    (first, second) = running.vm_attachments(instance, [], KNOWN)
    assert (first.network_id, first.interface, first.mac) == (7, "default", OTHER)
    assert first.ips == ["10.0.0.5/24", "fd00::5/64"]
    assert (first.vm_uid, first.uid, first.name) == ("vm-1", "vmi-1", "db")
    assert (second.network_id, second.interface, second.mac, second.ips) == (8, "extra", None, [])


def test_a_network_without_subnets_takes_every_address() -> None:
    instance = vmi({"name": "extra", "ipAddresses": ["192.0.2.20", "fe80::1"]})
    result = running.vm_attachments(instance, [], KNOWN)
    assert [item.ips for item in result] == [[], ["192.0.2.20/32"]]


def test_the_pods_annotation_counts_first() -> None:
    instance = vmi({"name": "default", "mac": OTHER, "ipAddresses": ["10.0.0.5", "10.0.0.9"]})
    (result,) = running.vm_attachments(instance, [launcher("a", "10.0.0.5/24")], KNOWN)
    assert (result.mac, result.ips, result.pods) == (VM_MAC, ["10.0.0.5/24", "10.0.0.9/24"], ["a"])


@pytest.mark.parametrize("phase", ["Pending", "Scheduling", "Succeeded", "Failed"])
def test_what_does_not_run_holds_nothing(phase: str) -> None:
    assert list(running.vm_attachments(vmi(phase=phase), [], KNOWN)) == []


def test_an_unplugged_interface_and_one_of_an_unknown_network() -> None:
    (extra,) = running.vm_attachments(vmi(state="absent"), [], KNOWN)
    assert extra.interface == "extra"
    assert list(running.vm_attachments(vmi(), [launcher("a")], ClusterNetworks())) == []
    assert ClusterNetworks().lacks(launcher("a"))
    assert not KNOWN.lacks(launcher("a"))


def test_a_vm_and_what_it_requests() -> None:
    template = {
        "metadata": {"annotations": {attachments.ADDRESSES: '{"default": ["10.0.0.5", "x"], "extra": 7}'}},
        "spec": {"networks": [{"name": "default", "pod": {}}],
                 "domain": {"devices": {"interfaces": [{"name": "default", "macAddress": VM_MAC}]}}},
    }  # fmt: skip
    metadata = {"namespace": "shop", "name": "db", "uid": "vm-1"}
    status = {"printableStatus": "Stopped"}
    machine = attachments.parse_machine({"metadata": metadata, "spec": {"template": template}, "status": status})  # fmt: skip
    assert machine.addresses == {"default": ("10.0.0.5",)}
    assert (machine.status, [nic.mac for nic in machine.nics]) == ("Stopped", [VM_MAC])
    assert [problem.code for problem in machine.problems] == ["not_an_address", "wrong_type"]
