"""The kinds of Kubernetes objects that are read and written, and their URL paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True, order=True)
class Resource:
    """One kind in one version; `group` is "" for the core group.

    A cluster serves a kind only if the project of the kind is installed. A resource with `only_with`
    counts as absent where the other resource is not served. `shows` names the data that the UI shows
    from the kind. `reads_for` marks a kind whose permission is optional, and names the data that is
    missing without it.
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
        """`v1`, `cilium.io/v2`: the apiVersion of manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
        """Return the URL path, without host, of the collection or of one object.

        Without a namespace, the collection of a namespaced kind spans all namespaces. Raises ValueError
        for a namespace of a cluster-scoped kind, an object of a namespaced kind without its namespace,
        and a subresource of a collection.
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
