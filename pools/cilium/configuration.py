"""State of Cilium in a cluster: its pools, nodes and configuration, its operator, and its readiness for multi-pool mode.

Pools are those of the register. Nodes are the observed CiliumNodes, or, without any, the nodes that
hold blocks in the register. The configuration is read if the cluster permits it; it is optional.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network

from django.core.cache import cache

from pools import models
from pools.cilium import pool_sync
from pools.clusters import connections
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.other_writers import OtherWriter, Trace
from pools.clusters.reconcile import connecting
from pools.clusters.reconcile.handler import MANAGER
from pools.core import addresses, errors
from pools.core.cilium import ciliumnode, configuration, multipool, podippool, preflight
from pools.core.cilium.podippool import PodIPPool
from pools.core.cilium.preflight import PreflightFinding, RuleResult
from pools.core.kubernetes import label_selector, managed_fields
from pools.core.kubernetes.resources import CILIUM_NODE, CONFIG_MAP, Manifest, lease
from pools.platform.outbound import faults
from pools.register import manifests as register_manifests, pool_cidrs

CONFIG = ("cilium-config", "kube-system")
_BGP = (
    configuration.PEERING_POLICY,
    configuration.ADVERTISEMENT_V2ALPHA1,
    configuration.ADVERTISEMENT,
)
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


def read_config(cluster: models.Cluster, *, fresh: bool = True) -> Config:
    """Read cilium-config from the cluster; without `fresh` a cached result is valid. Never raises."""
    key = f"cilium-config:{cluster.pk}"
    cached_config: Config | None = None if fresh else cache.get(key)
    if cached_config is None:
        cached_config = _fetch_config(cluster)
        cache.set(key, cached_config, CACHE_SECONDS)
    return cached_config


def _fetch_config(cluster: models.Cluster) -> Config:
    connection = models.Connection.objects.filter(cluster=cluster).first()
    if connection is None:
        return Config(None, "the cluster is not connected")
    if connection.paused:
        return Config(None, "the connection is paused")
    try:
        with connections.client_for(connecting.cluster_access(connection)) as client:
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
    return tuple(configuration.pool_selectors(manifests))


def _release(labels: Mapping[str, object]) -> str:
    for label in _LABELS:
        if match := _RELEASE.search(str(labels.get(label, ""))):
            return match[0]
    return ""


def pod_pools(cluster: models.Cluster) -> list[podippool.PodIPPool]:
    """Return the pod pools as manifests, by name, without orphans."""
    rows = models.Pool.objects.filter(
        cluster=cluster, category=models.Category.POD, orphaned_at=None
    )
    pool_rows = list(rows.order_by("name"))
    families = pool_cidrs.families_by_pool(pool_rows)
    return [register_manifests.build_manifest(pool, families[pool.pk]) for pool in pool_rows]


def cilium_state(
    cluster: models.Cluster, *, fresh: bool = True, release: str = ""
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


def nodes(cluster: models.Cluster) -> list[ciliumnode.NodeDemand]:
    """Return the requests and CIDRs of all nodes, by name.

    Invalid CiliumNodes are omitted. Nodes from the register request as many addresses as they hold.
    """
    observed = models.ObservedObject.objects.filter(cluster=cluster, kind=ciliumnode.KIND)
    manifests = list(observed.order_by("name").values_list("manifest", flat=True))
    return list(_parse_nodes(manifests) if manifests else _registered_nodes(cluster))


def _parse_nodes(manifests: list[object]) -> Iterator[ciliumnode.NodeDemand]:
    for manifest in manifests:
        try:
            yield ciliumnode.parse(manifest)
        except errors.InvalidInput:
            continue


def _registered_nodes(cluster: models.Cluster) -> Iterator[ciliumnode.NodeDemand]:
    rows = models.Block.objects.filter(
        pool__in=list(models.Pool.objects.filter(cluster=cluster).values_list("pk", flat=True)),
        category=models.Category.POD,
        state=models.BlockState.HELD,
        holder_kind="node",
    )
    held: dict[str, dict[models.Pool, list[addresses.Network]]] = {}
    by_id = models.Pool.objects.filter(cluster=cluster).in_bulk()
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


_ALLOCATED = ("spec", "ipam", "pools", "allocated")


def _is_written_by_operator(manifest: Manifest) -> bool:
    return any(
        owner.manager.startswith("cilium-operator") and owner.owns_within(_ALLOCATED)
        for owner in managed_fields.parse(manifest)
        if owner.manager != MANAGER
    )


CILIUM_OPERATOR = OtherWriter(
    models.ManagedResource.POD_CIDRS,
    "Cilium's operator",
    lease("cilium-operator-resource-lock"),
    (
        Trace(
            CILIUM_NODE,
            _is_written_by_operator,
            "it is the field manager of spec.ipam.pools.allocated of the CiliumNode {name}",
            live_only=True,
        ),
    ),
    "Both allocate PodCIDRs: the operator is faster, keeps no cooldown, and takes Cadastre's blocks for its own."
    " Scale it down, or leave pod-cidrs off.",
)


@dataclass(frozen=True)
class Preflight:
    """The findings and their basis; `why_not` says why cilium-config is unknown."""

    findings: tuple[PreflightFinding, ...]
    why_not: str
    release: str
    pools: int
    nodes: int

    @property
    def result(self) -> RuleResult:
        """The worst result of the findings; UNKNOWN is worse than OK."""
        worst = (RuleResult.VIOLATED, RuleResult.WARNING, RuleResult.UNKNOWN)
        results = {finding.result for finding in self.findings}
        return next((result for result in worst if result in results), RuleResult.OK)


def run_preflight(cluster: models.Cluster, *, release: str = "") -> Preflight:
    """Run all checks; `release` is the version of Cilium if the cluster does not show it."""
    config = read_config(cluster)
    state = cilium_state(cluster, fresh=False, release=release)
    state = replace(state, pools=_add_observed_pools(cluster, state.pools))
    return Preflight(
        findings=tuple(preflight.check(state)),
        why_not=config.why_not,
        release=state.release,
        pools=len(state.pools),
        nodes=len(state.nodes),
    )


def _add_observed_pools(cluster: models.Cluster, pools: Sequence[PodIPPool]) -> list[PodIPPool]:
    """Return the register's pools, with additional pools and CIDRs of the cluster's objects."""
    pools_by_name = {pool.name: pool for pool in pools}
    rows = models.ObservedObject.objects.filter(cluster=cluster, kind=podippool.KIND).order_by(
        "name"
    )
    for name, manifest in rows.values_list("name", "manifest"):
        try:
            observed = pool_sync.parse(manifest)
        except errors.InvalidInput:
            continue  # the problem of the object is reported with the object
        pools_by_name[name] = (
            _merge_cidrs(pools_by_name[name], observed) if name in pools_by_name else observed
        )
    return list(pools_by_name.values())


def _merge_cidrs(pool: PodIPPool, observed: PodIPPool) -> PodIPPool:
    families = dict(pool.families)
    for number, part in observed.families.items():
        family = families.get(number, replace(part, cidrs=()))
        present = {entry.cidr for entry in family.cidrs}
        added_entries = tuple(entry for entry in part.cidrs if entry.cidr not in present)
        families[number] = replace(family, cidrs=family.cidrs + added_entries)
    return replace(pool, families=families)
