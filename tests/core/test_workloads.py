"""What annotations and objects of KubeVirt and OVN-Kubernetes say, and what cannot be read of them."""

import contextlib
import json
from typing import Any

import pytest

from claims.core.workloads import attachments
from pools.core import errors

STATUS = [
    {"name": "ovn-kubernetes", "interface": "eth0", "ips": ["10.131.0.35"], "mac": "0a:58:0a:83:00:23", "dns": {}},
    {"name": "ovn-kubernetes", "interface": "ovn-udn1", "ips": ["10.0.0.4"], "mac": "0a:58:0a:00:00:04", "default": True},
    {"name": "shop/storage", "interface": "net1", "ips": ["192.168.9.4"], "mac": "02:00:00:00:00:09"},
]  # fmt: skip
NETWORKS = {
    "default": {"ip_addresses": ["10.131.0.35/23"], "mac_address": "0a:58:0a:83:00:23", "role": "infrastructure-locked"},
    "shop/prod": {"ip_addresses": ["10.0.0.4/24", "fd00::4/64"], "mac_address": "0A:58:0a:00:00:04", "role": "primary"},
}  # fmt: skip


def pod(networks: Any = NETWORKS, status: Any = STATUS, **more: Any) -> dict[str, Any]:
    annotations = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in (
            (attachments.POD_NETWORKS, networks),
            (attachments.NETWORK_STATUS, status),
        )
        if value is not None
    }
    metadata = {"namespace": "shop", "name": "web", "uid": "u-1", "annotations": annotations}
    return {"metadata": metadata | more.pop("metadata", {}), "spec": {"nodeName": "n1"}} | more


def test_a_pod_on_a_primary_and_a_secondary_network() -> None:
    result = attachments.parse_pod(pod())
    assert [(attachment.nad, attachment.mac, list(map(str, attachment.ips)), attachment.primary) for attachment in result.attachments] == [
        ("shop/prod", "0a:58:0a:00:00:04", ["10.0.0.4/24", "fd00::4/64"], True),
        ("shop/storage", "02:00:00:00:00:09", ["192.168.9.4/32"], False),
    ]  # fmt: skip
    assert (result.vm, result.over, result.problems) == ("", False, ())


def test_two_attachments_to_one_nad() -> None:
    networks = {key: {"ip_address": "10.0.0.4/24"} for key in ("a/b", "a/b/1")}
    result = attachments.parse_pod(pod(networks, None)).attachments
    assert [(item.nad, item.key) for item in result] == [("a/b", "a/b"), ("a/b", "a/b/1")]


@pytest.mark.parametrize(
    ("networks", "code", "count"),
    [
        ("{", "json_syntax", 0),
        ("[" * 100_000, "json_syntax", 0),
        ("[]", "wrong_type", 0),
        ("7", "wrong_type", 0),
        ({"shop": {}}, "attachment", 0),
        ({"a/b": 7, "c/d": {}}, "attachment", 1),
        ({"a/b": {"mac_address": "ff:ff:ff:ff:ff:ff"}}, "multicast_mac", 1),
        ({"a/b": {"mac_address": 7}}, "wrong_type", 1),
        ({"a/b": {"ip_addresses": "10.0.0.4"}}, "wrong_type", 1),
        ({"a/b": {"ip_addresses": ["10.0.0.400/24", "10.0.0.4/24"]}}, "not_an_address", 1),
        ({"a/b": {"ip_addresses": [7, {}]}}, "not_an_address", 1),
        ({"a/b": {"ip_addresses": ["%eth0"]}}, "not_an_address", 1),
    ],
)
def test_what_cannot_be_read_is_told(networks: Any, code: str, count: int) -> None:
    result = attachments.parse_pod(pod(networks, None))
    assert {problem.code for problem in result.problems} == {code}
    assert len(result.attachments) == count


@pytest.mark.parametrize("status", ["null", "{}", "[7]", '[{"name": 7}]', '[{"name": "a/b", "ips": 7}]'])  # fmt: skip
def test_an_odd_network_status_costs_no_other_attachment(status: str) -> None:
    assert "shop/prod" in {
        attachment.nad for attachment in attachments.parse_pod(pod(status=status)).attachments
    }


@pytest.mark.parametrize(
    ("change", "attached"),
    [
        ({}, True),
        ({"networks": {"default": {}}, "status": STATUS[:2]}, False),
        ({"networks": None, "status": STATUS}, True),
        ({"networks": "{", "status": None}, False),
        ({"networks": None, "status": None}, False),
        ({"networks": None, "status": None, "metadata": {"labels": {"kubevirt.io": "virt-launcher"}}}, True),
    ],
)  # fmt: skip
def test_which_pods_are_kept(change: dict[str, Any], attached: bool) -> None:
    assert attachments.is_attached(pod(**change)) is attached


def test_a_host_network_pod_is_attached_to_nothing() -> None:
    assert attachments.parse_pod(pod(spec={"hostNetwork": True})).attachments == ()


OWNER = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "name": "db",
    "uid": "vmi-1",
}


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [OWNER]},
        {"annotations": {"kubevirt.io/domain": "db"}, "ownerReferences": [OWNER | {"name": ""}]},
        {"labels": {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "db", "kubevirt.io/created-by": "vmi-1"}},
    ],
)  # fmt: skip
def test_a_launcher_pod_names_its_vm(metadata: dict[str, Any]) -> None:
    result = attachments.parse_pod(
        pod(metadata={"labels": {"kubevirt.io": "virt-launcher"}} | metadata)
    )
    assert (result.vm, result.vmi_uid) == ("db", "vmi-1")


@pytest.mark.parametrize("read", [attachments.parse_pod, attachments.parse_instance, attachments.parse_machine, attachments.is_attached])  # fmt: skip
@pytest.mark.parametrize("odd", [{}, {"metadata": 7}, {"metadata": {"name": "a", "uid": "b", "labels": []}, "spec": 7, "status": []}])  # fmt: skip
def test_objects_of_any_shape(read: Any, odd: dict[str, Any]) -> None:
    with contextlib.suppress(errors.InvalidInput):
        read(odd)
