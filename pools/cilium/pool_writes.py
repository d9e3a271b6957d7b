"""Writes of pools to a cluster: pools of the register, and v2 objects for v2alpha1 objects."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q

from pools.cilium import pool_sync
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import MANAGER, ReconcileFinding, SyncContext, Write
from pools.core import addresses, errors
from pools.core.cilium import conversion, podippool
from pools.core.cilium.podippool import PodIPPool, Shape
from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.resources import (
    CILIUM_POD_IP_POOL,
    CILIUM_POD_IP_POOL_V2ALPHA1,
    Manifest,
    Resource,
)
from pools.models import Category, Cluster, ObservedObject, Pool, Severity
from pools.platform import database


def mark_agreed(row_ids: Sequence[int]) -> None:
    """Record that these objects equal their pools."""
    if row_ids:
        with connection.cursor() as cursor:
            cursor.execute(_AGREE, [list(row_ids)])


_AGREED = "o.uid || ' ' || o.resource_version || ' ' || p.version"
_AGREE = f"""
    UPDATE pools_pool p SET agreed = {_AGREED} FROM pools_observedobject o
    WHERE o.id = ANY(%s) AND p.cluster_id = o.cluster_id AND p.name = o.name
      AND p.category = 'pod' AND p.agreed <> {_AGREED}
"""  # noqa: S608  # our own texts
# Objects without a pool, and objects that changed, or whose pool changed, since they were equal.
_CHANGED = f"""
    SELECT o.id FROM pools_observedobject o
    LEFT JOIN pools_pool p ON p.cluster_id = o.cluster_id AND p.name = o.name
    WHERE o.cluster_id = %s AND o.kind = %s AND o.missed_at IS NULL
      AND (p.id IS NULL OR p.agreed <> {_AGREED})
"""  # noqa: S608


def changed_objects(cluster: Cluster) -> list[ObservedObject]:
    """Return the objects, by name, that may differ from their pools or have none."""
    ids = [row[0] for row in database.rows(_CHANGED, [cluster.pk, podippool.KIND])]
    return list(ObservedObject.objects.filter(pk__in=ids).order_by("name")) if ids else []


KIND = podippool.KIND
# Field manager of converted objects, which the register does not own.
CONVERTER = "cadastre-conversion"
_FIRST = 20  # differences in a message


def has_our_manager(manifest: Manifest) -> bool:
    """Return True if our field manager owns fields of the object."""
    return any(owner.manager == MANAGER for owner in managed_fields.parse(manifest))


@dataclass(frozen=True)
class ServedShape:
    """The shape of the cluster's CRD; `problem` says why it is None."""

    resource: Resource
    shape: Shape | None
    problem: str = ""

    def render(self, desired_pool: PodIPPool) -> Manifest:
        """Return the manifest of a pool. Raises InvalidInput `shape_cannot_hold_ranges`."""
        manifest = podippool.render(desired_pool, shape=self.shape or Shape.V2ALPHA1)
        return manifest | {"apiVersion": self.resource.api_version}


def fetch_shape(context: SyncContext) -> ServedShape:
    """Read the shape of the CRD from the cluster; called once in a sync, before a write.

    A cluster that shows no schema accepts strings in both versions of the shipped CRD; reserved ranges
    are not written to it.
    """
    resource = context.served[KIND]
    schema = context.client.schema(resource)
    if schema is None:
        return ServedShape(resource, Shape.V2ALPHA1)
    try:
        return ServedShape(resource, conversion.shape_of(schema))
    except errors.InvalidInput as error:
        return ServedShape(resource, None, error.message)


def manifest_to_send(
    current: Manifest | None, desired_pool: PodIPPool, manifest: Manifest
) -> Manifest | None:
    """Return the manifest to send for a pool; None if the object is up to date.

    An object whose spec is equal in another notation (strings where the CRD has objects, `fd00::0`)
    keeps its notation: another one would hide its CIDRs from readers of v2alpha1.
    """
    if current is None:
        return manifest
    if same_spec(current, desired_pool):
        spec = current["spec"]
        merged_spec = {key: spec.get(key, value) for key, value in manifest["spec"].items()}
        manifest = manifest | {"spec": merged_spec}
    field_differences = differences.find_differences(manifest, current, manager=MANAGER)
    return _keep_one_entry(manifest, field_differences) if field_differences else None


def _keep_one_entry(
    manifest: Manifest, field_differences: Sequence[differences.FieldDifference]
) -> Manifest:
    """Keep an entry without ranges when our last reserved range is removed.

    If an apply omits all members of a list, an API server sets the list to null and rejects that.
    """
    spec = dict(manifest["spec"])
    for key in ("ipv4", "ipv6"):
        part = spec.get(key)
        ours = any(
            difference.path.startswith(f"spec.{key}.pool[") for difference in field_differences
        )
        if ours and part is not None and "pool" not in part:
            spec[key] = part | {"pool": [{"cidr": part["cidrs"][0]}]}
    return manifest | {"spec": spec}


