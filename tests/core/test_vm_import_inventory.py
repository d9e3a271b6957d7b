"""Forklift's inventory: the shapes of every provider; manifests: each entry and each claim a row."""

from typing import Any

import pytest

from claims.core.vm_import import inventory
from claims.core.vm_import.vm_interface import Skipped, VMInterface
from pools.platform import documents

MAC, MAC_2 = "00:50:56:83:25:47", "00:50:56:83:25:48"
PORT_GROUP = {"kind": "DistributedVirtualPortgroup", "id": "dvportgroup-31"}


def _read(*vms: object) -> tuple[list[VMInterface], dict[str, int]]:
    skipped = Skipped()
    return list(inventory.vms(vms, skipped)), skipped


def _guest(ip: str, **fields: Any) -> dict[str, Any]:
    network = {"mac": MAC, "network": "vlan100-prod", "origin": "manual", "prefix": 24}
    return {"device": "0", "deviceConfigId": 4000, "ip": ip, **network, **fields}


def _vsphere(**fields: Any) -> dict[str, Any]:
    nic = {"network": PORT_GROUP, "mac": MAC, "order": 0, "deviceKey": 4000}
    guests = [_guest("10.0.0.21"), _guest("fe80::1", origin="linklayer", prefix=64)]
    return {"id": "vm-1", "name": "Web 01", "nics": [nic], "guestNetworks": guests, **fields}


def test_vsphere() -> None:
    result, skipped = _read(_vsphere())
    assert skipped == {}
    assert [(item.vm, item.mac, item.ips, item.port_group, item.note) for item in result] == [
        ("Web 01", MAC, ("10.0.0.21/24",), "vlan100-prod", "origin manual")
    ]
    assert [problem.code for problem in result[0].problems] == ["link_local_set_aside"]
    assert not result[0].refused


def test_addresses_belong_to_the_interface_of_their_mac_else_of_their_device() -> None:
    second = {"network": {"kind": "Network", "id": "network-7"}, "mac": MAC_2, "deviceKey": 4001}
    vm = _vsphere()
    vm["nics"].append(second)
    vm["guestNetworks"] += [
        _guest("10.0.1.1", mac=MAC_2.upper(), deviceConfigId=4001, network=""),
        _guest("10.0.1.2", mac="", deviceConfigId=4001, network=""),
        _guest("172.17.0.1", mac="02:42:00:00:00:01", deviceConfigId=-1),
    ]
    result, skipped = _read(vm)
    assert [item.ips for item in result] == [("10.0.0.21/24",), ("10.0.1.1/24", "10.0.1.2/24")]
    assert [item.port_group for item in result] == ["vlan100-prod", "network-7"]
    assert skipped == {"guest_only_interface": 1}


def test_a_prefix_of_zero_is_none() -> None:
    result, _ = _read(_vsphere(guestNetworks=[_guest("10.0.0.21", prefix=0, origin="dhcp")]))
    assert (result[0].ips, result[0].note) == (("10.0.0.21",), "origin dhcp")


def test_without_tools_there_is_no_address() -> None:
    result, _ = _read(_vsphere(guestNetworks=None))
    assert (result[0].ips, result[0].port_group) == ((), "dvportgroup-31")
    assert [problem.code for problem in result[0].problems] == ["no_address"]


OTHERS: dict[str, tuple[dict[str, Any], tuple[object, ...]]] = {
    "hyper-v": (
        {
            "nics": [
                {"name": "Network Adapter", "mac": MAC, "deviceIndex": 0, "networkName": "sw"}
            ],
            "guestNetworks": [{"mac": MAC, "ip": "10.0.0.1", "deviceIndex": 0, "prefix": 24}],
        },
        (MAC, ("10.0.0.1/24",), "sw"),
    ),
    "ovirt": (
        {
            "nics": [
                {
                    "mac": MAC,
                    "profile": "profile-1",
                    "ipAddress": [
                        {"address": "10.0.0.1", "version": "v4"},
                        {"address": "2001:db8::1", "version": "v6"},
                    ],
                }
            ]
        },
        (MAC, ("10.0.0.1", "2001:db8::1"), "profile-1"),
    ),
    "openstack": (
        {
            "addresses": {
                "private": [
                    {"addr": "10.0.0.1", "version": 4, "OS-EXT-IPS-MAC:mac_addr": MAC},
                    {"addr": "2001:db8::1", "version": 6, "OS-EXT-IPS-MAC:mac_addr": MAC},
                    {
                        "addr": "203.0.113.9",
                        "OS-EXT-IPS-MAC:mac_addr": MAC,
                        "OS-EXT-IPS:type": "floating",
                    },
                ]
            }
        },
        (MAC, ("10.0.0.1", "2001:db8::1"), "private"),
    ),
    "ova": (
        {"nics": [{"Name": "nic", "MAC": MAC, "Network": "VM Network"}]},
        (MAC, (), "VM Network"),
    ),
    "nutanix": (
        {"nics": [{"macAddress": MAC, "subnetName": "net", "ipAddresses": ["10.0.0.1"]}]},
        (MAC, ("10.0.0.1",), "net"),
    ),
    "openshift": (
        {
            "namespace": "prod",
            "object": {
                "spec": {
                    "template": {
                        "spec": {"domain": {"devices": {"interfaces": [{"name": "net-0"}]}}}
                    }
                }
            },
            "instance": {
                "status": {
                    "interfaces": [{"name": "net-0", "mac": MAC, "ipAddresses": ["10.0.0.1"]}]
                }
            },
        },
        (MAC, ("10.0.0.1",), "net-0"),
    ),
}


