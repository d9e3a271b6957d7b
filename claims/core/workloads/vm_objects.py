"""Accessors for VirtualMachines, VirtualMachineInstances and virt-launcher pods (kubevirt.io/v1).

Beside it: projections of objects to the fields that are read here; a pod may have a hundred kilobytes.

The API server may not have validated the objects yet: values of the wrong type are ignored.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from claims.core import macs
from claims.core.workloads import attachments
from claims.core.workloads.vm_addresses import Interface
from pools.core import errors
from pools.core.kubernetes.resources import Manifest

LAUNCHER = ("kubevirt.io", "virt-launcher")  # a label
DOMAIN = "kubevirt.io/domain"  # an annotation of launcher pods
NAME = "vm.kubevirt.io/name"  # a label; cut at 63 characters
VM, VMI = "VirtualMachine", "VirtualMachineInstance"


def member(value: object, *keys: str) -> Any:
    """Return the value at the path; None if a part of the path is absent or not an object."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: object, *keys: str) -> str:
    content = member(value, *keys)
    return content if isinstance(content, str) else ""


def annotation(manifest: object, name: str, *metadata_path: str) -> object:
    """Return an annotation of the metadata at a path; None if it is absent."""
    return member(manifest, *(metadata_path or ("metadata",)), "annotations", name)


def takes_annotations(manifest: object, *metadata_path: str) -> bool:
    """Return True if the metadata at a path and its annotations are objects or absent."""
    return all(
        section is None or isinstance(section, dict)
        for section in (
            member(manifest, *metadata_path),
            member(manifest, *metadata_path, "annotations"),
        )
    )


def is_launcher(pod: object) -> bool:
    """Return True if the pod is a launcher pod, in which a VM runs or will run."""
    return text(pod, "metadata", "labels", LAUNCHER[0]) == LAUNCHER[1]


def vm_name(pod: object) -> str:
    """Return the name of a launcher pod's VM, or ""."""
    return text(pod, "metadata", "annotations", DOMAIN) or text(pod, "metadata", "labels", NAME)


def owner_uid(pod: object) -> str:
    """Return the uid of the VMI that owns a launcher pod, or ""."""
    for owner in objects(member(pod, "metadata", "ownerReferences")):
        if owner.get("kind") == VMI:
            return text(owner, "uid")
    return ""


def interface(manifest: object) -> Interface | None:
    """Return the interface of a VM or VMI to the pod network, or None."""
    inner = ("spec", "template", "spec") if text(manifest, "kind") == VM else ("spec",)
    spec = member(manifest, *inner)
    pod_networks = (
        text(network, "name")
        for network in objects(member(spec, "networks"))
        if isinstance(network.get("pod"), dict)
    )
    name = next(filter(None, pod_networks), "")
    for nic in objects(member(spec, "domain", "devices", "interfaces")):
        if name and nic.get("name") == name:
            return Interface(name, _mac(nic.get("macAddress")))
    return None


def network_name(manifest: object, nads: Collection[str], *, namespace: str, primary: bool) -> str:
    """Return the VM's or VMI's own name for the network of these NADs (`namespace/name`), or "".

    `primary`: the network is the primary network of the namespace, which replaces the pod network.
    """
    inner = ("spec", "template", "spec") if text(manifest, "kind") == VM else ("spec",)
    for network in objects(member(manifest, *inner, "networks")):
        nad = text(network, "multus", "networkName")
        nad = nad if "/" in nad else f"{namespace}/{nad}"
        if nad in nads or (primary and isinstance(network.get("pod"), dict)):
            return text(network, "name")
    return ""


def objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects in a list; nothing if the value is not a list."""
    yield from (
        element
        for element in (value if isinstance(value, list) else ())
        if isinstance(element, dict)
    )


def _mac(value: object) -> str | None:
    with contextlib.suppress(errors.InvalidInput):
        return macs.parse_mac(value)
    return None


# The kept fields: a field as a whole (None), or some keys of it.
_Parts = Mapping[str, Any]

_METADATA = dict.fromkeys(
    ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
     "ownerReferences", "finalizers")
)  # fmt: skip
_LABELS = (LAUNCHER[0], "kubevirt.io/created-by", DOMAIN, NAME)
_ANNOTATIONS = (
    attachments.POD_NETWORKS,
    attachments.NETWORK_STATUS,
    DOMAIN,
    attachments.ADDRESSES,
    "k8s.v1.cni.cncf.io/networks",
    "v1.multus-cni.io/default-network",
)
_OBJECT = {"apiVersion": None, "kind": None}
_KNOWN = {"labels": dict.fromkeys(_LABELS), "annotations": dict.fromkeys(_ANNOTATIONS)}
_NICS = {
    "networks": None,
    "domain": {"devices": {"interfaces": None}},
}

POD = _OBJECT | {
    "metadata": _METADATA | _KNOWN,
    "spec": {"nodeName": None, "hostNetwork": None},
    "status": {"phase": None, "podIP": None, "podIPs": None},
}
INSTANCE = _OBJECT | {
    "metadata": _METADATA | _KNOWN,
    "spec": _NICS,
    "status": {"phase": None, "nodeName": None, "interfaces": None, "activePods": None,
               "migrationState": None},
}  # fmt: skip
MACHINE = _OBJECT | {
    "metadata": _METADATA | {"labels": None, "annotations": None},
    "spec": {
        "running": None,
        "runStrategy": None,
        "template": {"metadata": {"labels": None, "annotations": None}, "spec": _NICS},
    },
    "status": {"printableStatus": None, "ready": None, "created": None},
}
ROLE_BINDING = _OBJECT | {"metadata": _METADATA, "roleRef": None, "subjects": None}
GROUP = _OBJECT | {"metadata": _METADATA, "users": None}


def project(manifest: Manifest, parts: _Parts) -> Manifest:
    """Return the parts of a manifest."""
    projection: Manifest = {}
    for key, subparts in parts.items():
        if key in manifest:
            value = manifest[key]
            # A value of the wrong type is kept, so that the parser reports it.
            projection[key] = (
                project(value, subparts) if subparts and isinstance(value, dict) else value
            )
    return projection
