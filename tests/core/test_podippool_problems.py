"""Pools of pods: what is wrong with one, and how it is converted."""

import copy
from pathlib import Path
from typing import Any

import pytest

from pools.core import errors
from pools.core.cilium import conversion, podippool
from pools.core.cilium.conversion import VersionRelation
from pools.core.cilium.podippool import Shape
from pools.platform import documents

CIDR = "10.20.0.0/16"


def _pool(spec: object, **metadata: object) -> dict[str, Any]:
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": "green", **metadata},
        "spec": spec,
    }


def _v4(cidrs: object = (CIDR,), mask_size: object = 24, **more: object) -> dict[str, Any]:
    listed = list(cidrs) if isinstance(cidrs, tuple) else cidrs
    return _pool({"ipv4": {"cidrs": listed, "maskSize": mask_size, **more}})


def _reserved(*ranges: object, cidr: object = CIDR) -> dict[str, Any]:
    return _v4(pool=[{"cidr": cidr, "reservedRanges": list(ranges)}])


def _span(start: object, end: object) -> dict[str, object]:
    return {"start": start, "end": end}


ROWS = {
    "not-an-object": ([], ":object_expected"),
    "no-metadata": (
        {"apiVersion": "cilium.io/v2", "kind": "CiliumPodIPPool", "spec": _v4()["spec"]},
        "metadata.name:required",
    ),
    "metadata-is-text": (
        {**_v4(), "metadata": "green"},
        "metadata:wrong_type metadata.name:required",
    ),
    "name": (_pool(_v4()["spec"], name="Green"), "metadata.name:k8s_name"),
    "labels": (_pool(_v4()["spec"], labels=["a"]), "metadata.labels:wrong_type"),
    "annotation": (
        _pool(_v4()["spec"], annotations={"a/b": True}),
        "metadata.annotations.a/b:wrong_type",
    ),
    "no-spec": (_pool(None), "spec:required"),
    "empty-spec": (_pool({}), "spec:required"),
    "null-families": (_pool({"ipv4": None, "ipv6": None}), "spec:required"),
    "family-is-a-list": (
        _pool({"ipv4": []}),
        "spec.ipv4:wrong_type spec.ipv4.cidrs:required spec.ipv4.maskSize:required",
    ),
    "unknown-fields": (
        _pool({**_v4(masksize=24)["spec"], "ipv5": {}}),
        "spec.ipv5:unknown_field spec.ipv4.masksize:unknown_field",
    ),
    "flags": (
        _pool({**_v4()["spec"], "allowFirstIP": "yes", "allowLastIP": 1}),
        "spec.allowFirstIP:wrong_type spec.allowLastIP:wrong_type",
    ),
    "selectors": (
        _pool({**_v4()["spec"], "podSelector": "a=b"}),
        "spec.podSelector:wrong_type",
    ),
    "no-cidrs": (_v4(None), "spec.ipv4.cidrs:required"),
    "empty-cidrs": (_v4(()), "spec.ipv4.cidrs:required"),
    "cidrs-is-text": (_v4(CIDR), "spec.ipv4.cidrs:wrong_type"),
    "bad-cidrs": (
        _v4(("10.20.0.1/16", 7, "010.0.0.0/8", CIDR)),
        "spec.ipv4.cidrs.0:host_bits_set spec.ipv4.cidrs.1:wrong_type"
        " spec.ipv4.cidrs.2:leading_zero",
    ),
    "wrong-family": (_v4(("fd00::/104",)), "spec.ipv4.cidrs.0:mixed_family"),
    "proposed": (
        _v4(
            ({"cidr": "10.0.0.1/8", "reservedRange": "10.0.0.1"}, {"reservedRange": "10.0.0.0/30"})
        ),
        "spec.ipv4.cidrs.0.cidr:host_bits_set spec.ipv4.cidrs.0.reservedRange:range_syntax"
        " spec.ipv4.cidrs.1.cidr:required",
    ),
    "proposed-outside": (
        _v4(({"cidr": CIDR, "reservedRange": "10.21.0.0-10.21.0.9"},)),
        "spec.ipv4.cidrs.0.reservedRange:range_outside_cidr",
    ),
    "overlapping-cidrs": (
        _v4((CIDR, "10.20.1.0/24", "10.20.2.0/24", "10.20.0.0/15", "10.22.0.0/16")),
        "spec.ipv4.cidrs.0:cidr_overlap spec.ipv4.cidrs.1:cidr_overlap"
        " spec.ipv4.cidrs.2:cidr_overlap",
    ),
    "no-mask-size": (_v4(mask_size=None), "spec.ipv4.maskSize:required"),
    "mask-size-of-family": (_v4(mask_size=33), "spec.ipv4.maskSize:mask_size"),
    "mask-size-of-cidr": (_v4((CIDR, "10.30.0.0/26")), "spec.ipv4.maskSize:mask_size"),
    "mask-size-text": (_v4(mask_size="24"), "spec.ipv4.maskSize:wrong_type"),
    "pool-is-an-object": (_v4(pool={}), "spec.ipv4.pool:wrong_type"),
    "pool-entry-is-text": (_v4(pool=[CIDR]), "spec.ipv4.pool.0:wrong_type"),
    "unknown-cidr": (_reserved(cidr="10.21.0.0/16"), "spec.ipv4.pool.0.cidr:unknown_cidr"),
    "no-cidr": (_v4(pool=[{}]), "spec.ipv4.pool.0.cidr:required"),
    "cidr-twice": (
        _v4(pool=[{"cidr": CIDR}, {"cidr": CIDR}]),
        "spec.ipv4.pool.1.cidr:duplicate_key",
    ),
    "no-end": (_reserved({"start": "10.20.0.0"}), "spec.ipv4.pool.0.reservedRanges.0.end:required"),
    "bad-end": (
        _reserved(_span("10.20.0.0", "10.20.0.256")),
        "spec.ipv4.pool.0.reservedRanges.0.end:not_an_address",
    ),
    "reversed": (
        _reserved(_span("10.20.0.9", "10.20.0.0")),
        "spec.ipv4.pool.0.reservedRanges.0:range_reversed",
    ),
    "mixed": (
        _reserved(_span("10.20.0.9", "fd00::")),
        "spec.ipv4.pool.0.reservedRanges.0:mixed_family",
    ),
    "range-as-text": (
        _reserved("10.20.0.0-10.20.0.9"),
        "spec.ipv4.pool.0.reservedRanges.0:wrong_type",
    ),
    "outside": (
        _reserved(_span("10.20.255.0", "10.21.0.0")),
        "spec.ipv4.pool.0.reservedRanges.0:range_outside_cidr",
    ),
    "overlapping-ranges": (
        _reserved(
            _span("10.20.0.50", "10.20.0.60"),
            _span("10.20.0.0", "10.20.0.99"),
            _span("10.20.0.100", "10.20.0.101"),
            _span("10.20.0.70", "10.20.0.70"),
        ),
        "spec.ipv4.pool.0.reservedRanges.0:ranges_overlap"
        " spec.ipv4.pool.0.reservedRanges.3:ranges_overlap",
    ),
    "both-shapes-overlap": (
        _v4(
            ({"cidr": CIDR, "reservedRange": "10.20.0.0-10.20.0.9"},),
            pool=[{"cidr": CIDR, "reservedRanges": [_span("10.20.0.9", "10.20.0.9")]}],
        ),
        "spec.ipv4.pool.0.reservedRanges.0:ranges_overlap",
    ),
    "list": (
        {"kind": "List", "items": [_v4(), _v4(("10.0.0.1/8",)), "x", {"kind": "List"}]},
        "items.1.spec.ipv4.cidrs.0:host_bits_set items.2:wrong_type items.3.kind:unsupported_kind",
    ),
    "list-of-nothing": ({"kind": "List", "items": {}}, "items:wrong_type"),
    "helm": (
        {"ipam": {"operator": {podippool.HELM_VALUE: {"A b": _v4()["spec"], "c": None}}}},
        f"ipam.operator.{podippool.HELM_VALUE}.A b:k8s_name"
        f" ipam.operator.{podippool.HELM_VALUE}.c:required",
    ),
    "helm-other": ({"ipam": {"operator": {"replicas": 1}}}, ":unsupported_kind"),
    "helm-map-is-text": (
        {podippool.HELM_VALUE: "default"},
        f"{podippool.HELM_VALUE}:wrong_type",
    ),
    "nothing": ({}, ":unsupported_kind"),
    "any-object": ({"a": {"b": 1}}, ":unsupported_kind"),
    "no-kind": ({"apiVersion": "cilium.io/v2"}, "kind:unsupported_kind"),
}


