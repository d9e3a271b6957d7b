"""Which pool a pod gets its addresses from, with what is known of its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pools.cilium import configuration as cilium_configuration
from pools.clusters import connections
from pools.clusters.client.api_client import Gateway
from pools.clusters.reconcile import sync
from pools.core import errors
from pools.core.cilium import configuration, pod_pool
from pools.core.kubernetes.resources import NAMESPACE, POD, Resource
from pools.models import Cluster, Connection, Pool
from pools.models.pools import Category
from pools.platform.outbound import faults
from pools.register import usage


@dataclass(frozen=True)
class Named:
    """A pod or namespace that somebody asks about; None: as the cluster has it, if it can be read."""

    name: str
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Chosen:
    """The choice for one family; `pool` is the register's row, None when it has no such pool."""

    choice: pod_pool.Choice
    pool: Pool | None
    usage: usage.Usage | None


@dataclass(frozen=True)
class Explanation:
    """The choices of all families; `assumed` says why the default pool is only assumed, "" if not.

    `pod_seen` and `namespace_seen`: read from the cluster. `notes` say which of them it has not.
    """

    chosen: tuple[Chosen, ...]
    default: str
    assumed: str
    pod_seen: bool
    namespace_seen: bool
    notes: tuple[str, ...]


def explain(cluster: Cluster, *, pod: Named, namespace: Named) -> Explanation:
    """For each family that the cluster's pools have; IPv4 and IPv6 where it has none."""
    config = cilium_configuration.config(cluster, fresh=False)
    manifests = cilium_configuration.pod_pools(cluster)
    seen = configuration.Seen(config.values, manifests)
    used = {family for pool in manifests for family in pool.families}
    read_pod, read_namespace = _read_both(cluster, pod, namespace)
    choices = pod_pool.choose(
        read_pod.marked,
        read_namespace.marked,
        manifests,
        default=seen.default_pool,
        families=seen.families() if used or config.values is not None else (4, 6),
    )
    return Explanation(
        chosen=_with_rows(cluster, choices),
        default=seen.default_pool,
        assumed=config.why_not,
        pod_seen=read_pod.seen,
        namespace_seen=read_namespace.seen,
        notes=tuple(read.absent for read in (read_pod, read_namespace) if read.absent),
    )


@dataclass(frozen=True)
class _Read:
    marked: pod_pool.Marked
    seen: bool = False
    absent: str = ""


def _read_both(cluster: Cluster, pod: Named, namespace: Named) -> tuple[_Read, _Read]:
    connection = Connection.objects.filter(cluster=cluster).first()
    if connection is None:
        note = "the cluster is not connected"
    elif connection.paused:
        note = "the connection is paused"
    elif _is_described(pod) and _is_described(namespace):
        note = ""
    else:
        try:
            with connections.gateway(sync.access(connection)) as reached:
                return (
                    _read(reached, POD, pod, namespace.name),
                    _read(reached, NAMESPACE, namespace),
                )
        except errors.IpamError as error:
            note = error.message
    return _Read(_marked(pod, note)), _Read(_marked(namespace, note))


def _is_described(named: Named) -> bool:
    return named.labels is not None and named.annotations is not None


def _marked(named: Named, note: str) -> pod_pool.Marked:
    return pod_pool.Marked(named.name, named.labels, named.annotations, note)


def _read(reached: Gateway, resource: Resource, named: Named, namespace: str = "") -> _Read:
    """The object with what is said of it instead of its own. Raises what keeps the next one, too."""
    if _is_described(named):
        return _Read(_marked(named, ""))
    absent, metadata = "", {}
    try:
        metadata = reached.get(resource, named.name, namespace).get("metadata", {})
    except faults.ObjectAbsent:
        kind = resource.kind.lower()
        absent = (
            f"The cluster has no {kind} {named.name}: taken as one without labels and annotations."
        )
    except faults.Forbidden:
        return _Read(_marked(named, f"the credentials may not get {resource.plural}"))
    marked = pod_pool.Marked(
        named.name,
        (metadata.get("labels") or {}) if named.labels is None else named.labels,
        (metadata.get("annotations") or {}) if named.annotations is None else named.annotations,
    )
    return _Read(marked, not absent, absent)


def _with_rows(cluster: Cluster, choices: list[pod_pool.Choice]) -> tuple[Chosen, ...]:
    names = {choice.pool for choice in choices}
    rows = Pool.objects.filter(cluster=cluster, category=Category.POD, name__in=names)
    pools = {pool.name: pool for pool in rows.select_related("cluster")}
    used = usage.of_pools(pools.values())
    return tuple(
        Chosen(choice, pool, used[pool.pk].get(choice.family) if pool else None)
        for choice in choices
        for pool in [pools.get(choice.pool)]
    )
