"""The pool from which a pod gets its addresses, for a pod of a cluster or a described one."""

from dataclasses import dataclass, replace

from pools.cilium import configuration as cilium_configuration
from pools.clusters import connections
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import connecting
from pools.core import errors
from pools.core.cilium import configuration, pod_pool
from pools.core.cilium.pod_pool import ObjectMetadata
from pools.core.kubernetes.resources import NAMESPACE, POD, Resource
from pools.models import Category, Cluster, Connection, Pool
from pools.platform.outbound import faults
from pools.register import usage


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


def explain(cluster: Cluster, *, pod: ObjectMetadata, namespace: ObjectMetadata) -> Explanation:
    """Return the choice for each family of the cluster's pools; without pools, for IPv4 and IPv6.

    Labels and annotations that are None are read from the cluster if possible.
    """
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
    metadata: ObjectMetadata
    in_cluster: bool = False
    absent: str = ""


def _read_both(
    cluster: Cluster, pod: ObjectMetadata, namespace: ObjectMetadata
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
    return _ReadObject(replace(pod, note=note)), _ReadObject(replace(namespace, note=note))


def _is_described(description: ObjectMetadata) -> bool:
    return description.labels is not None and description.annotations is not None


def _read_object(
    client: ClusterClient, resource: Resource, description: ObjectMetadata, namespace: str = ""
) -> _ReadObject:
    """Return the object with the described labels and annotations instead of its own. Raises ClusterFault."""
    if _is_described(description):
        return _ReadObject(description)
    absent, observed = "", {}
    try:
        observed = client.get(resource, description.name, namespace).get("metadata", {})
    except faults.NotFound:
        kind = resource.kind.lower()
        absent = f"The cluster has no {kind} {description.name}: it is treated as one without labels and annotations."
    except faults.Forbidden:
        note = f"the credentials may not get {resource.plural}"
        return _ReadObject(replace(description, note=note))
    labels, annotations = (
        (observed.get(key) or {}) if value is None else value
        for key, value in (
            ("labels", description.labels),
            ("annotations", description.annotations),
        )
    )
    metadata = ObjectMetadata(description.name, labels, annotations)
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
