"""metadata.managedFields."""

from __future__ import annotations

from typing import Any

import pytest

from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.managed_fields import MemberKey, MemberValue


def _owner(fields: Any, **entry: Any) -> managed_fields.FieldOwner:
    manifest = {"metadata": {"managedFields": [{"manager": "m", "fieldsV1": fields, **entry}]}}
    (owner,) = managed_fields.parse(manifest)
    return owner


def test_paths() -> None:
    owner = _owner(
        {
            "f:a": {".": {}, "f:b": {}, "f:c.d:e": {}},
            "f:list": {'k:{"y":1,"x":"z"}': {".": {}, "f:n": {}}, 'v:"w"': {}},
        },
        operation="Apply",
        subresource="status",
    )
    key = MemberKey((("x", "z"), ("y", 1)))
    assert owner.paths == {
        ("a",),
        ("a", "b"),
        ("a", "c.d:e"),
        ("list", key),
        ("list", key, "n"),
        ("list", MemberValue('"w"')),
    }
    assert set(owner.leaves()) == owner.paths - {("a",), ("list", key)}
    assert (owner.manager, owner.operation, owner.subresource) == ("m", "Apply", "status")
    assert managed_fields.format_path(("list", key, "n")) == "list[x=z,y=1].n"
    assert managed_fields.format_path(("a", "c.d:e")) == "a[c.d:e]"


@pytest.mark.parametrize(
    ("path", "owned"),
    [
        (("a",), True),
        (("a", "b"), True),
        (("a", "b", "inside an atomic value"), True),
        (("a", "other"), False),
        (("z",), False),
    ],
)
def test_owns(path: tuple[str, ...], owned: bool) -> None:
    assert _owner({"f:a": {".": {}, "f:b": {}}}).owns(path) is owned


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"metadata": None},
        {"metadata": {"managedFields": None}},
        {"metadata": {"managedFields": ["x", {"fieldsType": "FieldsV2", "fieldsV1": {"f:a": {}}}]}},
    ],
)
def test_no_owners(manifest: dict[str, Any]) -> None:
    assert managed_fields.parse(manifest) == []


def test_odd_fields_are_passed_over() -> None:
    assert _owner({"k:{": {}, "i:0": {}, "f:a": 1, "f:b": {}}).paths == {("b",)}
    assert _owner(None).paths == _owner({}).paths == frozenset()


def test_a_field_that_nobody_owns_any_more() -> None:
    entries = [
        {"manager": "a", "fieldsV1": {"f:spec": {"f:ipv4": {"f:cidrs": {}, "f:maskSize": {}}}}},
        {"manager": "b", "fieldsV1": {"f:metadata": {"f:labels": {"f:x": {}}}}},
        {"manager": "c"},
    ]
    stored = managed_fields.remove_field(entries, "spec.ipv4.cidrs")
    assert stored[0]["fieldsV1"] == {"f:spec": {"f:ipv4": {"f:maskSize": {}}}}
    assert stored[1:] == entries[1:]
    assert "f:cidrs" in str(entries), "the given ones stay"
