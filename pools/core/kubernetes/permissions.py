"""The permissions that credentials for a cluster need, for the kinds read and the managed resources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pools.core.kubernetes.resources import EVENT, NAMESPACE, Resource

READ = ("get", "list", "watch")
# (verb, kind, subresource). Server-side apply of an absent object needs `create` too.
_WRITES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "pools": (("create", "CiliumPodIPPool", ""), ("patch", "CiliumPodIPPool", "")),
    "pod-cidrs": (("update", "CiliumNode", ""), ("update", "CiliumNode", "status")),
    "claims": (
        ("create", "IPAMClaim", ""),
        ("patch", "IPAMClaim", ""),
        ("patch", "IPAMClaim", "status"),
    ),
    "ippool-status": (
        ("create", "IPPool", ""),
        ("patch", "IPPool", ""),
        ("patch", "IPPool", "status"),
    ),
    "cluster-api": (
        ("patch", "IPAddressClaim", ""),
        ("update", "IPAddressClaim", ""),
        ("patch", "IPAddressClaim", "status"),
        ("update", "IPAddressClaim", "finalizers"),
        ("create", "IPAddress", ""),
        ("patch", "IPAddress", ""),
        ("update", "IPAddress", ""),
        ("delete", "IPAddress", ""),
        *(
            write
            for kind in ("CadastrePool", "GlobalCadastrePool")
            for write in (
                ("patch", kind, ""),
                ("update", kind, ""),
                ("patch", kind, "status"),
                ("update", kind, "finalizers"),
            )
        ),
    ),
    "conversion": (("create", "CiliumPodIPPool", ""), ("patch", "CiliumPodIPPool", "")),
}
# Networks created here can be written to every managed cluster, whatever its managed resources.
_MANAGED = (
    ("create", "ClusterUserDefinedNetwork", ""),
    ("patch", "ClusterUserDefinedNetwork", ""),
)
_NETWORKS = "networks made here"
# An event on its launcher pod says why a VM has no address, if the credentials permit it.
_EVENT_VERBS = ("get", "create", "patch")


def resources_writing(kind: str, managed_resources: Iterable[str]) -> list[str]:
    """Return the managed resources that write this kind."""
    return [
        managed_resource
        for managed_resource in managed_resources
        if any(kind == written for _, written, _ in _WRITES[managed_resource])
    ]


@dataclass(frozen=True)
class Right:
    """One verb on a resource; `needed_for` is `reading`, what is read, or what is written."""

    verb: str
    resource: Resource
    subresource: str = ""
    needed_for: str = "reading"

    @property
    def optional(self) -> bool:
        """True if syncs work without this right: it serves only to read what the resource shows."""
        return bool(self.resource.reads_for) and self.needed_for == self.resource.reads_for

    def __str__(self) -> str:
        """Return `patch ciliumnodes.cilium.io/status`, the arguments of `kubectl auth can-i`."""
        resource_name = self.resource.plural
        if self.resource.group:
            resource_name += f".{self.resource.group}"
        name = f"/{self.subresource or self.resource.only_named}".rstrip("/")
        where = f" -n {self.resource.only_in}" if self.resource.only_in else ""
        return f"{self.verb} {resource_name}{name}{where}"


def required_rights(resources: Iterable[Resource], managed_resources: Iterable[str]) -> list[Right]:
    """Return the rights for kinds read through these versions; a right applies to all versions of a group."""
    managed_resources = list(managed_resources)
    by_group: dict[tuple[str, str], Resource] = {}
    by_kind: dict[str, Resource] = {}
    for resource in resources:
        by_group.setdefault((resource.group, resource.kind), resource)
        by_kind.setdefault(resource.kind, resource)
    rights = [
        Right(verb, resource, needed_for=resource.reads_for or "reading")
        for resource in by_group.values()
        for verb in READ
    ]
    writes: dict[tuple[str, str, str], list[str]] = {}
    needed_writes = [
        (write, managed_resource)
        for managed_resource in managed_resources
        for write in _WRITES[managed_resource]
    ]
    if needed_writes:
        needed_writes += [(write, _NETWORKS) for write in _MANAGED]
    for write, purpose in needed_writes:
        writes.setdefault(write, []).append(purpose)
    rights += [
        Right(verb, by_kind[kind], subresource, ", ".join(names))
        for (verb, kind, subresource), names in writes.items()
        if kind in by_kind
    ]
    # The pod pool guide reads the labels and annotations of a namespace.
    rights.append(Right("get", NAMESPACE, needed_for=NAMESPACE.reads_for))
    if "claims" in managed_resources and "IPAMClaim" in by_kind:
        rights += [Right(verb, EVENT, needed_for=EVENT.reads_for) for verb in _EVENT_VERBS]
    return rights
