"""Kubernetes resources of VM networks."""

from pools.core.kubernetes.resources import Resource

CLUSTER_UDN = Resource(
    "k8s.ovn.org",
    "v1",
    "clusteruserdefinednetworks",
    "ClusterUserDefinedNetwork",
    shows="VM networks",
)
UDN = Resource(
    "k8s.ovn.org",
    "v1",
    "userdefinednetworks",
    "UserDefinedNetwork",
    namespaced=True,
    shows="VM networks",
)
ROUTE_ADVERTISEMENTS = Resource(
    "k8s.ovn.org",
    "v1",
    "routeadvertisements",
    "RouteAdvertisements",
    shows="routes by BGP",
    reads_for="routes of networks that BGP announces",
)
NAD = Resource(
    "k8s.cni.cncf.io",
    "v1",
    "network-attachment-definitions",
    "NetworkAttachmentDefinition",
    namespaced=True,
    shows="VM networks",
)
IPPOOL = Resource("ippool.k8s.cni.cncf.io", "v1alpha", "ippools", "IPPool", shows="IPPools")
IPAM_CLAIM = Resource(
    "k8s.cni.cncf.io", "v1alpha1", "ipamclaims", "IPAMClaim", namespaced=True, shows="IPAMClaims"
)
VM = Resource(
    "kubevirt.io",
    "v1",
    "virtualmachines",
    "VirtualMachine",
    namespaced=True,
    shows="VMs",
    only_with=NAD,
)
VMI = Resource(
    "kubevirt.io",
    "v1",
    "virtualmachineinstances",
    "VirtualMachineInstance",
    namespaced=True,
    shows="VMs",
    only_with=NAD,
)
POD = Resource("", "v1", "pods", "Pod", namespaced=True, shows="VMs", only_with=NAD)
ROLE_BINDING = Resource(
    "rbac.authorization.k8s.io",
    "v1",
    "rolebindings",
    "RoleBinding",
    namespaced=True,
    shows="VM owners",
    only_with=NAD,
    reads_for="VM owners by RoleBindings",
)
GROUP = Resource(
    "user.openshift.io",
    "v1",
    "groups",
    "Group",
    shows="VM owners",
    only_with=NAD,
    reads_for="VM owners by groups of OpenShift",
)
