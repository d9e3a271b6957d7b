"""Parser and writer of CiliumPodIPPool manifests in all their shapes.

The parser reads the list of strings of v2alpha1, the objects with `reservedRange` of the proposal
(CFP-42466), the `pool: [{cidr, reservedRanges: [{start, end}]}]` that Cilium shipped
(cilium/cilium#46880), the Helm value `autoCreateCiliumPodIPPools`, and lists of these. The result is
the same value for all: a CIDR with any number of reserved ranges. Only the writer depends on a shape.
"""

import enum
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from pools.core import addresses, blocks, errors, holders, object_reader

KIND = "CiliumPodIPPool"
LIST_KINDS = ("List", "CiliumPodIPPoolList")
V2ALPHA1 = "cilium.io/v2alpha1"
V2 = "cilium.io/v2"
API_VERSIONS = (V2ALPHA1, V2)
HELM_VALUE = "autoCreateCiliumPodIPPools"
# Path of the value in the values of Cilium's chart, or of a chart with Cilium as a subchart.
HELM_PARENTS = ("cilium", "ipam", "operator")
_parse_any_cidr = functools.partial(addresses.parse_cidr, source=addresses.InputSource.TEXT)
_parse_address = functools.partial(addresses.parse_address, source=addresses.InputSource.TEXT)
_parse_range = functools.partial(addresses.parse_range, source=addresses.InputSource.TEXT)


class Shape(enum.Enum):
    """The notation of reserved ranges in the CRD of a cluster."""

    V2ALPHA1 = "v2alpha1"  # has no reserved ranges
    V2 = "v2"  # pool: [{cidr, reservedRanges: [{start, end}]}], as shipped
    V2_PROPOSAL = "v2-proposal"  # cidrs: [{cidr, reservedRange: "first-last"}], CFP-42466


@dataclass(frozen=True)
class CidrEntry:
    """One CIDR of a pool, and its reserved ranges as they were written."""

    cidr: addresses.Network
    reserved: tuple[addresses.AddressRange, ...] = ()


@dataclass(frozen=True)
class Family:
    """The CIDRs of one IP family in the order of the manifest, and the size of their blocks."""

    cidrs: tuple[CidrEntry, ...]
    mask_size: int


@dataclass(frozen=True)
class PodIPPool:
    """One pool of a manifest.

    `families` has the keys 4 and 6 if they are used. `api_version` is "" for a Helm value. `source` is
    the path of the pool in the document ("" if the pool is the document).
    """

    name: str
    families: dict[int, Family]
    api_version: str = V2
    allow_first_ip: bool = False
    allow_last_ip: bool = False
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    pod_selector: object_reader.Json | None = None
    namespace_selector: object_reader.Json | None = None
    source: str = ""


@dataclass(frozen=True)
class _PoolParts:
    """The sections of a pool, independent of the format of the document."""

    source: str
    api_version: str
    naming: object_reader.Fields
    spec: object_reader.Fields
    named_by: str = "name"


@dataclass(frozen=True)
class _ParsedCIDR:
    """A CIDR during parsing, with the paths for problem reports."""

    path: str
    cidr: addresses.Network
    ranges: list[tuple[str, addresses.AddressRange]]


def parse_document(doc: object, *, strict: bool = True) -> list[PodIPPool]:
    """Return the pools of one YAML or JSON document, in its order.

    With `strict`, unknown fields of a spec are problems: in a file they are typing errors, and a
    misspelt reserved range must not be ignored. Objects of a cluster are read without it. Raises one InvalidInput with all problems: object_expected,
    unsupported_kind, required, wrong_type, unknown_field, duplicate_key, unknown_cidr,
    mixed_family, cidr_overlap, ranges_overlap, range_outside_cidr, and the codes of names, CIDRs,
    ranges and mask sizes.
    """
    if not isinstance(doc, dict):
        raise errors.InvalidInput.for_field("", "object_expected", "an object is expected", doc)
    report = object_reader.ProblemReport(strict)
    pools = [_pool(parts) for parts in _find(object_reader.Fields(doc, "", report))]
    report.raise_any()
    return pools


def _find(doc: object_reader.Fields) -> Iterator[_PoolParts]:
    if not any(map(doc.has, ("kind", "apiVersion", "metadata", "spec"))):
        yield from _find_helm(doc)
    elif doc.data.get("kind") in LIST_KINDS:
        for listed in doc.objects("items"):
            yield from _find_manifest(listed)
    else:
        yield from _find_manifest(doc)


def _find_manifest(doc: object_reader.Fields) -> Iterator[_PoolParts]:
    version = doc.data.get("apiVersion")
    if doc.data.get("kind") != KIND or version not in API_VERSIONS:
        message = f"a {KIND} of {' or '.join(API_VERSIONS)} is expected"
        doc.report.add(doc.path("kind"), "unsupported_kind", message, doc.data.get("kind"))
        return
    yield _PoolParts(doc.base_path, str(version), doc.section("metadata"), doc.section("spec"))


