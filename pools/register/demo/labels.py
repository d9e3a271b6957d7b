"""Tags, owners and DNS names of the demo fleet, and what the objects of its cluster use besides pools."""

from __future__ import annotations

from collections.abc import Iterator

import pgtrigger

from pools.core.observed.uses import Role
from pools.models import AddressSpace, Block, Cluster, DNSName, DNSNameEvent, ObservedCIDR, Pool
from pools.models.blocks import BlockState
from pools.register import clusters, dns, pools
from pools.register.demo import demo

_CLUSTER = {"tags": ["production", "eu-central"], "owner": "platform@example.com"}
# By the names of pools: tags, owner and pattern of the DNS names.
_POOLS = {
    "green-pool": (["production"], "platform@example.com", ""),
    "yellow-pool": (["production", "migrating"], "platform@example.com", ""),
    "public-ipv4": (["production", "internet"], "network@example.com", ""),
    "vm-lab": (["laboratory"], "lab@example.com", "{holder}.lab.example.com"),
}
_NAMES = {"10.99.0.21": "gitlab.example.com", "10.99.0.22": "registry.example.com"}
_NODES = 12  # with observed addresses
_OBSERVED = (
    (Role.SERVICES, "ServiceCIDR", "kubernetes", "172.30.0.0/16", ""),
    (Role.LOAD_BALANCER, "CiliumLoadBalancerIPPool", "ingress", "192.0.2.128/26", ""),
    (Role.EGRESS, "EgressIP", "shop", "192.0.2.10/32", "on fra-node-002"),
    *(
        (Role.NODE, "Node", f"fra-node-{number:03}", f"172.20.1.{number}/32", "InternalIP")
        for number in range(1, _NODES + 1)
    ),
)


def steps() -> Iterator[demo.DemoStep]:
    yield demo.DemoStep(4, demo.FRANKFURT, _set_attributes)
    yield demo.DemoStep(4, demo.FRANKFURT, _set_names)
    yield demo.DemoStep(2, demo.FRANKFURT, _observe)


def forget(cluster: Cluster) -> None:
    """Delete the DNS names with their events; the rest goes with the pools and the cluster."""
    ids = list(Pool.objects.filter(cluster=cluster).values_list("pk", flat=True))
    DNSName.objects.filter(pool__in=ids).delete()
    with pgtrigger.ignore():
        DNSNameEvent.objects.filter(pool_id__in=ids).delete()


def _set_attributes(cluster: Cluster) -> None:
    clusters.change(cluster, _CLUSTER, author=demo.AUTHOR)
    for name, (tags, owner, pattern) in _POOLS.items():
        pool = Pool.objects.get(cluster=cluster, name=name)
        attributes = {"tags": tags, "owner": owner}
        change = pools.PoolChange(attributes=attributes, dns_pattern=pattern)
        pools.change(pool.pk, change, author=demo.AUTHOR)


def _set_names(cluster: Cluster) -> None:
    held = Block.objects.filter(pool__cluster=cluster, state=BlockState.HELD)
    for address, name in _NAMES.items():
        dns.set_name(held.get(cidr=f"{address}/32").pk, name, author=demo.AUTHOR)


def _observe(cluster: Cluster) -> None:
    space = AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    ObservedCIDR.objects.bulk_create(
        ObservedCIDR(
            space=space,
            kind=kind,
            name=name,
            uid=f"demo-{kind}-{name}",
            role=role.value,
            cidr=cidr,
            detail=detail,
        )
        for role, kind, name, cidr, detail in _OBSERVED
    )
