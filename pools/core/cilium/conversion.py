"""Conversion of v2alpha1 pools to v2 (lazy conversion of CFP-42466), and detection of a CRD's shape.

If both versions have an object of one name, v2 wins. An object of v2alpha1 only is converted if the
cluster manages `conversion`; the v2alpha1 object is not changed. On a real API server both versions of
a CRD are views of one stored object with one uid, so that there is nothing to convert.
"""

import copy
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pools.core import errors, object_reader
from pools.core.cilium import podippool

# kubectl's record of the manifest that it sent; it would be wrong on another object.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class VersionRelation(enum.Enum):
    """Relation of the objects of one name in the two versions."""

    ONE_OBJECT = "one object"  # the same uid: two views of one stored object
    V2_ONLY = "v2 only"
    V2ALPHA1_ONLY = "v2alpha1 only"  # what lazy conversion converts
    V2_WINS = "v2 wins"  # two objects; see differences()


@dataclass(frozen=True)
class VersionDifference:
    """A field with different values in two manifests; None means absent."""

    field: str
    v2alpha1: object
    v2: object


def version_relation(
    v2alpha1: object_reader.Json | None, v2: object_reader.Json | None
) -> VersionRelation | None:
    """Return the relation of the objects of one name; None if both are absent."""
    if v2alpha1 is None:
        return None if v2 is None else VersionRelation.V2_ONLY
    if v2 is None:
        return VersionRelation.V2ALPHA1_ONLY
    uid = _uid(v2alpha1)
    return VersionRelation.ONE_OBJECT if uid and uid == _uid(v2) else VersionRelation.V2_WINS


def convert(v2alpha1: object_reader.Json, shape: podippool.Shape) -> object_reader.Json:
    """Return the v2 manifest of a v2alpha1 object, in the shape of the cluster's CRD.

    The manifest has the labels, the annotations (without kubectl's last-applied) and the whole spec,
    including unknown fields. It does not have the metadata of the stored object (uid, resourceVersion,
    managedFields, owners, finalizers) and the status. Raises InvalidInput of podippool.parse_document
    and check_written_shape, and ValueError for the shape v2alpha1.
    """
    if shape is podippool.Shape.V2ALPHA1:
        raise ValueError("v2alpha1 is what is converted from")
    pool = _pool(v2alpha1)
    converted = podippool.render(pool, shape=shape)
    converted["metadata"].get("annotations", {}).pop(LAST_APPLIED, None)
    if not converted["metadata"].get("annotations", True):
        del converted["metadata"]["annotations"]
    spec = copy.deepcopy(v2alpha1["spec"])
    for family in pool.families:
        part = spec[f"ipv{family}"]
        part.pop("pool", None)
        part.update(converted["spec"][f"ipv{family}"])
    converted["spec"] = spec
    return converted


def differences(v2alpha1: object_reader.Json, v2: object_reader.Json) -> list[VersionDifference]:
    """Return the fields with different values in two objects of one name; notation is ignored.

    Reserved ranges are compared although v2alpha1 cannot have any: its readers do not see them.
    """
    v2alpha1_facts, v2_facts = (_facts(manifest) for manifest in (v2alpha1, v2))
    return [
        VersionDifference(field, v2alpha1_facts.get(field), v2_facts.get(field))
        for field in sorted({*v2alpha1_facts, *v2_facts})
        if v2alpha1_facts.get(field) != v2_facts.get(field)
    ]


def shape_of(schema: object) -> podippool.Shape:
    """Return the shape of the OpenAPI schema of one version of the CRD.

    A v2 without `pool` (before Cilium had reserved ranges) has the shape v2alpha1. Raises InvalidInput
    unknown_shape for any other schema.
    """
    for family in ("ipv4", "ipv6"):
        part = _value_at(schema, "properties", "spec", "properties", family, "properties")
        items = _value_at(part, "cidrs", "items")
        if _value_at(items, "properties", "reservedRange") is not None:
            return podippool.Shape.V2_PROPOSAL
        if _value_at(part, "pool", "items", "properties", "reservedRanges") is not None:
            return podippool.Shape.V2
        if _value_at(items, "type") == "string":
            return podippool.Shape.V2ALPHA1
    message = "neither strings nor objects with reservedRange in spec.ipv4.cidrs"
    raise errors.InvalidInput.for_field("", "unknown_shape", message)


def check_written_shape(manifest: object) -> None:
    """Raise InvalidInput written_in_another_shape if the served version hides the CIDRs.

    An object that was written with objects in `cidrs` reads as `cidrs: [{}]` in a version with strings.
    Its CIDRs are stored, but not visible, and must not be treated as removed.
    """
    report = object_reader.ProblemReport()
    for path in _hidden_cidrs(manifest):
        message = (
            "the object was written in another shape, which this version does not show; "
            "read it through the version in which it was written"
        )
        report.add(path, "written_in_another_shape", message)
    report.raise_any()


def _hidden_cidrs(manifest: object) -> Iterator[str]:
    for family in ("ipv4", "ipv6"):
        cidrs = _value_at(manifest, "spec", family, "cidrs")
        for index, cidr in enumerate(cidrs if isinstance(cidrs, list) else ()):
            if cidr == {}:
                yield f"spec.{family}.cidrs.{index}"


def _facts(manifest: object_reader.Json) -> dict[str, object]:
    pool = _pool(manifest)
    facts: dict[str, object] = {
        "spec.allowFirstIP": pool.allow_first_ip,
        "spec.allowLastIP": pool.allow_last_ip,
        "spec.podSelector": pool.pod_selector,
        "spec.namespaceSelector": pool.namespace_selector,
    }
    for family, part in pool.families.items():
        path = f"spec.ipv{family}"
        facts[f"{path}.cidrs"] = [str(entry.cidr) for entry in part.cidrs]
        facts[f"{path}.maskSize"] = part.mask_size
        for entry in part.cidrs:
            if entry.reserved:
                ranges = [str(span) for span in sorted(entry.reserved)]
                facts[f"{path}.reserved[{entry.cidr}]"] = ranges
    for key, texts in (("labels", pool.labels), ("annotations", pool.annotations)):
        facts |= {f"metadata.{key}[{n}]": text for n, text in texts.items() if n != LAST_APPLIED}
    return facts


def _pool(manifest: object_reader.Json) -> podippool.PodIPPool:
    if manifest.get("kind") != podippool.KIND:
        message = f"one {podippool.KIND} is expected"
        raise errors.InvalidInput.for_field(
            "kind", "unsupported_kind", message, manifest.get("kind")
        )
    check_written_shape(manifest)
    return podippool.parse_document(manifest, strict=False)[0]


def _uid(manifest: object_reader.Json) -> object:
    return _value_at(manifest, "metadata", "uid")


def _value_at(value: object, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
