"""VMs as other tools print them, brought into the form of Forklift's inventory (inventory.py).

Read are KubeVirt's manifests, vSphere's managed objects (`govc vm.info -json`), what Ansible's modules for VMware register, and
oVirt's REST API (`/ovirt-engine/api/vms?follow=nics,reported_devices`). What is no object stays as it is, so that its row says so.
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
        "id": _field(_part(vm, "self"), "value"),
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


def ansible_vms(value: object) -> list[Json]:
    """Return the VMs that a module of community.vmware or vmware.vmware registered, also in a loop; [] of anything else."""
    if isinstance(value, list):
        return [vm for item in value for vm in ansible_vms(item)]
    if not isinstance(value, Mapping):
        return []
    is_listed = "guest_name" in value and not isinstance(value.get("mac_address"), str)
    if "hw_name" in value or is_listed:  # a text is that of a table
        return [_of_ansible(value)]
    return ansible_vms([value.get(key) for key in _ANSIBLE_KEYS])


_ANSIBLE_KEYS = ("results", "virtual_machines", "vms", "instance")


def _of_ansible(vm: Json) -> Json:
    """Return a VM of vmware_guest_info or vm_info (`hw_…`), or of vmware_vm_info (`vm_network`, by MAC address)."""
    nics = [as_mapping(nic) for field, nic in vm.items() if field.startswith("hw_eth")]
    return {
        "id": vm.get("moid"),
        "name": vm.get("hw_name") or vm.get("guest_name"),
        "isTemplate": vm.get("hw_is_template"),
        "powerState": vm.get("hw_power_status") or vm.get("power_state"),
        "ipAddress": vm.get("ipv4") or vm.get("ip_address"),
        "nics": [
            {
                "mac": nic.get("macaddress"),
                "ipAddresses": nic.get("ipaddresses"),
                "network": nic.get("portgroup_key") or nic.get("summary"),
            }
            for nic in nics
        ]
        + [{"mac": mac} for mac in _listed(vm.get("mac_address"))],
        "guestNetworks": [
            {"mac": mac, "ip": ip}
            for mac, families in as_mapping(vm.get("vm_network")).items()
            for ips in as_mapping(families).values()
            for ip in _listed(ips)
        ],
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


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
        "id": vm.get("id"),
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
