"""A cluster with one VM network, for the tests of this folder."""

from ipaddress import ip_network
from typing import Any

from claims.access import memberships
from claims.address_index import index
from claims.models import ClusterOwner, Entry, IPAMClaim, IPPool, Network, Workload
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import AddressSpace, Category, Cluster, Connection, Finding, Now, Pool
from pools.platform import events
from pools.register import clusters, pools
from tests.edges.api import Api

BY = events.Author(actor="tester", source="command")


def cluster(name: str = "prod") -> Cluster:
    result = Cluster.objects.filter(name=name).first()
    return result or clusters.create(name, author=BY)


def network(
    name: str = "cluster_udn_blue", *, subnets: tuple[str, ...] = ("10.0.0.0/24",), **more: Any
) -> Network:
    """A layer2 primary network with persistent IPs and its pool."""
    network_cluster = more.pop("of", None) or cluster()
    values = {
        "kind": "cudn",
        "topology": "layer2",
        "role": "primary",
        "lifecycle": "Persistent",
        "subnets": list(subnets),
    } | more
    with events.recorded_by(BY):
        return Network.objects.create(
            cluster=network_cluster,
            name=name,
            pool=_pool(network_cluster, name, subnets) if subnets else None,
            **values,
        )


def _pool(network_cluster: Cluster, name: str, subnets: tuple[str, ...]) -> Pool:
    space = AddressSpace.objects.create(cluster=network_cluster, name=name)
    families: dict[int, Family] = {}
    for text in subnets:
        subnet = ip_network(text)
        families[subnet.version] = Family((CidrEntry(subnet, ()),), subnet.max_prefixlen)
    return pools.create(
        cluster=network_cluster,
        name=name,
        category=Category.VM,
        families=families,
        space=space,
        author=BY,
    )


def ippool(parent: Network, name: str = "blue") -> IPPool:
    with events.recorded_by(BY):
        return IPPool.objects.create(cluster=parent.cluster, network=parent, name=name)


def entry(parent: IPPool, mac: str, *ips: str, **more: Any) -> Entry:
    with events.recorded_by(BY):
        created = Entry.objects.create(ippool=parent, mac=mac, ips=list(ips), **more)
        index.write(entries=[created])
    return created


def claim(parent: Network, vm: str, *ips: str, namespace: str = "blue", **more: Any) -> IPAMClaim:
    values = {"name": f"{vm}.{parent.name}"} | more
    with events.recorded_by(BY):
        ipam_claim = IPAMClaim.objects.create(
            cluster=parent.cluster,
            network=parent,
            namespace=namespace,
            vm=vm,
            ips=list(ips),
            **values,
        )
        index.write(claims=[ipam_claim])
    return ipam_claim


def leaked(ipam_claim: IPAMClaim, **more: Any) -> None:
    """The reconciler found that the VM of the claim is gone."""
    place = {"cluster": ipam_claim.cluster, "kind": "IPAMClaim", "code": "leaked_ipamclaim"}
    Finding.objects.create(**place, subject=str(ipam_claim), since=Now(), **more)


def workload(parent: Network, name: str, mac: str, *ips: str, **more: Any) -> Workload:
    values = {"kind": "vmi", "namespace": "blue", "uid": f"uid-{name}", "since": Now()} | more
    with events.recorded_by(BY):
        created = Workload.objects.create(
            network=parent, name=name, mac=mac, ips=list(ips), **values
        )
        index.write(workloads=[created])
    return created


def owner(place: Cluster, *namespaces: str) -> Api:
    """A user who owns the VMs of these namespaces, and the user's token."""
    api = Api("vm-owner")
    memberships.create(place, namespaces, author=BY, user=api.user)
    return api


def bound(
    to: Cluster, namespace: str, subject: str, *, kind: str = "User", role: str = "kubevirt.io:edit"
) -> ClusterOwner:
    """A RoleBinding of the cluster, which is connected, names somebody."""
    connection, _ = Connection.objects.get_or_create(
        cluster=to, defaults={"server": f"https://{to.name}.example.org", "due_at": Now()}
    )
    return ClusterOwner.objects.create(
        connection=connection,
        uid=f"{namespace}-{kind}-{subject}-{role}",
        binding=f"{subject}-binding",
        namespace=namespace,
        role=role,
        subject_kind=kind,
        subject=subject,
        since=Now(),
    )
