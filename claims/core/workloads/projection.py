"""Projections of objects to the fields that are read here; a pod may have a hundred kilobytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claims.core.workloads import attachments
from pools.core.kubernetes.resources import Manifest

# The kept fields: a field as a whole (None), or some keys of it.
_Parts = Mapping[str, Any]

_METADATA = dict.fromkeys(
    ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
     "ownerReferences", "finalizers")
)  # fmt: skip
_LABELS = ("kubevirt.io", "kubevirt.io/created-by", "kubevirt.io/domain", "vm.kubevirt.io/name")
_ANNOTATIONS = (
    attachments.POD_NETWORKS,
    attachments.NETWORK_STATUS,
    attachments.DOMAIN,
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
