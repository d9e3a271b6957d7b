"""Rows of observed CIDRs without a cluster to observe."""

import itertools
from typing import Any

from pools.core.observed.uses import Role
from pools.models import AddressSpace, Cluster, ObservedCIDR

_numbers = itertools.count(1)
KINDS = {
    Role.SERVICES: "ServiceCIDR",
    Role.PODS: "Node",
    Role.POD_POOL: "IPPool.projectcalico.org",
    Role.NODE: "Node",
    Role.LOAD_BALANCER: "IPAddressPool",
    Role.EGRESS: "EgressIP",
    Role.SECONDARY: "NetworkAttachmentDefinition",
}


def observed(cluster: Cluster, role: Role, cidr: str, **values: Any) -> ObservedCIDR:
    """What an object of its own uses in the cluster's own address space."""
    number = next(_numbers)
    values = {"kind": KINDS[role], "name": f"object-{number}", "uid": f"uid-{number}"} | values
    space = AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    return ObservedCIDR.objects.create(space=space, role=role.value, cidr=cidr, **values)
