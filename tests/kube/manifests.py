"""Objects of Kubernetes in few words."""

from typing import Any

Manifest = dict[str, Any]


def build(
    api_version: str, kind: str, name: str, namespace: str = "", *, metadata: Any = (), **parts: Any
) -> Manifest:
    """An object; `metadata` is what it has beside its names, `parts` are its spec, its status and others."""
    names = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": names | dict(metadata), **parts}


def owner_reference(owner: Manifest, **more: Any) -> Manifest:
    """What an object says of its owner."""
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return reference | {key: owner["metadata"][key] for key in ("name", "uid")} | more
