"""VMs as other tools print them, brought into the form of Forklift's inventory (inventory.py).

Read are KubeVirt's manifests, vSphere's managed objects (`govc vm.info -json`) and oVirt's REST API
(`/ovirt-engine/api/vms?follow=nics,reported_devices`). What is no object stays as it is, so that its row says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from claims.core.vm_import.inventory import (
    Json,
    as_mapping,
    first_value,
    listed_mappings,
    plain_text,
)

VM_KINDS = ("VirtualMachine", "VirtualMachineInstance")


def of_manifests(manifests: Sequence[Json]) -> list[Json]:
    """Return KubeVirt's VMs and their instances (`kubectl get vm,vmi -A -o yaml`) as an OpenShift source has them."""
    vms: dict[tuple[str, str], dict[str, Any]] = {}
    for manifest in manifests:
        metadata = as_mapping(manifest.get("metadata"))
        name, namespace = plain_text(metadata.get("name")), plain_text(metadata.get("namespace"))
        vm = vms.setdefault((namespace, name), {"name": name, "namespace": namespace})
        if manifest.get("kind") == VM_KINDS[0]:
            vm["object"] = manifest
            vm["status"] = as_mapping(manifest.get("status")).get("printableStatus")
        else:
            vm["instance"] = manifest
            vm.setdefault("object", {"spec": {"template": manifest}})
    return [*vms.values()]


def _of_vsphere(vm: Json) -> Json:
    """Return a VirtualMachine; older govc begins the names of fields with capitals."""
    config, guest = _part(vm, "config"), _part(vm, "guest")
    return {
        "name": _field(vm, "name") or _field(config, "name"),
        "isTemplate": _field(config, "template"),
        "powerState": _field(_part(vm, "runtime"), "powerState"),
        "guestId": _field(guest, "guestId") or _field(config, "guestId"),
        "ipAddress": _field(guest, "ipAddress"),
        "nics": [*_vsphere_nics(_part(config, "hardware"))],
        "guestNetworks": [*_vsphere_guest(guest)],
    }


def _vsphere_nics(hardware: Json) -> Iterator[Json]:
    for device in listed_mappings(_field(hardware, "device")):
        if mac := _field(device, "macAddress"):
            backing = _part(device, "backing")
            port_group = _field(_part(backing, "port"), "portgroupKey")
            yield {
                "mac": mac,
                "deviceKey": _field(device, "key"),
                "network": _field(backing, "deviceName") or port_group,
            }


def _vsphere_guest(guest: Json) -> Iterator[Json]:
    for nic in listed_mappings(_field(guest, "net")):
        nic_values = {
            "mac": _field(nic, "macAddress"),
            "deviceConfigId": _field(nic, "deviceConfigId"),
            "network": _field(nic, "network"),
        }
        configured = [*listed_mappings(_field(_part(nic, "ipConfig"), "ipAddress"))]
        plain = _field(nic, "ipAddress")
        for address in configured:
            yield nic_values | {
                "ip": _field(address, "ipAddress"),
                "prefix": _field(address, "prefixLength"),
                "origin": _field(address, "origin"),
            }
        if not configured:
            for ip in plain if isinstance(plain, list) else [plain]:
                yield nic_values | {"ip": ip}


def _of_ovirt(vm: Json) -> Json:
    """Return a VM of the REST API; devices that the guest reports are at the VM or at its interfaces."""
    nics = [*listed_mappings(as_mapping(vm.get("nics")).get("nic"))]
    devices = [
        device
        for owner in (vm, *nics)
        for device in listed_mappings(
            as_mapping(owner.get("reported_devices")).get("reported_device")
        )
    ]
    return {
        "name": vm.get("name"),
        "status": vm.get("status"),
        "nics": [
            {
                "mac": as_mapping(nic.get("mac")).get("address"),
                "network": nic.get("network") or nic.get("vnic_profile"),
            }
            for nic in nics
        ],
        "guestNetworks": [
            {"mac": as_mapping(device.get("mac")).get("address"), "ip": ip.get("address")}
            for device in devices
            for ip in listed_mappings(as_mapping(device.get("ips")).get("ip"))
        ],
    }


_LISTS = {
    "virtualMachines": ("vsphere", _of_vsphere),
    "VirtualMachines": ("vsphere", _of_vsphere),
    "vm": ("ovirt", _of_ovirt),
}


def read_list(document: Json) -> tuple[str, list[object]] | None:
    """Return the name of the tool and the VMs of a document; None if it is of no tool that is known."""
    for field, (tool, convert) in _LISTS.items():
        listed = document.get(field)
        if isinstance(listed, list):
            return tool, [convert(vm) if isinstance(vm, Mapping) else vm for vm in listed]
    return None


def _field(values: Json, name: str) -> Any:
    return first_value(values, name, name[0].upper() + name[1:])


def _part(values: Json, name: str) -> Json:
    return as_mapping(_field(values, name))
