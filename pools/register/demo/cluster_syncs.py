"""The sync runs of the demo clusters: manifests that fit the register, read by the engine's own handlers.

The API servers do not exist. A client answers from memory, and the connections are paused afterwards. What the
manifests have beside the register's blocks is what an administrator meets: a field that somebody else changed, a
node without its Node, a block that two nodes list, a range beside the pools.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Self

import pgtrigger

from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import leases, registry, sync
from pools.core.cilium import podippool
from pools.core.kubernetes import resources
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Block, BlockState, Cluster, Connection, ConnectionEvent, Now, Pool, Trigger
from pools.models.clusters import ManagedResource, Mode
from pools.models.pools import Category
from pools.platform.outbound import faults
from pools.register import manifests
from pools.register.demo import demo

_VERSION = {"gitVersion": "v1.34.2"}
_SERVED = (
    resources.OBSERVED_NODE,
    resources.NAMESPACE,
    resources.CILIUM_NODE,
    resources.CILIUM_POD_IP_POOL,
    resources.CILIUM_LOAD_BALANCER_POOL,
    resources.SERVICE_CIDR,
    resources.EGRESS_IP,
)
# Cilium 1.19: `pool: [{cidr, reservedRanges}]`.
_POOL: Manifest = {"items": {"properties": {"cidr": {}, "reservedRanges": {}}}}
_FAMILY = {"properties": {"pool": _POOL}}
_SCHEMA: Manifest = {"properties": {"spec": {"properties": {"ipv4": _FAMILY, "ipv6": _FAMILY}}}}
_EDITED = "blue-pool"  # somebody added a CIDR to its object with kubectl
_WITHOUT_NODE = "fra-gpu-060"
_LISTS_TOO_MUCH = ("fra-node-007", "fra-node-008")  # the first lists a block of the second


class DemoClient(ClusterClient):
    """A client of an API server that does not exist: it serves some objects, and refuses to change them."""

    def __init__(self, cluster: str, objects: Mapping[Resource, list[Manifest]]) -> None:
        # Not the parent's, which prepares connections to a server.
        self._documents = _documents(cluster, objects)

    def __enter__(self) -> Self:
        return self

    def close(self) -> None:
        """Nothing is open."""

    def schema(self, resource: Resource) -> Manifest | None:
        """Return as much of the CRD of CiliumPodIPPools as says in which shape it has reserved ranges."""
        return _SCHEMA if resource == resources.CILIUM_POD_IP_POOL else None

    def _secrets(self) -> list[str]:
        return []

    def _call(self, method: str, path: str, *_query: Any, **_options: Any) -> Manifest:
        if method != "GET":
            # As the server answers to an apply of fields that `kubectl edit` owns.
            raise faults.FieldConflict('conflict with "kubectl-edit": .spec.ipv4.cidrs', status=409)
        if path not in self._documents:
            raise faults.KindNotServed("the server could not find the requested resource")
        return self._documents[path]


def _documents(cluster: str, objects: Mapping[Resource, list[Manifest]]) -> dict[str, Manifest]:
    """Return what the server of a cluster answers, by path."""
    documents: dict[str, Manifest] = {
        "/version": _VERSION,
        "/apis": {"groups": _groups()},
        "/api/v1/namespaces/kube-system": {"metadata": {"uid": f"demo-{cluster}"}},
    }
    for resource in _SERVED:
        versions = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        documents.setdefault(versions, {"resources": []})
        documents[versions]["resources"].append({"name": resource.plural})
        documents[resource.path()] = _list_document(objects.get(resource, ()))
        for manifest in objects.get(resource, ()):
            documents[resource.path(manifest["metadata"]["name"])] = manifest
    return documents


def _groups() -> list[Manifest]:
    groups: dict[str, set[str]] = {}
    for resource in _SERVED:
        if resource.group:
            groups.setdefault(resource.group, set()).add(resource.version)
    return [
        {"name": name, "versions": [{"version": version} for version in versions]}
        for name, versions in groups.items()
    ]


def _list_document(items: Iterable[Manifest]) -> Manifest:
    return {"kind": "List", "metadata": {"resourceVersion": "1000"}, "items": [*items]}


# --- steps ----------------------------------------------------------------------------------------


def steps() -> Iterator[demo.DemoStep]:
    """Yield the steps with their age in days: the clusters are connected, and synced before and after edits."""
    for name, terms in (
        (demo.FRANKFURT, {"mode": Mode.MANAGED, "managed_resources": [ManagedResource.POOLS]}),
        (demo.BERLIN, {"mode": Mode.OBSERVED}),
    ):
        yield demo.DemoStep(2.5, name, partial(_connect, terms))
        yield demo.DemoStep(2.4, name, partial(_sync, edited=False))
        yield demo.DemoStep(0.05, name, _sync)
        yield demo.DemoStep(0.001, name, _sync_and_pause)


def forget(cluster: Cluster) -> None:
    """Delete the connection's events; its rows go with the cluster."""
    Connection.objects.filter(cluster=cluster).delete()
    with pgtrigger.ignore():
        ConnectionEvent.objects.filter(cluster_id=cluster.pk).delete()


