"""State of Cilium in a cluster: its pools, nodes and configuration.

Pools are those of the register. Nodes are the observed CiliumNodes, or, without any, the nodes that
hold blocks in the register. The configuration is read if the cluster permits it; it is optional.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_network

from django.core.cache import cache

from pools.clusters import connections
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import sync
from pools.core import addresses, errors
from pools.core.cilium import bgp, ciliumnode, configuration, multipool, podippool
from pools.core.kubernetes import label_selector
from pools.core.kubernetes.resources import CONFIG_MAP
from pools.models import Block, Cluster, Connection, ObservedObject, Pool
from pools.models.blocks import BlockState
from pools.models.pools import Category
from pools.platform.outbound import faults
from pools.register import manifests as register_manifests
from pools.register import pool_cidrs

CONFIG = ("cilium-config", "kube-system")
_BGP = (bgp.PEERING_POLICY, bgp.ADVERTISEMENT_V2ALPHA1, bgp.ADVERTISEMENT)
CACHE_SECONDS = 60  # seconds for which a configuration is cached
_LABELS = ("app.kubernetes.io/version", "helm.sh/chart")
_RELEASE = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}")


@dataclass(frozen=True)
class Config:
    """The ConfigMap cilium-config; `values` is None if it is unknown, `why_not` says why."""

    values: Mapping[str, str] | None
    why_not: str = ""
    release: str = ""  # of Cilium, from the labels of its chart
    announced: tuple[label_selector.Selector, ...] | None = None  # the pools that BGP announces


def read_config(cluster: Cluster, *, fresh: bool = True) -> Config:
    """Read cilium-config from the cluster; without `fresh` a cached result is valid. Never raises."""
    key = f"cilium-config:{cluster.pk}"
    cached_config: Config | None = None if fresh else cache.get(key)
    if cached_config is None:
        cached_config = _fetch_config(cluster)
        cache.set(key, cached_config, CACHE_SECONDS)
    return cached_config


def _fetch_config(cluster: Cluster) -> Config:
    connection = Connection.objects.filter(cluster=cluster).first()
    if connection is None:
        return Config(None, "the cluster is not connected")
    if connection.paused:
        return Config(None, "the connection is paused")
    try:
        with connections.client_for(sync.cluster_access(connection)) as client:
            manifest = client.get(CONFIG_MAP, *CONFIG)
            announced = _fetch_announced(client)
    except faults.NotFound:
        return Config(None, "the cluster has no ConfigMap kube-system/cilium-config")
    except faults.Forbidden:
        return Config(None, "the credentials may not read ConfigMap kube-system/cilium-config")
    except errors.IpamError as error:
        return Config(None, error.message)
    data, labels = manifest.get("data"), manifest.get("metadata", {}).get("labels")
    values = {str(key): str(value) for key, value in (data or {}).items()}
    return Config(values, release=_release(labels or {}), announced=announced)


def _fetch_announced(client: ClusterClient) -> tuple[label_selector.Selector, ...] | None:
    """Return the selectors of pools that BGP announces; None if they cannot be read."""
    try:
        served = client.served(_BGP)
        # Both versions of one kind hold the same objects.
        kinds = {resource.plural: resource for resource in _BGP if resource in served}
        manifests = [manifest for kind in kinds.values() for manifest in client.list(kind).items]
    except errors.IpamError:
        return None
    return tuple(bgp.pool_selectors(manifests))


def _release(labels: Mapping[str, object]) -> str:
    for label in _LABELS:
        if match := _RELEASE.search(str(labels.get(label, ""))):
            return match[0]
    return ""


def pod_pools(cluster: Cluster) -> list[podippool.PodIPPool]:
    """Return the pod pools as manifests, by name, without orphans."""
    rows = Pool.objects.filter(cluster=cluster, category=Category.POD, orphaned_at=None)
    pool_rows = list(rows.order_by("name"))
    families = pool_cidrs.families_by_pool(pool_rows)
    return [register_manifests.build_manifest(pool, families[pool.pk]) for pool in pool_rows]


def cilium_state(
    cluster: Cluster, *, fresh: bool = True, release: str = ""
) -> configuration.CiliumState:
    """Return the state of Cilium; `release` is the default if the cluster does not show it."""
    cilium_config = read_config(cluster, fresh=fresh)
    return configuration.CiliumState(
        cilium_config.values,
        pod_pools(cluster),
        nodes(cluster),
        cilium_config.release or release,
        announced=cilium_config.announced,
    )


def nodes(cluster: Cluster) -> list[ciliumnode.NodeDemand]:
    """Return the requests and CIDRs of all nodes, by name.

    Invalid CiliumNodes are omitted. Nodes from the register request as many addresses as they hold.
    """
    observed = ObservedObject.objects.filter(cluster=cluster, kind=ciliumnode.KIND)
    manifests = list(observed.order_by("name").values_list("manifest", flat=True))
    return list(_parse_nodes(manifests) if manifests else _registered_nodes(cluster))


def _parse_nodes(manifests: list[object]) -> Iterator[ciliumnode.NodeDemand]:
    for manifest in manifests:
        try:
            yield ciliumnode.parse(manifest)
        except errors.InvalidInput:
            continue


def _registered_nodes(cluster: Cluster) -> Iterator[ciliumnode.NodeDemand]:
    rows = Block.objects.filter(
        pool__in=list(Pool.objects.filter(cluster=cluster).values_list("pk", flat=True)),
        category=Category.POD,
        state=BlockState.HELD,
        holder_kind="node",
    )
    held: dict[str, dict[Pool, list[addresses.Network]]] = {}
    by_id = Pool.objects.filter(cluster=cluster).in_bulk()
    columns = rows.order_by("holder_id", "id").values_list("holder_id", "pool_id", "cidr")
    for node, pool_id, cidr in columns:
        held.setdefault(node, {}).setdefault(by_id[pool_id], []).append(ip_network(str(cidr)))
    for node, of_pools in held.items():
        yield ciliumnode.NodeDemand(
            name=node,
            requested={
                pool.name: usable_addresses(cidrs, (pool.allow_first_ip, pool.allow_last_ip))
                for pool, cidrs in of_pools.items()
            },
            allocated=tuple(
                ciliumnode.AllocatedEntry(
                    pool.name, tuple(cidrs), pool.allow_first_ip, pool.allow_last_ip
                )
                for pool, cidrs in of_pools.items()
            ),
        )


def usable_addresses(
    cidrs: list[addresses.Network], allowed_edges: tuple[bool, bool]
) -> dict[int, int]:
    """Return the number of addresses for pods in these blocks, by family.

    `allowed_edges` are allowFirstIP and allowLastIP.
    """
    numbers = {4: 0, 6: 0}
    for cidr in cidrs:
        numbers[cidr.version] += multipool.usable_addresses(
            cidr, allow_first=allowed_edges[0], allow_last=allowed_edges[1]
        )
    return numbers
