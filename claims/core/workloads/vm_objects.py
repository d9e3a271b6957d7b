"""What VirtualMachines, VirtualMachineInstances and virt-launcher pods say of a VM (kubevirt.io/v1).

Read are objects that an API server has accepted or is about to judge: whatever is no object, list or
text where one belongs is passed over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from claims.core import macs
from claims.core.workloads.vm_addresses import Interface
from pools.core import errors

LAUNCHER = ("kubevirt.io", "virt-launcher")  # a label
DOMAIN = "kubevirt.io/domain"  # an annotation of launcher pods
NAME = "vm.kubevirt.io/name"  # a label; cut at 63 characters
VM, VMI = "VirtualMachine", "VirtualMachineInstance"


def member(value: object, *keys: str) -> Any:
    """What stands at the path; None when something on the way is absent or no object."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: object, *keys: str) -> str:
    content = member(value, *keys)
    return content if isinstance(content, str) else ""


def annotation(manifest: object, name: str, *metadata_path: str) -> object:
    """The annotation of the metadata at a path, None when it is absent."""
    return member(manifest, *(metadata_path or ("metadata",)), "annotations", name)


def takes_annotations(manifest: object, *metadata_path: str) -> bool:
    """Whether the metadata at a path, and its annotations, are objects as far as they are there."""
    return all(
        section is None or isinstance(section, dict)
        for section in (
            member(manifest, *metadata_path),
            member(manifest, *metadata_path, "annotations"),
        )
    )


def is_launcher(pod: object) -> bool:
    """Whether a VM runs, or will run, in the pod."""
    return text(pod, "metadata", "labels", LAUNCHER[0]) == LAUNCHER[1]


def vm_name(pod: object) -> str:
    """The VM of a launcher pod, "" when it says none."""
    return text(pod, "metadata", "annotations", DOMAIN) or text(pod, "metadata", "labels", NAME)


def owner_uid(pod: object) -> str:
    """The uid of the VMI that a launcher pod belongs to."""
    for owner in objects(member(pod, "metadata", "ownerReferences")):
        if owner.get("kind") == VMI:
            return text(owner, "uid")
    return ""


def interface(manifest: object) -> Interface | None:
    """The interface to the pod network of a VM or VMI; None when it has none."""
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
    """What a VM or VMI calls a network of these NADs (`namespace/name`), "" when it is not on it.

    `primary`: the network is the primary one of the namespace, which the pod network stands for.
    """
    inner = ("spec", "template", "spec") if text(manifest, "kind") == VM else ("spec",)
    for network in objects(member(manifest, *inner, "networks")):
        nad = text(network, "multus", "networkName")
        nad = nad if "/" in nad else f"{namespace}/{nad}"
        if nad in nads or (primary and isinstance(network.get("pod"), dict)):
            return text(network, "name")
    return ""


def objects(value: object) -> Iterator[dict[str, Any]]:
    """Those of a list; none where it is no list."""
    yield from (
        element
        for element in (value if isinstance(value, list) else ())
        if isinstance(element, dict)
    )


def _mac(value: object) -> str | None:
    with contextlib.suppress(errors.InvalidInput):
        return macs.parse_mac(value)
    return None