def fit_ranges(part: Manifest, current: Manifest, *, desired_pool: PodIPPool) -> Manifest:
    """Limit the applied reserved ranges to CIDRs of the object.

    This applies if another manager owns the list of CIDRs. Ranges of a CIDR that is not in the list are
    omitted. A CIDR that is to be removed keeps our ranges, so that no blocks are allocated from it.
    """
    spec = dict(part.get("spec") or {})
    for number in (4, 6):
        key = f"ipv{number}"
        observed_family = (current.get("spec") or {}).get(key) or {}
        family = dict(spec.get(key) or {})
        if "cidrs" in family or not observed_family.get("cidrs"):
            continue
        listed = [cidr for cidr in observed_family["cidrs"] if isinstance(cidr, str)]
        desired_family = desired_pool.families.get(number)
        notations = {_canonical(text): text for text in listed}
        removed = set(listed) - {
            notations.get(str(entry.cidr))
            for entry in (desired_family.cidrs if desired_family else ())
        }
        own_ranges = _own_ranges(current, key)
        entries = [
            entry | {"cidr": notations.get(entry["cidr"], entry["cidr"])}
            for entry in family.pop("pool", [])
        ]
        ranges = {entry["cidr"]: entry for entry in entries}
        ranges |= {cidr: own_ranges[cidr] for cidr in removed & own_ranges.keys()}
        fitting = [ranges[cidr] for cidr in listed if cidr in ranges]
        if own_ranges and not fitting:
            fitting = [{"cidr": listed[0]}]
        if fitting:
            family["pool"] = fitting
        spec.pop(key, None)
        if family:
            spec[key] = family
    return {**part, "spec": spec} if spec else {k: v for k, v in part.items() if k != "spec"}


def _canonical(text: str) -> str:
    """Return a CIDR in the register's notation; the object's may be another one, such as `fd00::0/64`."""
    try:
        return str(addresses.parse_cidr(text, source=addresses.InputSource.TEXT))
    except errors.InvalidInput:
        return text


def _own_ranges(current: Manifest, key: str) -> dict[str, Manifest]:
    """Return the entries of `pool` that our manager owns, by CIDR."""
    own_entries = [owner for owner in managed_fields.parse(current) if owner.manager == MANAGER]
    return {
        entry["cidr"]: entry
        for entry in current["spec"][key].get("pool") or ()
        for path in [("spec", key, "pool", managed_fields.member_key({"cidr": entry["cidr"]}))]
        if any(owner.owns(path) for owner in own_entries)
    }


def same_spec(current: Manifest, desired_pool: PodIPPool) -> bool:
    """Return True if the object's spec equals that of the register, including absent fields."""
    try:
        observed_pool = pool_sync.normalize(pool_sync.parse(current))
    except errors.InvalidInput:
        return False
    return _spec(observed_pool) == _spec(desired_pool)


def _spec(desired_pool: PodIPPool) -> tuple[object, ...]:
    selectors = (desired_pool.pod_selector, desired_pool.namespace_selector)
    return (
        desired_pool.families,
        desired_pool.allow_first_ip,
        desired_pool.allow_last_ip,
        *selectors,
    )


def desired_writes(
    context: SyncContext, shape: Callable[[], ServedShape], notes: list[ReconcileFinding]
) -> Iterator[Write]:
    objects = {row.name: row for row in changed_objects(context.cluster)}
    observed_names = ObservedObject.objects.filter(cluster=context.cluster, kind=KIND).values(
        "name"
    )
    pools = list(
        Pool.objects.filter(
            Q(name__in=list(objects)) | ~Q(name__in=observed_names),
            cluster=context.cluster,
            category=Category.POD,
            follows_cluster=False,
            orphaned_at=None,
        ).order_by("name")
    )
    desired_pools = pool_sync.registered_manifests(pools)
    agreed_ids = []
    for pool in pools:
        with ingest.isolate_object(context, KIND, pool.name):
            row = objects.get(pool.name)
            if not desired_pools[pool.pk].families:
                continue
            try:
                manifest = _render(shape(), desired_pools[pool.pk])
            except errors.InvalidInput as error:
                notes.append(_not_writable_finding(pool, error))
                continue
            make_manifest = functools.partial(
                manifest_to_send, desired_pool=desired_pools[pool.pk], manifest=manifest
            )
            if row is None or make_manifest(row.manifest) is not None:
                yield Write(
                    shape().resource,
                    pool.name,
                    make_manifest,
                    fit=functools.partial(fit_ranges, desired_pool=desired_pools[pool.pk]),
                )
            elif same_spec(row.manifest, desired_pools[pool.pk]):
                agreed_ids.append(row.pk)
            else:
                notes.append(_more_in_cluster_finding(row, manifest))
    if agreed_ids:
        with context.transaction():
            mark_agreed(agreed_ids)


