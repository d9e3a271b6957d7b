"""NADs of other plugins than OVN-Kubernetes: what their IPAM hands out."""

from typing import Any

import pytest

from claims.models import Network
from pools.models import Finding, ObservedCIDR, Pool
from tests.observed import objects
from tests.observed.conftest import Prod

OVN = {
    "cniVersion": "1.0.0", "type": "ovn-k8s-cni-overlay", "name": "blue", "topology": "layer2",
    "netAttachDefName": "shop/blue", "subnets": "10.100.0.0/16", "role": "secondary",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _definition(server: Any) -> None:
    server.crds("k8s.cni.cncf.io_network-attachment-definitions")


def _macvlan(**ipam: Any) -> dict[str, Any]:
    return {"cniVersion": "0.3.1", "type": "macvlan", "master": "eth0", "ipam": ipam}


def _cidrs() -> list[str]:
    rows = ObservedCIDR.objects.filter(kind="NetworkAttachmentDefinition").order_by("cidr")
    return [f"{row.cidr} {row.role} {row.object_name}" for row in rows]


@pytest.mark.exhaustive
def test_they_are_read_changed_and_made_networks_of_ovn(prod: Prod) -> None:
    prod.server.put(objects.nad("storage", _macvlan(type="whereabouts", range="10.9.0.0/24")))
    prod.server.put(objects.nad("blue", OVN))
    prod.reconcile()
    assert _cidrs() == ["10.9.0.0/24 secondary default/storage"]
    assert Network.objects.get().name == "blue"
    assert [str(cidr.cidr) for cidr in Pool.objects.get().cidrs.all()] == ["10.100.0.0/16"]

    prod.server.put(
        objects.nad("storage", _macvlan(type="static", addresses=[{"address": "10.9.1.1/24"}]))
    )
    prod.reconcile()
    assert _cidrs() == ["10.9.1.1/32 secondary default/storage"]
    prod.follow(objects.nad("storage", OVN | {"netAttachDefName": "default/storage"}))
    assert _cidrs() == []


def test_garbage_is_a_finding_and_no_failed_run(prod: Prod) -> None:
    prod.server.put(objects.nad("garbage", "{no json"))
    prod.server.put(objects.nad("list", "[1, 2]"))
    prod.server.put(objects.nad("odd", _macvlan(type="host-local", ranges=[[{"subnet": "here"}]])))
    prod.server.put(objects.nad("good", _macvlan(type="host-local", subnet="10.9.0.0/24")))
    prod.reconcile()
    assert _cidrs() == ["10.9.0.0/24 secondary default/good"]
    subjects = Finding.objects.filter(code="object_not_readable").values_list("subject", flat=True)
    assert sorted(subjects) == ["default/garbage", "default/list", "default/odd"]


def test_a_clash_with_a_node_is_a_finding(prod: Prod) -> None:
    prod.server.put(objects.node("worker-1", "192.168.1.10"))
    prod.server.put(objects.node("worker-2", "192.168.1.40"))
    whereabouts = {"type": "whereabouts", "range": "192.168.1.0/24"}
    prod.follow(objects.nad("lan", _macvlan(**whereabouts, exclude=["192.168.1.10/32"])))
    finding = Finding.objects.get(code="address_clash")
    assert (finding.kind, finding.severity) == ("Node", "error")
    assert finding.message.startswith(
        "192.168.1.40/32 of Node worker-2 (node-address) lies inside 192.168.1.32/27 of "
        "NetworkAttachmentDefinition default/lan (secondary)"
    )
    prod.follow(objects.nad("lan", _macvlan(**whereabouts, exclude=["192.168.1.0/26"])))
    assert not Finding.objects.filter(code="address_clash").exists()