def _find_helm(doc: object_reader.Fields) -> Iterator[_PoolParts]:
    values = doc
    for parent in HELM_PARENTS:
        if not values.has(HELM_VALUE) and isinstance(values.data.get(parent), dict):
            values = values.section(parent)
    if values.has(HELM_VALUE):
        values = values.section(HELM_VALUE)
    elif not (values is doc and doc.data and all(map(_is_spec, doc.data.values()))):
        message = f"neither a {KIND} nor the Helm value {HELM_VALUE}"
        doc.report.add(doc.base_path, "unsupported_kind", message)
        return
    for name in values.data:
        naming = object_reader.Fields({name: name}, values.base_path, doc.report)
        yield _PoolParts(values.path(name), "", naming, values.section(name), named_by=name)


def _is_spec(value: object) -> bool:
    return isinstance(value, dict) and ("ipv4" in value or "ipv6" in value)


def _pool(parts: _PoolParts) -> PodIPPool:
    spec = parts.spec
    spec.allow_only(
        "ipv4", "ipv6", "allowFirstIP", "allowLastIP", "podSelector", "namespaceSelector"
    )
    is_manifest = bool(parts.api_version)
    return PodIPPool(
        name=parts.naming.parse(parts.named_by, holders.parse_name) or "",
        families=_families(spec),
        api_version=parts.api_version,
        allow_first_ip=spec.flag("allowFirstIP"),
        allow_last_ip=spec.flag("allowLastIP"),
        annotations=parts.naming.string_map("annotations") if is_manifest else {},
        labels=parts.naming.string_map("labels") if is_manifest else {},
        pod_selector=spec.mapping("podSelector"),
        namespace_selector=spec.mapping("namespaceSelector"),
        source=parts.source,
    )


def _families(spec: object_reader.Fields) -> dict[int, Family]:
    families = {n: _family(spec.section(f"ipv{n}"), n) for n in (4, 6) if spec.has(f"ipv{n}")}
    if not families:
        spec.report.add(spec.base_path, "required", "a pool has ipv4, ipv6 or both")
    return families


def _family(part: object_reader.Fields, number: int) -> Family:
    part.allow_only("cidrs", "maskSize", "pool")
    entries = [entry for entry in _parse_cidrs(part, number) if entry is not None]
    _add_shipped_ranges(part, entries)
    for entry in entries:
        _check_ranges(entry, part.report)
    _check_overlaps(entries, part.report)
    mask_size = part.parse("maskSize", functools.partial(_parse_mask_size, number, entries))
    cidrs = (CidrEntry(e.cidr, tuple(span for _, span in e.ranges)) for e in entries)
    return Family(tuple(cidrs), mask_size or 0)


def _parse_cidrs(part: object_reader.Fields, number: int) -> Iterator[_ParsedCIDR | None]:
    listed = part.items("cidrs")
    if part.data.get("cidrs") in (None, []):
        part.report.add(part.path("cidrs"), "required", "at least one CIDR is required")
    for path, item in listed:
        if isinstance(item, dict):
            yield _parse_proposed_cidr(object_reader.Fields(item, path, part.report), number)
        else:
            with part.report.collect():
                yield _ParsedCIDR(path, _parse_cidr(number, item, path), [])


def _parse_proposed_cidr(item: object_reader.Fields, number: int) -> _ParsedCIDR | None:
    """Return an object of CFP-42466: {cidr, reservedRange: "first-last"}."""
    item.allow_only("cidr", "reservedRange")
    cidr = item.parse("cidr", functools.partial(_parse_cidr, number))
    span = item.parse("reservedRange", _parse_range) if item.has("reservedRange") else None
    if cidr is None:
        return None
    return _ParsedCIDR(
        item.path("cidr"), cidr, [(item.path("reservedRange"), span)] if span else []
    )


def _add_shipped_ranges(part: object_reader.Fields, entries: list[_ParsedCIDR]) -> None:
    """Add the ranges of the shipped form: {cidr, reservedRanges: [{start, end}]}."""
    entries_by_cidr = {entry.cidr: entry for entry in entries}
    seen_cidrs = set()
    for item in part.objects("pool"):
        item.allow_only("cidr", "reservedRanges")
        ranges = [
            located_range
            for located_range in map(_parse_start_end, item.objects("reservedRanges"))
            if located_range
        ]
        cidr = item.parse("cidr", _parse_any_cidr)
        if cidr is None:
            continue
        if cidr in seen_cidrs:
            message = f"{cidr} has an entry already"
            item.report.add(item.path("cidr"), "duplicate_key", message, str(cidr))
        elif cidr not in entries_by_cidr:
            message = f"{cidr} is not one of the pool's cidrs"
            item.report.add(item.path("cidr"), "unknown_cidr", message, str(cidr))
        else:
            entries_by_cidr[cidr].ranges.extend(ranges)
        seen_cidrs.add(cidr)


