"""Gateways to the clusters of the tests."""

import datetime
from typing import Any, Protocol

from pools.clusters.client import api_client, kubeconfig
from pools.core.kubernetes.resources import Resource

POOLS = Resource("cilium.io", "v2", "ciliumpodippools", "CiliumPodIPPool")
OLD_POOLS = Resource("cilium.io", "v2alpha1", "ciliumpodippools", "CiliumPodIPPool")
NODES = Resource("cilium.io", "v2", "ciliumnodes", "CiliumNode")
CLAIMS = Resource("k8s.cni.cncf.io", "v1alpha1", "ipamclaims", "IPAMClaim", namespaced=True)
# Of no definition that any test installs.
NOWHERE = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt", namespaced=True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace")


class Cluster(Protocol):
    def kubeconfig(self, token: str | None = None) -> str: ...


def to(
    cluster: Cluster, *, token: str | None = None, timeouts: tuple[float, float] = (30, 60)
) -> api_client.ClusterClient:
    """A gateway with the rights of the token, of the admin by default."""
    now = datetime.datetime.now(datetime.UTC)
    access = kubeconfig.read(cluster.kubeconfig(token), now=now).access
    return api_client.ClusterClient(access, allow_loopback=True, timeouts=timeouts)


def pool(name: str, *cidrs: str, **metadata: Any) -> dict[str, Any]:
    """A CiliumPodIPPool of v2."""
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": name, **metadata},
        "spec": {"ipv4": {"cidrs": list(cidrs or ("10.0.0.0/16",)), "maskSize": 24}},
    }
