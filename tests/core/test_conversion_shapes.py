"""The shape of a CRD is read from its schema: of the three that there are, and of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pools.core import errors
from pools.core.cilium import conversion
from pools.core.cilium.podippool import Shape
from pools.platform import documents

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


def test_one_family_is_enough() -> None:
    strings = {"type": "array", "items": {"type": "string"}}
    assert conversion.shape_of(_schema("ipv6", cidrs=strings)) is Shape.V2ALPHA1


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