@pytest.mark.parametrize(("doc", "expected"), ROWS.values(), ids=ROWS.keys())
def test_problems(doc: object, expected: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        podippool.parse_document(doc)
    result = {f"{problem.field}:{problem.code}" for problem in caught.value.problems}
    assert result == set(_split(expected))
    assert len(result) == len(caught.value.problems)


def _split(expected: str) -> list[str]:
    # A field may have a blank; a code has none.
    parts, field = [], []
    for word in expected.split(" "):
        field.append(word)
        if ":" in word:
            parts.append(" ".join(field))
            field = []
    return parts


def test_unknown_fields_of_an_object_in_cidrs_are_named() -> None:
    with pytest.raises(errors.InvalidInput, match="reservedRange") as caught:
        podippool.parse_document(_v4(({"cidr": CIDR, "reserved": "10.20.0.0/24"},)))
    assert caught.value.problems[0].field == "spec.ipv4.cidrs.0.reserved"


# --- Conversion of v2alpha1 to v2 (rule `v2-wins`), and the shape of a CRD, which is read from its
# schema
OLD: dict[str, Any] = {
    "apiVersion": "cilium.io/v2alpha1",
    "kind": "CiliumPodIPPool",
    "metadata": {
        "name": "green-pool",
        "uid": "0a",
        "resourceVersion": "3",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"team": "green"},
        "annotations": {
            "ipam.cilium.io/skip-masquerade": "true",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
        "managedFields": [{}],
        "finalizers": ["a/b"],
        "ownerReferences": [{}],
    },
    "spec": {
        "ipv4": {"cidrs": ["10.20.0.0/16", "10.30.0.0/16"], "maskSize": 24, "newer": 1},
        "ipv6": {"cidrs": ["fd00::/104"], "maskSize": 120},
        "allowFirstIP": False,
        "podSelector": {"matchLabels": {"a": "b"}},
        "newer": {"x": [1]},
    },
    "status": {"x": 1},
}


@pytest.mark.parametrize("shape", [Shape.V2, Shape.V2_PROPOSAL])
def test_nothing_is_lost(shape: Shape) -> None:
    before = copy.deepcopy(OLD)
    new = conversion.convert(OLD, shape)
    assert before == OLD
    spec = copy.deepcopy(OLD["spec"])
    if shape is Shape.V2_PROPOSAL:
        for family in ("ipv4", "ipv6"):
            spec[family]["cidrs"] = [{"cidr": cidr} for cidr in spec[family]["cidrs"]]
    assert new == {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumPodIPPool",
        "metadata": {
            "name": "green-pool",
            "labels": {"team": "green"},
            "annotations": {"ipam.cilium.io/skip-masquerade": "true"},
        },
        "spec": spec,
    }
    assert conversion.differences(OLD, new) == []
    new["spec"]["newer"]["x"].append(2)
    assert before == OLD


def _with_uid(uid: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid}}