def _render(shape: ServedShape, desired_pool: PodIPPool) -> Manifest:
    if shape.shape is None:
        raise errors.InvalidInput.for_field("", "unknown_shape", shape.problem)
    return shape.render(desired_pool)


def _not_writable_finding(pool: Pool, error: errors.InvalidInput) -> ReconcileFinding:
    message = (
        f"The pool {pool.name} is not written, because the cluster's CRD does not support it: "
        f"{error.message}. No part of it is written."
    )
    return ReconcileFinding(
        "pool_not_writable", pool.name, message, Severity.ERROR, {"code": error.code}
    )


def _more_in_cluster_finding(row: ObservedObject, manifest: Manifest) -> ReconcileFinding:
    fields = [
        {"field": difference.field, "register": difference.v2alpha1, "cluster": difference.v2}
        for difference in _spec_differences(manifest, row.manifest)
    ]
    names = ", ".join(str(entry["field"]) for entry in fields[:_FIRST])
    message = (
        f"The object {row.name} has fields that the register does not have: {names}. Other managers own"
        " these fields. Adopt the object, or remove the fields in the cluster."
    )
    return ReconcileFinding("more_in_cluster", row.name, message, details={"fields": fields})


def _spec_differences(
    ours: Manifest, observed_manifest: Manifest
) -> list[conversion.VersionDifference]:
    try:
        all_differences = conversion.differences(ours, observed_manifest)
    except errors.InvalidInput as error:
        return [conversion.VersionDifference("spec", None, error.message)]
    return [difference for difference in all_differences if difference.field.startswith("spec.")]


# --- lazy conversion ------------------------------------------------------------------------------


def conversion_writes(
    context: SyncContext, shape: Callable[[], ServedShape], notes: list[ReconcileFinding]
) -> Iterator[Write]:
    """Yield writes for objects that only v2alpha1 has; add findings for differing versions to `notes`."""
    old_version = CILIUM_POD_IP_POOL_V2ALPHA1
    if context.served[KIND] != CILIUM_POD_IP_POOL or not context.client.served([old_version]):
        return
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=KIND, missed_at=None)
    uids = dict(rows.values_list("name", "uid"))
    for v2alpha1 in context.client.list(old_version).items:
        metadata = v2alpha1["metadata"]
        with ingest.isolate_object(context, KIND, metadata["name"]):
            if uids.get(metadata["name"]) == metadata.get("uid"):
                continue  # both versions show one object
            v2 = rows.filter(name=metadata["name"]).values_list("manifest", flat=True).first()
            try:
                if conversion.version_relation(v2alpha1, v2) is conversion.VersionRelation.V2_WINS:
                    notes += _version_findings(v2alpha1, v2)
                    continue
                manifest = _convert(shape(), v2alpha1)
            except errors.InvalidInput as error:
                message = f"The v2alpha1 object is not converted: {error.message}"
                notes.append(ReconcileFinding("not_converted", metadata["name"], message))
                continue
            make_manifest = functools.partial(_manifest_if_absent, manifest=manifest)
            yield Write(CILIUM_POD_IP_POOL, metadata["name"], make_manifest, manager=CONVERTER)


def _convert(shape: ServedShape, v2alpha1: Manifest) -> Manifest:
    if shape.shape is None:
        raise errors.InvalidInput.for_field("", "unknown_shape", shape.problem)
    # A v2 without reserved ranges accepts the strings of the shipped v2.
    fitting = Shape.V2 if shape.shape is Shape.V2ALPHA1 else shape.shape
    return conversion.convert(v2alpha1, fitting)


def _manifest_if_absent(current: Manifest | None, manifest: Manifest) -> Manifest | None:
    return manifest if current is None else None


def _version_findings(v2alpha1: Manifest, v2: Any) -> Iterator[ReconcileFinding]:
    fields = [vars(difference) for difference in conversion.differences(v2alpha1, v2)]
    if fields:
        name = v2["metadata"]["name"]
        shown = ", ".join(str(entry["field"]) for entry in fields[:_FIRST])
        message = f"The v2alpha1 object {name} differs from the v2 object, which is used: {shown}."
        yield ReconcileFinding("versions_differ", name, message, details={"fields": fields})
