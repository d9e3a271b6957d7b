"""Export of pools as YAML: CiliumPodIPPools in every shape, and Helm values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pools.clusters import connections
from pools.clusters.reconcile import sync
from pools.core import errors
from pools.core.cilium import conversion, podippool
from pools.core.cilium.podippool import PodIPPool, Shape
from pools.core.kubernetes.resources import CILIUM_POD_IP_POOL, CILIUM_POD_IP_POOL_V2ALPHA1
from pools.models import Cluster, Pool
from pools.models.pools import Category
from pools.platform import documents
from pools.register import manifests

HELM = "helm"  # the value ipam.operator.autoCreateCiliumPodIPPools
SHAPES = (*(shape.value for shape in Shape), HELM)


def pool_manifest(pool: Pool) -> PodIPPool:
    """Return a pool as a CiliumPodIPPool. Raises InvalidInput unsupported_kind for other categories."""
    if pool.category != Category.POD:
        message = f"the pool {pool} is a {pool.category} pool: only pod pools are CiliumPodIPPools"
        raise errors.InvalidInput.for_field("", "unsupported_kind", message, pool.category)
    return manifests.to_manifest(pool)


def render_yaml(pools: Sequence[PodIPPool], shape: str) -> str:
    """Return YAML: one document for each pool, or one document with Helm values.

    Raises InvalidInput shape_cannot_hold_ranges, and helm_cannot_hold for selectors, labels and
    annotations, which Helm values do not support.
    """
    if shape == HELM:
        return documents.dump_yaml(_helm_values(pools))
    rendered = (podippool.render(pool, shape=Shape(shape)) for pool in pools)
    return "---\n".join(map(documents.dump_yaml, rendered))


def fetch_shape(cluster: Cluster) -> Shape:
    """Return the shape of the CRD of a cluster; reads it from the cluster.

    Raises NotFound (not connected), InvalidInput unknown_shape, and ClusterFault.
    """
    connection = connections.get_connection(cluster)
    with connections.client_for(sync.cluster_access(connection)) as client:
        served = client.served([CILIUM_POD_IP_POOL, CILIUM_POD_IP_POOL_V2ALPHA1])
        if CILIUM_POD_IP_POOL not in served:
            return Shape.V2ALPHA1
        schema = client.schema(CILIUM_POD_IP_POOL)
    if schema is None:
        message = (
            f"the cluster {cluster} does not show the schema of {podippool.KIND}; choose a shape"
        )
        raise errors.InvalidInput.for_field("", "unknown_shape", message)
    return conversion.shape_of(schema)


def _helm_values(pools: Sequence[PodIPPool]) -> dict[str, Any]:
    values = {}
    for index, pool in enumerate(pools):
        spec = podippool.render(pool, shape=Shape.V2ALPHA1)["spec"]
        if pool.labels or pool.annotations or {"podSelector", "namespaceSelector"} & set(spec):
            message = f"Helm values cannot hold the labels, annotations or selectors of {pool.name}"
            raise errors.InvalidInput.for_field(str(index), "helm_cannot_hold", message, pool.name)
        values[pool.name] = spec
    return {"ipam": {"mode": "multi-pool", "operator": {podippool.HELM_VALUE: values}}}
