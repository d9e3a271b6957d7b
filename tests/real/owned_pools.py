"""Pools that others apply, in a cluster of the register, on a real API server."""

from collections.abc import Callable
from typing import Any

from pools.models import Drift, PoolCIDR
from tests.handlers.fleet import Fleet, manifest

KIND = "ciliumpodippools.cilium.io"
A, B, C = "10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"

# How others bring objects into a cluster: the arguments of kubectl.
OWNERS = {
    "kubectl-client-side": ("apply",),
    "kubectl-server-side": ("apply", "--server-side"),
    "helm-apply": ("apply", "--server-side", "--field-manager=helm"),
    "helm-update": ("apply", "--field-manager=helm"),
}
MANAGERS = {
    "kubectl-client-side": "kubectl-client-side-apply",
    "kubectl-server-side": "kubectl",
    "helm-apply": "helm",
    "helm-update": "helm",
}


class Owned(Fleet):
    """A cluster whose pools somebody else applies."""

    def __init__(self, kube: Any, kubectl: Callable[..., str], owner: str, version: str) -> None:
        super().__init__(kube)
        self.kubectl, self.owner, self.version = kubectl, owner, version

    def apply(self, name: str, *cidrs: str, **spec: Any) -> None:
        """As the owner does it, through the version that the owner uses."""
        document = manifest(name, *cidrs, version=self.version, **spec)
        self.kubectl(*OWNERS[self.owner], "-f", "-", manifest=document)

    @property
    def manager(self) -> str:
        return MANAGERS[self.owner]

    def stored(self, name: str = "green") -> dict[str, Any]:
        stored: dict[str, Any] = self.server.object(KIND, name)  # type: ignore[attr-defined]
        return stored

    def resource_version(self, name: str = "green") -> str:
        return str(self.stored(name)["metadata"]["resourceVersion"])

    def owners(self, name: str = "green") -> dict[str, str]:
        """Manager -> operation."""
        entries = self.stored(name)["metadata"]["managedFields"]
        return {entry["manager"]: entry["operation"] for entry in entries}

    def pending(self, name: str = "green") -> dict[str, str]:
        rows = PoolCIDR.objects.filter(pool=self.pool(name)).exclude(pending="")
        return {str(row.cidr): row.pending for row in rows}

    def cidr(self, cidr: str, name: str = "green") -> PoolCIDR:
        return PoolCIDR.objects.get(pool=self.pool(name), cidr=cidr)

    def difference(self, path: str = "spec.ipv4.cidrs") -> Drift:
        return Drift.objects.get(cluster=self.cluster, path=path)
