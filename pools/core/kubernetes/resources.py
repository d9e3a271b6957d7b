"""The kinds of Kubernetes objects that are read and written, their URL paths, and the permissions that they need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

Manifest = dict[str, Any]  # an object, as JSON


@dataclass(frozen=True, order=True)
class Resource:
    """One kind in one version; `group` is "" for the core group.

    A cluster serves a kind only if the project of the kind is installed. A resource with `only_with`
    counts as absent where the other resource is not served. `shows` names the data that the UI shows
    from the kind. `reads_for` marks a kind whose permission is optional, and names the data that is
    missing without it. A resource that is served `everywhere` says nothing of what is installed. A list and a
    watch read the objects of the namespace `only_in`, the object `only_named`, or those with the label
    `only_labelled`, if they are set.

    Objects are stored by `kind`. Where two kinds of different groups have one name, or a part of a kind is
    read, it is qualified: `IPPool.projectcalico.org`, as Kubernetes writes a GroupKind.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False
    shows: str = field(default="", compare=False)
    only_with: Resource | None = field(default=None, compare=False)
    reads_for: str = field(default="", compare=False)
    everywhere: bool = field(default=False, compare=False)
    only_in: str = ""
    only_named: str = ""
    only_labelled: str = ""

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


def lease(name: str) -> Resource:
    """Return the Leases of this name, in whatever namespace their controller runs."""
    return Resource(
        "coordination.k8s.io",
        "v1",
        "leases",
        f"Lease.{name}",
        namespaced=True,
        reads_for="Leases of controllers that may write the same",
        everywhere=True,
        only_named=name,
    )


# Kinds that use addresses and are only read (pools/observed).
_SERVICES, _NODES = "Service CIDRs", "addresses and pod CIDRs of nodes"
SERVICE_CIDR = Resource(
    "networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", shows=_SERVICES, reads_for=_SERVICES
)
SERVICE_CIDR_V1BETA1 = replace(SERVICE_CIDR, version="v1beta1")
SERVICE_CIDR_V1ALPHA1 = replace(SERVICE_CIDR, version="v1alpha1")
OBSERVED_NODE = Resource("", "v1", "nodes", "Node", reads_for=_NODES, everywhere=True)
KUBEADM_CONFIG = Resource(
    "",
    "v1",
    "configmaps",
    "ConfigMap.kubeadm-config",
    namespaced=True,
    everywhere=True,
    reads_for="the CIDRs in the configuration of kubeadm",
    only_in="kube-system",
    only_named="kubeadm-config",
)
KUBE_PROXY_CONFIG = replace(
    KUBEADM_CONFIG,
    kind="ConfigMap.kube-proxy",
    reads_for="the CIDRs in the configuration of kube-proxy",
    only_named="kube-proxy",
)
EKS_KUBE_PROXY_CONFIG = replace(
    KUBE_PROXY_CONFIG, kind="ConfigMap.kube-proxy-config", only_named="kube-proxy-config"
)
SERVER_NODE = replace(
    OBSERVED_NODE,
    kind="Node.node-args",
    reads_for="the CIDRs in the arguments of k3s and RKE2",
    only_labelled="node-role.kubernetes.io/control-plane",
)
CONTROL_PLANE_POD = Resource(
    "",
    "v1",
    "pods",
    "Pod.kube-system",
    namespaced=True,
    everywhere=True,
    reads_for="the CIDRs in the arguments of the control plane",
    only_in="kube-system",
)
SERVICE = Resource(
    "",
    "v1",
    "services",
    "Service",
    namespaced=True,
    reads_for="addresses of Services",
    everywhere=True,
)
_LOAD_BALANCERS, _EGRESS = "load balancer addresses", "egress addresses"
CILIUM_LOAD_BALANCER_POOL = Resource(
    "cilium.io",
    "v2",
    "ciliumloadbalancerippools",
    "CiliumLoadBalancerIPPool",
    shows=_LOAD_BALANCERS,
    reads_for=_LOAD_BALANCERS,
)
CILIUM_LOAD_BALANCER_POOL_V2ALPHA1 = replace(CILIUM_LOAD_BALANCER_POOL, version="v2alpha1")
METALLB_POOL = Resource(
    "metallb.io",
    "v1beta1",
    "ipaddresspools",
    "IPAddressPool",
    namespaced=True,
    shows=_LOAD_BALANCERS,
    reads_for=_LOAD_BALANCERS,
)
METALLB_ADDRESS_POOL = replace(METALLB_POOL, plural="addresspools", kind="AddressPool")
METALLB_ADDRESS_POOL_V1ALPHA1 = replace(METALLB_ADDRESS_POOL, version="v1alpha1")
EGRESS_IP = Resource("k8s.ovn.org", "v1", "egressips", "EgressIP", shows=_EGRESS, reads_for=_EGRESS)
CILIUM_EGRESS_GATEWAY_POLICY = Resource(
    "cilium.io",
    "v2",
    "ciliumegressgatewaypolicies",
    "CiliumEgressGatewayPolicy",
    shows=_EGRESS,
    reads_for=_EGRESS,
)
# Both groups show the same objects; the aggregated one is served where Calico's API server runs.
CALICO_IP_POOL = Resource(
    "crd.projectcalico.org",
    "v1",
    "ippools",
    "IPPool.projectcalico.org",
    shows="IP pools of Calico",
    reads_for="IP pools of Calico",
)
CALICO_IP_POOL_V3 = replace(CALICO_IP_POOL, group="projectcalico.org", version="v3")
CALICO_IP_RESERVATION, CALICO_IP_RESERVATION_V3 = (
    replace(resource, plural="ipreservations", kind="IPReservation.projectcalico.org")
    for resource in (CALICO_IP_POOL, CALICO_IP_POOL_V3)
)
WHEREABOUTS_POOL = Resource(
    "whereabouts.cni.cncf.io",
    "v1alpha1",
    "ippools",
    "IPPool.whereabouts.cni.cncf.io",
    namespaced=True,
    shows="addresses of secondary networks",
    reads_for="addresses of secondary networks",
)
OPENSHIFT_NETWORK = Resource(
    "config.openshift.io",
    "v1",
    "networks",
    "Network.config.openshift.io",
    shows=_SERVICES,
    reads_for="the networks of OpenShift",
)


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
