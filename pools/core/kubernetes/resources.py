"""The kinds of Kubernetes objects that are read and written, and their addresses on an API server."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True, order=True)
class Resource:
    """One kind in one version; `group` is "" for the core group.

    A cluster may well serve none of them: the project that has the kind is not installed there. One
    `only_with` another is of no interest where that one is not served, and counts as absent. `shows`
    names what people see because the kind is read. `reads_for` says what is lost of one that the
    credentials need not be allowed to read.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False
    shows: str = field(default="", compare=False)
    only_with: Resource | None = field(default=None, compare=False)
    reads_for: str = field(default="", compare=False)

    @property
    def api_version(self) -> str:
        """`v1`, `cilium.io/v2`: what stands in the manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
        """The URL path, without host, of the collection or of one object.

        The collection of a namespaced kind without a namespace is that of all namespaces. Raises
        ValueError for what no API server has: a namespace of a cluster-scoped kind, an object of a
        namespaced kind without its namespace, a subresource of a collection.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.kind} has no namespace")
        if name and self.namespaced and not namespace:
            raise ValueError(f"a {self.kind} is in a namespace")
        if subresource and not name:
            raise ValueError("a subresource belongs to one object")
        parts = ["apis" if self.group else "api", *self.api_version.split("/")]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/" + "/".join(quote(part, safe="") for part in parts if part)


CILIUM_POD_IP_POOL = Resource(
    "cilium.io", "v2", "ciliumpodippools", "CiliumPodIPPool", shows="pod pools"
)
CILIUM_POD_IP_POOL_V2ALPHA1 = Resource(
    "cilium.io", "v2alpha1", "ciliumpodippools", "CiliumPodIPPool", shows="pod pools"
)
CILIUM_NODE = Resource("cilium.io", "v2", "ciliumnodes", "CiliumNode", shows="PodCIDRs of nodes")
NAMESPACE = Resource(
    "", "v1", "namespaces", "Namespace", reads_for="labels and annotations of namespaces"
)
NODE = Resource("", "v1", "nodes", "Node")
POD = Resource("", "v1", "pods", "Pod", namespaced=True)
EVENT = Resource("", "v1", "events", "Event", namespaced=True, reads_for="events on launcher pods")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
