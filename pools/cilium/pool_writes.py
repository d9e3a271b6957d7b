"""What is written of pools: the register's own, and v2 objects of v2alpha1 ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from pools.cilium import pool_agreement, pool_sync
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import MANAGER, Found, Pass, Write
from pools.core import errors
from pools.core.cilium import conversion, podippool
from pools.core.cilium.podippool import PodIPPool, Shape
from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.resources import (
    CILIUM_POD_IP_POOL,
    CILIUM_POD_IP_POOL_V2ALPHA1,
    Resource,
)
from pools.models import ObservedObject, Pool
from pools.models.observed import Severity
from pools.models.pools import Category

KIND = podippool.KIND
CONVERTER = (
    "cadastre-conversion"  # the field manager of converted objects, which are not the register's
)
_FIRST = 20  # differences in a message


def ours(manifest: Manifest) -> bool:
    """Whether the object has fields that the register wrote."""
    return any(owner.manager == MANAGER for owner in managed_fields.parse(manifest))


@dataclass(frozen=True)
class Shaped:
    """How the cluster's own CRD writes a pool; without a shape, `problem` says why not."""

    resource: Resource
    shape: Shape | None
    problem: str = ""

    def render(self, said: PodIPPool) -> Manifest:
        """Raises InvalidInput `shape_cannot_hold_ranges`."""
        manifest = podippool.render(said, shape=self.shape or Shape.V2ALPHA1)
        return manifest | {"apiVersion": self.resource.api_version}


def shape_of(pass_: Pass) -> Shaped:
    """Asked of the cluster once in a pass, when something is to be written.

    A cluster that shows no schema takes strings in both versions of the shipped CRD; reserved ranges
    are not written to it.
    """
    resource = pass_.served[KIND]
    schema = pass_.gateway.schema(resource)
    if schema is None:
        return Shaped(resource, Shape.V2ALPHA1)
    try:
        return Shaped(resource, conversion.shape_of(schema))
    except errors.InvalidInput as error:
        return Shaped(resource, None, error.message)


def written(current: Manifest | None, said: PodIPPool, manifest: Manifest) -> Manifest | None:
    """What to send so that the object says what the register says; None when it does.

    An object whose spec says the same in other words (strings where the CRD has objects, `fd00::0`)
    keeps its words: changing them would hide its CIDRs from readers of v2alpha1.
    """
    if current is None:
        return manifest
    if same_spec(current, said):
        spec = current["spec"]
        kept = {key: spec.get(key, value) for key, value in manifest["spec"].items()}
        manifest = manifest | {"spec": kept}
    found = differences.find(manifest, current, manager=MANAGER)
    return _emptied(manifest, found) if found else None


def _emptied(manifest: Manifest, found: Sequence[differences.Difference]) -> Manifest:
    """Without our last reserved range, an entry without ranges stays.

    An API server makes null of a list whose members an apply has all left out, and refuses that.
    """
    spec = dict(manifest["spec"])
    for key in ("ipv4", "ipv6"):
        part = spec.get(key)
        ours = any(one.path.startswith(f"spec.{key}.pool[") for one in found)
        if ours and part is not None and "pool" not in part:
            spec[key] = part | {"pool": [{"cidr": part["cidrs"][0]}]}
    return manifest | {"spec": spec}


def fit(part: Manifest, current: Manifest, *, said: PodIPPool) -> Manifest:
    """Let the reserved ranges that are applied be those of CIDRs that the object has.

    Where somebody else owns the list of CIDRs: none of a CIDR that is not in it, and of one that is to
    be removed what we reserved before, so that nothing is handed out of it meanwhile.
    """
    spec = dict(part.get("spec") or {})
    for number in (4, 6):
        key = f"ipv{number}"
        there = (current.get("spec") or {}).get(key) or {}
        family = dict(spec.get(key) or {})
        if "cidrs" in family or not there.get("cidrs"):
            continue
        listed = [cidr for cidr in there["cidrs"] if isinstance(cidr, str)]
        wanted = said.families.get(number)
        removed = set(listed) - {str(one.cidr) for one in (wanted.cidrs if wanted else ())}
        own = _own_ranges(current, key)
        ranges = {one["cidr"]: one for one in family.pop("pool", [])}
        ranges |= {cidr: own[cidr] for cidr in removed & own.keys()}
        fitting = [ranges[cidr] for cidr in listed if cidr in ranges]
        if own and not fitting:
            fitting = [{"cidr": listed[0]}]
        if fitting:
            family["pool"] = fitting
        spec.pop(key, None)
        if family:
            spec[key] = family
    return {**part, "spec": spec} if spec else {k: v for k, v in part.items() if k != "spec"}


def _own_ranges(current: Manifest, key: str) -> dict[str, Manifest]:
    """The entries of `pool` that we wrote, by CIDR."""
    mine = [one for one in managed_fields.parse(current) if one.manager == MANAGER]
    return {
        entry["cidr"]: entry
        for entry in current["spec"][key].get("pool") or ()
        for at in [("spec", key, "pool", managed_fields.key_of({"cidr": entry["cidr"]}))]
        if any(owner.owns(at) for owner in mine)
    }


def same_spec(current: Manifest, said: PodIPPool) -> bool:
    """Whether the object's spec says what the register says, also in what it leaves out."""
    try:
        there = pool_sync.normal(pool_sync.parse(current))
    except errors.InvalidInput:
        return False
    return _spec(there) == _spec(said)