def _connect(terms: Mapping[str, Any], cluster: Cluster) -> None:
    server = f"https://{cluster.name}.invalid:6443"
    Connection.objects.create(cluster=cluster, server=server, sealed="", due_at=Now(), **terms)


def _sync(cluster: Cluster, *, edited: bool = True) -> None:
    connection = Connection.objects.get(cluster=cluster)
    lease = leases.take(connection.pk, "demo")
    if lease is not None:
        objects = manifests_of(cluster, edited=edited)
        sync.run(
            lease,
            registry.HANDLERS,
            trigger=Trigger.SCHEDULE,
            open_client=lambda _connection: DemoClient(cluster.name, objects),
        )


def _sync_and_pause(cluster: Cluster) -> None:
    _sync(cluster)
    Connection.objects.filter(cluster=cluster).update(paused=True)


# --- what the clusters have -----------------------------------------------------------------------


def manifests_of(cluster: Cluster, *, edited: bool) -> dict[Resource, list[Manifest]]:
    """Return the objects of a demo cluster by their resource, before or after somebody edited a pool."""
    cilium_nodes = _cilium_nodes(cluster)
    names = [manifest["metadata"]["name"] for manifest in cilium_nodes]
    objects = {
        resources.CILIUM_POD_IP_POOL: _pod_pools(cluster, edited=edited),
        resources.CILIUM_NODE: cilium_nodes,
        resources.OBSERVED_NODE: [
            _node(name, number)
            for number, name in enumerate(names, start=1)
            if name != _WITHOUT_NODE
        ],
        resources.NAMESPACE: [_manifest(resources.NAMESPACE, name) for name in ("shop", "bank")],
        resources.SERVICE_CIDR: [
            _manifest(resources.SERVICE_CIDR, "kubernetes", spec={"cidrs": ["172.30.0.0/16"]})
        ],
    }
    if cluster.name == demo.FRANKFURT:
        blocks = [{"cidr": "192.0.2.128/26"}]
        objects[resources.CILIUM_LOAD_BALANCER_POOL] = [
            _manifest(resources.CILIUM_LOAD_BALANCER_POOL, "ingress", spec={"blocks": blocks})
        ]
        assigned = {"items": [{"node": "fra-node-002", "egressIP": "192.0.2.10"}]}
        objects[resources.EGRESS_IP] = [
            _manifest(
                resources.EGRESS_IP, "shop", spec={"egressIPs": ["192.0.2.10"]}, status=assigned
            )
        ]
    return objects


def _manifest(resource: Resource, name: str, **parts: Any) -> Manifest:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "uid": f"demo-{resource.kind}-{name}",
            "resourceVersion": "1000",
        },
        **parts,
    }


def _pod_pools(cluster: Cluster, *, edited: bool) -> list[Manifest]:
    objects = []
    for pool in Pool.objects.filter(cluster=cluster, category=Category.POD).order_by("name"):
        rendered = podippool.render(manifests.to_manifest(pool), shape=podippool.Shape.V2)
        manifest = _manifest(resources.CILIUM_POD_IP_POOL, pool.name, spec=rendered["spec"])
        if edited and pool.name == _EDITED:
            manifest["metadata"]["resourceVersion"] = "2000"
            manifest["spec"]["ipv4"]["cidrs"].append("10.46.0.0/24")
            fields: Manifest = {"f:spec": {"f:ipv4": {"f:cidrs": {}}}}
            manifest["metadata"]["managedFields"] = [
                {
                    "manager": "kubectl-edit",
                    "operation": "Update",
                    "apiVersion": resources.CILIUM_POD_IP_POOL.api_version,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": fields,
                }
            ]
        objects.append(manifest)
    return objects


def _cilium_nodes(cluster: Cluster) -> list[Manifest]:
    """Return the CiliumNodes of the nodes that hold blocks of pod pools."""
    held = Block.objects.filter(
        pool__cluster=cluster, pool__category=Category.POD, state=BlockState.HELD
    )
    by_node: dict[str, dict[str, list[str]]] = {}
    for node, pool, cidr in held.order_by("holder_id", "pool__name", "cidr").values_list(
        "holder_id", "pool__name", "cidr"
    ):
        by_node.setdefault(node, {}).setdefault(pool, []).append(str(cidr))
    lister, listed = _LISTS_TOO_MUCH
    if {lister, listed} <= by_node.keys():
        by_node[lister]["green-pool"].append(by_node[listed]["green-pool"][0])
    return [_cilium_node(name, pools) for name, pools in by_node.items()]


def _cilium_node(name: str, pools: Mapping[str, list[str]]) -> Manifest:
    requested = [{"pool": pool, "needed": {"ipv4-addrs": 16}} for pool in pools]
    allocated = [{"pool": pool, "cidrs": cidrs} for pool, cidrs in pools.items()]
    ipam = {"pools": {"requested": requested, "allocated": allocated}}
    return _manifest(resources.CILIUM_NODE, name, spec={"ipam": ipam})


def _node(name: str, number: int) -> Manifest:
    address = {"type": "InternalIP", "address": f"172.20.1.{number}"}
    return _manifest(resources.OBSERVED_NODE, name, status={"addresses": [address]})
