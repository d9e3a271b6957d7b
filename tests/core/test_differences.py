"""Owners of fields, and desired against observed, field by field."""

import copy
from typing import Any

import pytest

from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.differences import FieldDifference, Structure
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


RANGE = {"start": "10.20.0.0", "end": "10.20.0.9"}
OBSERVED: dict[str, Any] = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumPodIPPool",
    "metadata": {
        "name": "green",
        "uid": "0a",
        "labels": {"team": "green", "app.kubernetes.io/name": "x"},
        "managedFields": [
            {
                "manager": "cadastre",
                "operation": "Apply",
                "apiVersion": "cilium.io/v2",
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:team": {}}},
                    "f:spec": {
                        "f:ipv4": {
                            ".": {},
                            "f:cidrs": {},
                            "f:pool": {
                                'k:{"cidr":"10.20.0.0/16"}': {
                                    ".": {},
                                    "f:cidr": {},
                                    "f:reservedRanges": {},
                                }
                            },
                        },
                        "f:podSelector": {},
                    },
                },
            },
            {
                "manager": "kubectl",
                "operation": "Update",
                "fieldsV1": {"f:spec": {"f:ipv4": {"f:maskSize": {}, "f:cidrs": {}}}},
            },
        ],
    },
    "spec": {
        "ipv4": {
            "cidrs": ["10.20.0.0/16", "10.30.0.0/16"],
            "maskSize": 24,
            "pool": [
                {"cidr": "10.30.0.0/16", "reservedRanges": []},
                {"cidr": "10.20.0.0/16", "reservedRanges": [RANGE]},
            ],
        },
        "podSelector": {"matchLabels": {"a": "b"}},
    },
}


def _desired(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": "green"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    "desired",
    [
        _desired(),
        OBSERVED,
        _desired(ipv4={"maskSize": 24, "cidrs": ["10.20.0.0/16", "10.30.0.0/16"]}),
        _desired(ipv4={"pool": [{"cidr": "10.20.0.0/16", "reservedRanges": [RANGE]}]}),
        _desired(ipv4={"pool": OBSERVED["spec"]["ipv4"]["pool"][::-1]}),
        _desired(allowFirstIP=None),
    ],
)
def test_equal(desired: dict[str, Any]) -> None:
    assert differences.find_differences(desired, OBSERVED) == []


BOTH, OURS = ("cadastre", "kubectl"), ("cadastre",)


@pytest.mark.parametrize(
    ("spec", "difference"),
    [
        ({"ipv4": {"maskSize": 25}}, FieldDifference("spec.ipv4.maskSize", 25, 24, ("kubectl",))),
        (
            {"ipv4": {"cidrs": ["10.30.0.0/16", "10.20.0.0/16"]}},
            FieldDifference(
                "spec.ipv4.cidrs",
                ["10.30.0.0/16", "10.20.0.0/16"],
                ["10.20.0.0/16", "10.30.0.0/16"],
                BOTH,
            ),
        ),
        (
            {"ipv4": {"pool": [{"cidr": "10.20.0.0/16", "reservedRanges": []}]}},
            FieldDifference("spec.ipv4.pool[cidr=10.20.0.0/16].reservedRanges", [], [RANGE], OURS),
        ),
        (
            {"podSelector": {"matchLabels": {}}},
            FieldDifference(
                "spec.podSelector", {"matchLabels": {}}, {"matchLabels": {"a": "b"}}, OURS
            ),
        ),
        ({"namespaceSelector": {}}, FieldDifference("spec.namespaceSelector", {}, None)),
        ({"ipv6": {"maskSize": 120}}, FieldDifference("spec.ipv6.maskSize", 120, None)),
        ({"ipv4": "x"}, FieldDifference("spec.ipv4", "x", OBSERVED["spec"]["ipv4"], BOTH)),
        (
            {"ipv4": {"pool": [{"cidr": "10.99.0.0/16"}]}},
            FieldDifference("spec.ipv4.pool[cidr=10.99.0.0/16].cidr", "10.99.0.0/16", None),
        ),
    ],
)
def test_one_difference(spec: dict[str, Any], difference: FieldDifference) -> None:
    assert differences.find_differences(_desired(**spec), OBSERVED) == [difference]


def test_true_is_not_one() -> None:
    observed = {"spec": {"allowFirstIP": True}}
    field_differences = differences.find_differences({"spec": {"allowFirstIP": 1}}, observed)
    assert field_differences == [FieldDifference("spec.allowFirstIP", 1, True)]


def test_names_with_dots() -> None:
    desired = {"metadata": {"labels": {"app.kubernetes.io/name": "y", "team": "green"}}}
    assert differences.find_differences(desired, OBSERVED) == [
        FieldDifference("metadata.labels[app.kubernetes.io/name]", "y", "x")
    ]


def test_what_we_own_and_no_longer_want() -> None:
    cidrs = OBSERVED["spec"]["ipv4"]["cidrs"]
    field_differences = differences.find_differences(
        _desired(ipv4={"cidrs": cidrs}), OBSERVED, manager="cadastre"
    )
    assert field_differences == [
        FieldDifference("metadata.labels.team", None, "green", OURS),
        FieldDifference("spec.ipv4.pool[cidr=10.20.0.0/16].cidr", None, "10.20.0.0/16", OURS),
        FieldDifference("spec.ipv4.pool[cidr=10.20.0.0/16].reservedRanges", None, [RANGE], OURS),
        FieldDifference("spec.podSelector", None, {"matchLabels": {"a": "b"}}, OURS),
    ]
    assert differences.find_differences(_desired(), OBSERVED, manager="somebody") == []


def test_sets_are_compared_by_their_members() -> None:
    structure = Structure(lists={("metadata", "finalizers"): ()})
    desired = {"metadata": {"finalizers": ["b", "c"]}}
    observed = {"metadata": {"finalizers": ["a", "b"]}}
    field_differences = differences.find_differences(desired, observed, structure=structure)
    assert field_differences == [FieldDifference('metadata.finalizers["c"]', "c", None)]


def test_an_object_that_is_not_there() -> None:
    desired = copy.deepcopy(OBSERVED)
    del desired["metadata"]["managedFields"]
    fields = [difference.path for difference in differences.find_differences(desired, {})]
    assert "spec.ipv4.maskSize" in fields
    assert "metadata.name" not in fields


def test_what_we_wrote_to_the_status_is_no_part_of_the_manifest() -> None:
    entry = {"manager": "m", "subresource": "status", "fieldsV1": {"f:status": {"f:x": {}}}}
    observed = {"metadata": {"managedFields": [entry]}, "status": {"x": 1}}
    assert differences.find_differences({}, observed, manager="m") == []