@pytest.mark.parametrize("provider", OTHERS)
def test_the_other_providers(provider: str) -> None:
    fields, expected = OTHERS[provider]
    vm = {"id": "1", "name": "web-01", **fields}
    assert inventory.is_vm(vm)
    result, _ = _read(vm)
    assert [(item.mac, item.ips, item.port_group) for item in result] == [expected]


@pytest.mark.parametrize(
    ("vm", "reason"),
    [(_vsphere(isTemplate=True), "template"), (_vsphere(name="vCLS-1"), "vcls")],
)
def test_what_is_passed_over_is_counted(vm: dict[str, Any], reason: str) -> None:
    assert _read(vm) == ([], {reason: 1})


@pytest.mark.parametrize(
    ("vm", "code"),
    [
        ("text", "wrong_type"),
        (_vsphere(nics=[], guestNetworks=[]), "mac_missing"),
        (_vsphere(nics=[{"mac": ""}], guestNetworks=[]), "mac_missing"),
        (_vsphere(nics="x"), "mac_missing"),
        (_vsphere(name=""), "required"),
        (_vsphere(nics=[{"mac": "00:00:00:00:00:00"}]), "zero_mac"),
    ],
)
def test_what_cannot_be_used_is_refused_as_a_row(vm: object, code: str) -> None:
    result, _ = _read(vm)
    assert result[0].refused
    assert code in [problem.code for problem in result[0].problems]


# --- manifests -------------------------------------------------------------------------------------

HEAD = "apiVersion: ippool.k8s.cni.cncf.io/v1alpha\nkind: IPPool\nmetadata: {name: p}\n"


def _ippool(entries: str) -> dict[str, Any]:
    text = f"{HEAD}spec:\n  network-name: prod\n  entries:\n{entries}"
    (document,) = documents.load_yaml(text, repeatable=[("spec", "entries")])
    return document.data


def _claim(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "web-01.prod", "namespace": "ns", "labels": {"kubevirt.io/vm": "web-01"}}
    return {"kind": "IPAMClaim", "metadata": metadata, "spec": {"network": "prod", **spec}}


def test_entries_of_a_ippool() -> None:
    pool = _ippool(f'    "{MAC}": [10.0.0.1/24, "2001:db8::1/64"]\n    "{MAC_2}": [127.0.0.1/8]\n')
    vm_interfaces = list(inventory.manifest_rows([pool]))
    assert [
        (vm_interface.row, vm_interface.mac, vm_interface.ips, vm_interface.port_group)
        for vm_interface in vm_interfaces
    ] == [
        (1, MAC, ("10.0.0.1/24", "2001:db8::1/64"), "prod"),
        (2, MAC_2, ("127.0.0.1/8",), "prod"),
    ]
    codes = [[problem.code for problem in item.problems] for item in vm_interfaces]
    assert codes == [[], ["special_purpose"]]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (f'"{MAC}": 10.0.0.1/24', "wrong_type"),
        (f'"{MAC}": [1]', "wrong_type"),
        ('"mac": [10.0.0.1/24]', "mac_syntax"),
        (f'"{MAC}": [010.0.0.1/24]', "leading_zero"),
    ],
)
def test_an_entry_that_cannot_be_read_is_a_refused_row(entry: str, code: str) -> None:
    (result,) = inventory.manifest_rows([_ippool(f"    {entry}\n")])
    assert result.refused
    assert [problem.code for problem in result.problems] == [code]


def test_a_claim() -> None:
    (result,) = inventory.manifest_rows([_claim(mac=MAC, ips=["10.0.0.1/24"])])
    assert (result.vm, result.mac, result.ips) == ("web-01", MAC, ("10.0.0.1/24",))
    assert (result.namespace, result.port_group, result.problems) == ("ns", "prod", ())


def test_a_claim_may_do_without_mac_and_addresses() -> None:
    claim = _claim() | {"status": {"ips": ["10.0.0.7/24"]}}
    with_status, bare = inventory.manifest_rows([claim, _claim()])
    assert with_status.ips == ("10.0.0.7/24",)
    assert [problem.code for problem in bare.problems] == ["no_address"]
    assert not bare.refused


@pytest.mark.parametrize(
    "manifest", ["text", {}, {"kind": "Pod"}, {"kind": "IPPool"}, _claim(network="")]
)
def test_anything_else_is_a_refused_row(manifest: object) -> None:
    (result,) = inventory.manifest_rows([manifest])
    assert result.refused
    assert result.problems


def test_rows_are_numbered_over_all_objects() -> None:
    pool = _ippool(f'    "{MAC}": [10.0.0.1/24]\n    "{MAC_2}": [10.0.0.2/24]\n')
    listed = inventory.objects([{"kind": "List", "items": [pool, _claim()]}, pool])
    assert [vm_interface.row for vm_interface in inventory.manifest_rows(listed)] == [1, 2, 3, 4, 5]