def _spec(said: PodIPPool) -> tuple[object, ...]:
    selectors = (said.pod_selector, said.namespace_selector)
    return (said.families, said.allow_first_ip, said.allow_last_ip, *selectors)


def writes(pass_: Pass, shape: Callable[[], Shaped], notes: list[Found]) -> Iterator[Write]:
    objects = {row.name: row for row in pool_agreement.different(pass_.cluster)}
    seen = ObservedObject.objects.filter(cluster=pass_.cluster, kind=KIND).values("name")
    found = list(
        Pool.objects.filter(
            Q(name__in=list(objects)) | ~Q(name__in=seen),
            cluster=pass_.cluster,
            category=Category.POD,
            follows_cluster=False,
            orphaned_at=None,
        ).order_by("name")
    )
    said = pool_sync.said(found)
    agreed = []
    for pool in found:
        row = objects.get(pool.name)
        if not said[pool.pk].families:
            continue
        try:
            manifest = _rendered(shape(), said[pool.pk])
        except errors.InvalidInput as error:
            notes.append(_not_written(pool, error))
            continue
        make = functools.partial(_make, said=said[pool.pk], manifest=manifest)
        if row is None or make(row.manifest) is not None:
            yield Write(
                shape().resource, pool.name, make, fit=functools.partial(fit, said=said[pool.pk])
            )
        elif same_spec(row.manifest, said[pool.pk]):
            agreed.append(row.pk)
        else:
            notes.append(_more_in_cluster(row, manifest))
    if agreed:
        with pass_.holding():
            pool_agreement.agree(agreed)


def _make(current: Manifest | None, said: PodIPPool, manifest: Manifest) -> Manifest | None:
    return written(current, said, manifest)


def _rendered(shape: Shaped, said: PodIPPool) -> Manifest:
    if shape.shape is None:
        raise errors.InvalidInput.of("", "unknown_shape", shape.problem)
    return shape.render(said)


def _not_written(pool: Pool, error: errors.InvalidInput) -> Found:
    message = (
        f"The pool {pool.name} is not written, because the cluster's CRD cannot hold it: "
        f"{error.message}. Nothing of it is written rather than less than is meant."
    )
    return Found("pool_not_writable", pool.name, message, Severity.ERROR, {"code": error.code})


def _more_in_cluster(row: ObservedObject, manifest: Manifest) -> Found:
    fields = [
        {"field": one.field, "register": one.v2alpha1, "cluster": one.v2}
        for one in _spec_differences(manifest, row.manifest)
    ]
    names = ", ".join(str(one["field"]) for one in fields[:_FIRST])
    message = (
        f"The object {row.name} says more than the register: {names}. Others own these fields; adopt"
        " the object, or remove them there."
    )
    return Found("more_in_cluster", row.name, message, details={"fields": fields})


def _spec_differences(ours: Manifest, theirs: Manifest) -> list[conversion.Difference]:
    try:
        found = conversion.differences(ours, theirs)
    except errors.InvalidInput as error:
        return [conversion.Difference("spec", None, error.message)]
    return [one for one in found if one.field.startswith("spec.")]


# --- lazy conversion (spec/000) -------------------------------------------------------------------


def conversions(pass_: Pass, shape: Callable[[], Shaped], notes: list[Found]) -> Iterator[Write]:
    """Objects that v2alpha1 has and v2 has not; the differences of two of one name are noted."""
    old = CILIUM_POD_IP_POOL_V2ALPHA1
    if pass_.served[KIND] != CILIUM_POD_IP_POOL or not pass_.gateway.served([old]):
        return
    rows = ObservedObject.objects.filter(cluster=pass_.cluster, kind=KIND, missed_at=None)
    uids = dict(rows.values_list("name", "uid"))
    for v2alpha1 in pass_.gateway.list(old).items:
        metadata = v2alpha1["metadata"]
        if uids.get(metadata["name"]) == metadata.get("uid"):
            continue  # one object
        v2 = rows.filter(name=metadata["name"]).values_list("manifest", flat=True).first()
        try:
            if conversion.standing(v2alpha1, v2) is conversion.Standing.V2_WINS:
                notes += _versions_differ(v2alpha1, v2)
                continue
            manifest = _converted(shape(), v2alpha1)
        except errors.InvalidInput as error:
            message = f"The v2alpha1 object is not converted: {error.message}"
            notes.append(Found("not_converted", metadata["name"], message))
            continue
        make = functools.partial(_unless_there, manifest=manifest)
        yield Write(CILIUM_POD_IP_POOL, metadata["name"], make, manager=CONVERTER)


def _converted(shape: Shaped, v2alpha1: Manifest) -> Manifest:
    if shape.shape is None:
        raise errors.InvalidInput.of("", "unknown_shape", shape.problem)
    # A v2 that cannot hold ranges takes the strings of the shipped one.
    fitting = Shape.V2 if shape.shape is Shape.V2ALPHA1 else shape.shape
    return conversion.convert(v2alpha1, fitting)


def _unless_there(current: Manifest | None, manifest: Manifest) -> Manifest | None:
    return manifest if current is None else None


def _versions_differ(v2alpha1: Manifest, v2: Any) -> Iterator[Found]:
    fields = [vars(one) for one in conversion.differences(v2alpha1, v2)]
    if fields:
        name = v2["metadata"]["name"]
        shown = ", ".join(str(one["field"]) for one in fields[:_FIRST])
        message = (
            f"The v2alpha1 object {name} says otherwise than the v2 one, which counts: {shown}."
        )
        yield Found("versions_differ", name, message, details={"fields": fields})
