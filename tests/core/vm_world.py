"""VMs, launcher pods and what the register knows of them, for the tests of the mutating webhook."""

import base64
import json
from typing import Any

from claims.core.workloads.vm_addresses import (
    VM,
    Claim,
    Interface,
    MACEntry,
    PrimaryNetwork,
    Registrations,
)
from tests.kube.fake import patches

MAC = "02:03:04:05:06:07"
NETWORK = "cluster_udn_prod"
Manifest = dict[str, Any]


def network(*subnets: str, **fields: Any) -> PrimaryNetwork:
    return PrimaryNetwork(NETWORK, "blue/prod", subnets=subnets or ("10.0.0.0/16",), **fields)


def entry(*ips: str, mac: str = MAC, **fields: Any) -> MACEntry:
    return MACEntry(NETWORK, mac, ips or ("10.0.0.5/16",), ippool="prod", **fields)


def claim(name: str = "vm-server.podnet", **fields: Any) -> Claim:
    return Claim(NETWORK, name, **fields)


def registrations(
    *entries: MACEntry, claims: tuple[Claim, ...] = (), **fields: Any
) -> Registrations:
    networks = fields.pop("networks", None)
    return Registrations((network(**fields),) if networks is None else networks, entries, claims)


def vm(name: str = "vm-server", *, mac: str | None = MAC, interface: str = "podnet") -> VM:
    """One whose VMI has been seen."""
    return VM("blue", name, observed=True, interface=Interface(interface, mac))


def pod(name: str = "vm-server", annotations: Manifest | None = None, **metadata: Any) -> Manifest:
    """A launcher pod as virt-controller makes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"virt-launcher-{name[:40]}-",
            "labels": {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": name[:63]},
            "annotations": {"kubevirt.io/domain": name, **(annotations or {})},
            **metadata,
        },
        "spec": {"containers": [{"name": "compute", "image": "virt-launcher"}]},
    }


def vm_manifest(
    name: str = "vm-server",
    *,
    mac: str | None = MAC,
    annotations: Manifest | None = None,
    kind: str = "VirtualMachine",
    metadata: bool = True,
    interface: str = "podnet",
) -> Manifest:
    """A VirtualMachine or VirtualMachineInstance with an interface to the pod network."""
    pod_interface: Manifest = {"name": interface, "binding": {"name": "l2bridge"}}
    if mac:
        pod_interface["macAddress"] = mac
    spec: Manifest = {
        "domain": {"devices": {"interfaces": [{"name": "other", "bridge": {}}, pod_interface]}},
        "networks": [
            {"name": "other", "multus": {"networkName": "other"}},
            {"name": interface, "pod": {}},
        ],
    }
    inner: Manifest = {"metadata": {"annotations": annotations}} if annotations else {}
    if metadata and not inner:
        inner = {"metadata": {"creationTimestamp": None}}
    created: Manifest = {
        "apiVersion": "kubevirt.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "blue"},
    }
    if kind == "VirtualMachine":
        return created | {"spec": {"runStrategy": "Always", "template": {**inner, "spec": spec}}}
    return created | {
        "metadata": {**created["metadata"], **inner.get("metadata", {})},
        "spec": spec,
    }


def patched(manifest: Manifest, patch: Any) -> Manifest:
    """The manifest as an API server makes it of a patch, which may be in base64."""
    operations = json.loads(base64.b64decode(patch)) if isinstance(patch, str) else patch
    return dict(patches.json_patch(manifest, operations))