@pytest.mark.parametrize(
    ("v2alpha1", "v2", "expected"),
    [
        (None, None, None),
        (None, _with_uid("a"), VersionRelation.V2_ONLY),
        (_with_uid("a"), None, VersionRelation.V2ALPHA1_ONLY),
        (_with_uid("a"), _with_uid("a"), VersionRelation.ONE_OBJECT),
        (_with_uid("a"), _with_uid("b"), VersionRelation.V2_WINS),
        ({"metadata": {}}, {}, VersionRelation.V2_WINS),
    ],
)
def test_standing(v2alpha1: Any, v2: Any, expected: VersionRelation | None) -> None:
    assert conversion.version_relation(v2alpha1, v2) is expected


def test_an_object_that_was_written_in_another_shape() -> None:
    hidden = copy.deepcopy(OLD)
    hidden["spec"]["ipv4"]["cidrs"] = [{}]
    for call in (
        lambda: conversion.check_written_shape(hidden),
        lambda: conversion.convert(hidden, Shape.V2),
        lambda: conversion.differences(hidden, OLD),
    ):
        with pytest.raises(errors.InvalidInput) as caught:
            call()
        assert caught.value.code == "written_in_another_shape"
        assert caught.value.problems[0].field == "spec.ipv4.cidrs.0"
    conversion.check_written_shape(OLD)
    for odd in (None, [], {}, {"spec": {"ipv4": {"cidrs": "x"}}}):
        conversion.check_written_shape(odd)


CRDS = Path(__file__).parent.parent / "kube" / "crds"


def _versions(file: str) -> dict[str, Any]:
    (document,) = documents.load_yaml((CRDS / file).read_text())
    return {
        version["name"]: version["schema"]["openAPIV3Schema"]
        for version in document.data["spec"]["versions"]
    }


@pytest.mark.parametrize(
    ("file", "shapes"),
    [
        ("cilium.io_ciliumpodippools.v2alpha1.yaml", {"v2alpha1": Shape.V2ALPHA1}),
        (
            "cilium.io_ciliumpodippools.v2.yaml",
            {"v2": Shape.V2, "v2alpha1": Shape.V2ALPHA1},
        ),
        (
            "cilium.io_ciliumpodippools.v2-proposal.yaml",
            {"v2": Shape.V2_PROPOSAL, "v2alpha1": Shape.V2ALPHA1},
        ),
    ],
)
def test_the_definitions_that_there_are(file: str, shapes: dict[str, Shape]) -> None:
    result = {name: conversion.shape_of(schema) for name, schema in _versions(file).items()}
    assert result == shapes


def _schema(family: str, **fields: Any) -> dict[str, Any]:
    spec = {"properties": {family: {"properties": fields}}}
    return {"properties": {"spec": spec}}


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {},
        {"properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}},
        _schema("ipv4", cidrs={"type": "array", "items": {"type": "object"}}),
    ],
)
def test_the_schema_of_something_else(schema: object) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        conversion.shape_of(schema)
    assert caught.value.code == "unknown_shape"