def _parse_start_end(item: object_reader.Fields) -> tuple[str, addresses.AddressRange] | None:
    item.allow_only("start", "end")
    start, end = item.parse("start", _parse_address), item.parse("end", _parse_address)
    if start is None or end is None:
        return None
    with item.report.collect(item.base_path):
        return item.base_path, addresses.AddressRange(start, end)
    return None


def _check_ranges(entry: _ParsedCIDR, report: object_reader.ProblemReport) -> None:
    inside = []
    for path, span in entry.ranges:
        with report.collect():
            addresses.require_within(span, entry.cidr, path)
            inside.append((span, path))
    widest: addresses.AddressRange | None = None
    for span, path in sorted(inside):
        if widest is not None and span.overlaps(widest):
            message = f"{span} overlaps the range {widest} of {entry.cidr}"
            report.add(path, "ranges_overlap", message, str(span))
        if widest is None or int(span.last) > int(widest.last):
            widest = span


def _check_overlaps(entries: list[_ParsedCIDR], report: object_reader.ProblemReport) -> None:
    # Networks overlap only by nesting; in this order the outer network comes first.
    outer: _ParsedCIDR | None = None
    for entry in sorted(entries, key=lambda e: (int(e.cidr.network_address), e.cidr.prefixlen)):
        if outer is not None and entry.cidr.overlaps(outer.cidr):
            message = f"{entry.cidr} overlaps {outer.cidr} of the same pool"
            report.add(entry.path, "cidr_overlap", message, str(entry.cidr))
        else:
            outer = entry


def _parse_cidr(number: int, value: object, path: str) -> addresses.Network:
    cidr = _parse_any_cidr(value, path)
    if cidr.version != number:
        message = f"{cidr} is not an IPv{number} network"
        raise errors.InvalidInput.for_field(path, "mixed_family", message, str(cidr))
    return cidr


def _parse_mask_size(number: int, entries: list[_ParsedCIDR], value: object, path: str) -> int:
    mask_size = blocks.check_mask_size(value, number, field=path)
    for entry in entries:
        blocks.check_mask_size(mask_size, entry.cidr, field=path)
    return mask_size


def render(pool: PodIPPool, *, shape: Shape) -> object_reader.Json:
    """The manifest of a pool in the shape that a cluster's CRD has; parse_document reads it back.

    Raises InvalidInput `shape_cannot_hold_ranges`: v2alpha1 holds no range, the proposal one for
    each CIDR.
    """
    metadata: object_reader.Json = {"name": pool.name}
    spec: object_reader.Json = {}
    for key, texts in (("labels", pool.labels), ("annotations", pool.annotations)):
        if texts:
            metadata[key] = dict(texts)
    for number, family in sorted(pool.families.items()):
        spec[f"ipv{number}"] = _render_family(family, shape, f"spec.ipv{number}")
    for key, value in (
        ("allowFirstIP", pool.allow_first_ip or None),
        ("allowLastIP", pool.allow_last_ip or None),
        ("podSelector", pool.pod_selector),
        ("namespaceSelector", pool.namespace_selector),
    ):
        if value is not None:
            spec[key] = value
    version = V2ALPHA1 if shape is Shape.V2ALPHA1 else V2
    return {"apiVersion": version, "kind": KIND, "metadata": metadata, "spec": spec}


def _render_family(family: Family, shape: Shape, path: str) -> object_reader.Json:
    for index, entry in enumerate(family.cidrs):
        _check_shape(entry, shape, f"{path}.cidrs.{index}")
    if shape is Shape.V2_PROPOSAL:
        return {"cidrs": list(map(_render_proposed, family.cidrs)), "maskSize": family.mask_size}
    rendered: object_reader.Json = {
        "cidrs": [str(entry.cidr) for entry in family.cidrs],
        "maskSize": family.mask_size,
    }
    if shipped := [_render_shipped(entry) for entry in family.cidrs if entry.reserved]:
        rendered["pool"] = shipped
    return rendered


def _check_shape(entry: CidrEntry, shape: Shape, path: str) -> None:
    limit = {Shape.V2ALPHA1: 0, Shape.V2_PROPOSAL: 1}.get(shape)
    if limit is not None and len(entry.reserved) > limit:
        message = f"{shape.value} holds at most {limit} reserved ranges for {entry.cidr}"
        raise errors.InvalidInput.for_field(
            path, "shape_cannot_hold_ranges", message, str(entry.cidr)
        )


def _render_proposed(entry: CidrEntry) -> object_reader.Json:
    rendered = {"cidr": str(entry.cidr)}
    if entry.reserved:
        rendered["reservedRange"] = str(entry.reserved[0])
    return rendered


def _render_shipped(entry: CidrEntry) -> object_reader.Json:
    ranges = [{"start": str(span.first), "end": str(span.last)} for span in entry.reserved]
    return {"cidr": str(entry.cidr), "reservedRanges": ranges}
