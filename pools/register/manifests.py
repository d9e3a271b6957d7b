"""Manifests of pools, read and written: CiliumPodIPPool in all its shapes, and Helm's autoCreateCiliumPodIPPools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from pools.clusters import connections
from pools.clusters.reconcile import connecting
from pools.core import errors
from pools.core.cilium import conversion, podippool
from pools.core.cilium.podippool import PodIPPool, Shape
from pools.core.kubernetes.resources import CILIUM_POD_IP_POOL, CILIUM_POD_IP_POOL_V2ALPHA1
from pools.models import ATTRIBUTES, Category, Cluster, Pool
from pools.platform import documents, events
from pools.register import overlaps, pool_cidrs, pools


@dataclass(frozen=True)
class ManifestReport:
    """The result of one object: `result` is created, changed, unchanged or refused.

    The problems of an object that is not refused are warnings of overlaps.
    """

    document: int  # counted from 0
    name: str
    result: str
    problems: tuple[errors.FieldProblem, ...] = ()
    pool_id: int | None = None


def apply_manifests(
    text: bytes,
    cluster: Cluster,
    *,
    author: events.Author,
    dry_run: bool = False,
    attributes: Mapping[str, Any] | None = None,
) -> list[ManifestReport]:
    """Create or change a pool for each object of a YAML or JSON text, all of them or none.

    Each pool gets the `attributes`: tags, which are added to those that it has, owner and custom fields.
    Returns a report for each object (with `dry_run`, of what would happen). If one of them is
    `refused`, nothing is changed. Raises InvalidInput if the text cannot be parsed.
    """
    parsed_documents = documents.load_yaml(text)
    with events.recorded_by(author):
        reports = [
            report
            for document in parsed_documents
            for report in _apply_document(document, cluster, author, attributes or {})
        ]
        if dry_run or any(report.result == "refused" for report in reports):
            transaction.set_rollback(True)
    return reports


def _apply_document(
    document: documents.Document,
    cluster: Cluster,
    author: events.Author,
    attributes: Mapping[str, Any],
) -> Sequence[ManifestReport]:
    try:
        manifests = podippool.parse_document(document.data)
    except errors.InvalidInput as error:
        return [ManifestReport(document.index, "", "refused", error.problems)]
    return [
        _apply_manifest(document.index, manifest, cluster, author, attributes)
        for manifest in manifests
    ]


def _apply_manifest(
    index: int,
    manifest: podippool.PodIPPool,
    cluster: Cluster,
    author: events.Author,
    attributes: Mapping[str, Any],
) -> ManifestReport:
    try:
        with transaction.atomic():
            result, pool = _create_or_change(manifest, cluster, author)
            if attributes:
                result = _set_attributes(pool, result, attributes, author)
    except errors.IpamError as error:
        problems = error.problems or (errors.FieldProblem("", error.code, error.message),)
        return ManifestReport(index, manifest.name, "refused", problems)
    return ManifestReport(index, manifest.name, result, _overlaps(pool, result), pool_id=pool.pk)


def _overlaps(pool: Pool, result: str) -> tuple[errors.FieldProblem, ...]:
    """Return a warning for each network that a new or changed pool overlaps."""
    owner = overlaps.NetworkOwner(pool.cluster_id, pool.cluster.name, "", pool.category, pool.pk)
    return tuple(
        errors.FieldProblem(
            "",
            errors.CIDROverlap.code,
            f"{cidr.cidr} overlaps {other} of {present} in {present.cluster}",
        )
        for cidr in (pool.cidrs.all() if result in {"created", "changed"} else ())
        for other, present in overlaps.find_new_overlaps(cidr.cidr, owner)
    )


def _create_or_change(
    manifest: podippool.PodIPPool, cluster: Cluster, author: events.Author
) -> tuple[str, Pool]:
    pool = Pool.objects.filter(cluster=cluster, name=manifest.name).first()
    if pool is None:
        return "created", create_pool(manifest, cluster, author=author)
    if pool.category != Category.POD:
        raise errors.AlreadyExists(f"The cluster already has a {pool.category} pool of this name.")
    if (pool.allow_first_ip, pool.allow_last_ip) != (
        manifest.allow_first_ip,
        manifest.allow_last_ip,
    ):
        raise errors.ImmutableInUse("allowFirstIP and allowLastIP of a pool cannot be changed.")
    if to_manifest(pool) == replace(manifest, api_version=podippool.V2, source=""):
        return "unchanged", pool
    pools.change(
        pool.pk,
        pools.PoolChange(
            families=manifest.families,
            annotations=manifest.annotations,
            labels=manifest.labels,
            selectors=(manifest.pod_selector, manifest.namespace_selector),
        ),
        author=author,
    )
    return "changed", pool


def _set_attributes(
    pool: Pool, result: str, attributes: Mapping[str, Any], author: events.Author
) -> str:
    """Set the attributes that an import gives to a pool; return its result with them."""
    tags = {*pool.tags, *attributes.get("tags", ())}
    values = {**attributes, "tags": sorted(tags)}
    change = pools.PoolChange(**values)
    changed = pools.change(pool.pk, change, author=author)
    is_same = all(getattr(changed, name) == getattr(pool, name) for name in ATTRIBUTES)
    return "changed" if result == "unchanged" and not is_same else result


def create_pool(
    manifest: podippool.PodIPPool,
    cluster: Cluster,
    *,
    author: events.Author,
    follows: bool = False,
) -> Pool:
    """Create the pool of a manifest; with `follows`, the pool follows its cluster's object."""
    return pools.create(
        cluster=cluster,
        name=manifest.name,
        category=Category.POD,
        families=manifest.families,
        allow_first_ip=manifest.allow_first_ip,
        allow_last_ip=manifest.allow_last_ip,
        annotations=manifest.annotations,
        labels=manifest.labels,
        pod_selector=manifest.pod_selector,
        namespace_selector=manifest.namespace_selector,
        follows_cluster=follows,
        author=author,
    )


def to_manifest(pool: Pool) -> podippool.PodIPPool:
    """Return the manifest that would create the pool."""
    return build_manifest(pool, pool_cidrs.families(pool))


def build_manifest(pool: Pool, families: dict[int, podippool.Family]) -> podippool.PodIPPool:
    """Return the manifest of a pool with the given families; a family without CIDRs is left out."""
    return podippool.PodIPPool(
        name=pool.name,
        families={number: family for number, family in families.items() if family.cidrs},
        allow_first_ip=pool.allow_first_ip,
        allow_last_ip=pool.allow_last_ip,
        annotations=pool.annotations,
        labels=pool.labels,
        pod_selector=pool.pod_selector,
        namespace_selector=pool.namespace_selector,
    )


HELM = "helm"  # the value ipam.operator.autoCreateCiliumPodIPPools
SHAPES = (*(shape.value for shape in Shape), HELM)


def pool_manifest(pool: Pool) -> PodIPPool:
    """Return a pool as a CiliumPodIPPool. Raises InvalidInput unsupported_kind for other categories."""
    if pool.category != Category.POD:
        message = f"the pool {pool} is a {pool.category} pool: only pod pools are CiliumPodIPPools"
        raise errors.InvalidInput.for_field("", "unsupported_kind", message, pool.category)
    return to_manifest(pool)


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
    with connections.client_for(connecting.cluster_access(connection)) as client:
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
