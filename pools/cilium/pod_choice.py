"""The pool from which a pod gets its addresses, for a pod of a cluster or a described one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pools.cilium import configuration as cilium_configuration
from pools.clusters import connections
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import connecting
from pools.core import errors
from pools.core.cilium import configuration, pod_pool
from pools.core.kubernetes.resources import NAMESPACE, POD, Resource
from pools.models import Category, Cluster, Connection, Pool
from pools.platform.outbound import faults
from pools.register import usage


@dataclass(frozen=True)
class ObjectDescription:
    """A pod or namespace of a request; fields that are None are read from the cluster if possible."""

    name: str
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True)
class FamilyChoice:
    """The choice for one family; `pool` is the register's row, or None."""

    choice: pod_pool.PoolChoice
    pool: Pool | None
    usage: usage.Usage | None


@dataclass(frozen=True)
class Explanation:
    """The choices of all families; `assumed` says why the default pool is assumed, or is "".

    `pod_seen` and `namespace_seen` are True if the object was read from the cluster. `notes` names the
    objects that the cluster does not have.
    """

    chosen: tuple[FamilyChoice, ...]
    default: str
    assumed: str
    pod_seen: bool
    namespace_seen: bool
    notes: tuple[str, ...]


def explain(
    cluster: Cluster, *, pod: ObjectDescription, namespace: ObjectDescription
) -> Explanation:
    """Return the choice for each family of the cluster's pools; without pools, for IPv4 and IPv6."""
    config = cilium_configuration.read_config(cluster, fresh=False)
    manifests = cilium_configuration.pod_pools(cluster)
    cilium_state = configuration.CiliumState(config.values, manifests)
    used = {family for pool in manifests for family in pool.families}
    read_pod, read_namespace = _read_both(cluster, pod, namespace)
    choices = pod_pool.choose(
        read_pod.metadata,
        read_namespace.metadata,
        manifests,
        default=cilium_state.default_pool,
        families=cilium_state.families() if used or config.values is not None else (4, 6),
    )
    return Explanation(
        chosen=_add_pools(cluster, choices),
        default=cilium_state.default_pool,
        assumed=config.why_not,
        pod_seen=read_pod.in_cluster,
        namespace_seen=read_namespace.in_cluster,
        notes=tuple(read.absent for read in (read_pod, read_namespace) if read.absent),
    )


@dataclass(frozen=True)
class _ReadObject:
    metadata: pod_pool.ObjectMetadata
    in_cluster: bool = False
    absent: str = ""


def _read_both(
    cluster: Cluster, pod: ObjectDescription, namespace: ObjectDescription
) -> tuple[_ReadObject, _ReadObject]:
    connection = Connection.objects.filter(cluster=cluster).first()
    if connection is None:
        note = "the cluster is not connected"
    elif connection.paused:
        note = "the connection is paused"
    elif _is_described(pod) and _is_described(namespace):
        note = ""
    else:
        try:
            with connections.client_for(connecting.cluster_access(connection)) as client:
                return (
                    _read_object(client, POD, pod, namespace.name),
                    _read_object(client, NAMESPACE, namespace),
                )
        except errors.IpamError as error:
            note = error.message
    return _ReadObject(_described_metadata(pod, note)), _ReadObject(
        _described_metadata(namespace, note)
    )


def _is_described(description: ObjectDescription) -> bool:
    return description.labels is not None and description.annotations is not None


def _described_metadata(description: ObjectDescription, note: str) -> pod_pool.ObjectMetadata:
    return pod_pool.ObjectMetadata(
        description.name, description.labels, description.annotations, note
    )


def _read_object(
    client: ClusterClient, resource: Resource, description: ObjectDescription, namespace: str = ""
) -> _ReadObject:
    """Return the object with the described labels and annotations instead of its own. Raises ClusterFault."""
    if _is_described(description):
        return _ReadObject(_described_metadata(description, ""))
    absent, observed = "", {}
    try:
        observed = client.get(resource, description.name, namespace).get("metadata", {})
    except faults.NotFound:
        kind = resource.kind.lower()
        absent = f"The cluster has no {kind} {description.name}: it is treated as one without labels and annotations."
    except faults.Forbidden:
        return _ReadObject(
            _described_metadata(description, f"the credentials may not get {resource.plural}")
        )
    metadata = pod_pool.ObjectMetadata(
        description.name,
        (observed.get("labels") or {}) if description.labels is None else description.labels,
        (observed.get("annotations") or {})
        if description.annotations is None
        else description.annotations,
    )
    return _ReadObject(metadata, not absent, absent)


def _add_pools(cluster: Cluster, choices: list[pod_pool.PoolChoice]) -> tuple[FamilyChoice, ...]:
    names = {choice.pool for choice in choices}
    rows = Pool.objects.filter(cluster=cluster, category=Category.POD, name__in=names)
    pools = {pool.name: pool for pool in rows.select_related("cluster")}
    used = usage.usage_by_pool(pools.values())
    return tuple(
        FamilyChoice(choice, pool, used[pool.pk].get(choice.family) if pool else None)
        for choice in choices
        for pool in [pools.get(choice.pool)]
    )
