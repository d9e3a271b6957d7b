"""Which pool a pod gets its addresses from, with what is known of its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pools import usage
from pools.core import cilium_config, pod_pool
from pools.models import Cluster, ObservedObject, Pool
from pools.models.pools import Category
from pools.services import cilium

NAMESPACE = "Namespace"
POD = "Pod"


@dataclass(frozen=True)
class Named:
    """A pod or namespace that somebody asks about; None: as it was seen in the cluster, if it was."""

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
    """The choices of all families; `assumed` says why the default pool is only assumed, "" if not."""

    chosen: tuple[Chosen, ...]
    default: str
    assumed: str
    pod_seen: bool
    namespace_seen: bool


def explain(cluster: Cluster, *, pod: Named, namespace: Named) -> Explanation:
    """For each family that the cluster's pools have; IPv4 and IPv6 where it has none."""
    config = cilium.config(cluster, fresh=False)
    manifests = cilium.pod_pools(cluster)
    seen = cilium_config.Seen(config.values, manifests)
    used = {family for pool in manifests for family in pool.families}
    found_pod = _seen(cluster, POD, pod, namespace.name)
    found_namespace = _seen(cluster, NAMESPACE, namespace)
    choices = pod_pool.choose(
        _marked(found_pod or pod),
        _marked(found_namespace or namespace),
        manifests,
        default=seen.default_pool,
        families=seen.families() if used or config.values is not None else (4, 6),
    )
    return Explanation(
        chosen=_with_rows(cluster, choices),
        default=seen.default_pool,
        assumed=config.why_not,
        pod_seen=found_pod is not None,
        namespace_seen=found_namespace is not None,
    )


def _marked(one: Named) -> pod_pool.Marked:
    return pod_pool.Marked(one.name, one.labels or {}, one.annotations or {})


def _seen(cluster: Cluster, kind: str, one: Named, namespace: str = "") -> Named | None:
    """The object in the cluster with what was said of it instead of its own; None if not seen."""
    if one.labels is not None and one.annotations is not None:
        return None
    rows = ObservedObject.objects.filter(
        cluster=cluster, kind=kind, name=one.name, namespace=namespace, missed_at=None
    )
    manifest = rows.values_list("manifest", flat=True).first()
    if manifest is None:
        return None
    metadata = manifest.get("metadata", {})
    return replace(
        one,
        labels=metadata.get("labels") if one.labels is None else one.labels,
        annotations=metadata.get("annotations") if one.annotations is None else one.annotations,
    )


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
