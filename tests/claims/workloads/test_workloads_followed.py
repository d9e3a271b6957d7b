"""What runs in a cluster is a row for each attachment, as long as it runs."""

from typing import Any

import pytest

from pools.models import Block, BlockState
from tests.claims.networks import ovn
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
