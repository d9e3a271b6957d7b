"""Conversion of v2alpha1 to v2 (rule `v2-wins`), and the shape of a CRD, which is read from its schema."""

import copy
from pathlib import Path
from typing import Any

import pytest

from pools.core import errors
from pools.core.cilium import conversion
from pools.core.cilium.conversion import VersionRelation
from pools.core.cilium.podippool import Shape
from pools.platform import documents

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
