"""What a definition does to an object: pruning, defaults, validation, two versions of one object."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube.api import MERGE, OLD_POOLS, POOLS, Api, Cluster, pool

_RANGES = [{"cidr": "10.0.0.0/16", "reservedRanges": [{"start": "10.0.0.1", "end": "10.0.0.9"}]}]


def _old(name: str, **more: Any) -> dict[str, Any]:
    return pool(name, **more) | {"apiVersion": "cilium.io/v2alpha1"}


def test_unknown_fields_are_dropped_silently(api: Api, name: str) -> None:
    item = pool(name, whatever=1)
    item["other"] = {}
    stored = api.call("POST", POOLS, item).json
    assert "whatever" not in stored["spec"]["ipv4"]
    assert "other" not in stored


def test_strict_validation_refuses_them(api: Api, cluster: Cluster, name: str) -> None:
    """Since 1.25; older servers do not know the parameter and drop the fields."""
    reply = api.call("POST", POOLS, pool(name, whatever=1), fieldValidation="Strict")
    if cluster.minor >= 25:
        assert reply.status == 400
        assert 'unknown field "spec.ipv4.whatever"' in reply.json["message"]
        assert api.get(f"{POOLS}/{name}").status == 404
    else:
        assert reply.status == 201


def test_defaults_are_filled_in(api: Api, name: str) -> None:
    spec = api.call("POST", POOLS, pool(name)).json["spec"]
    assert (spec["allowFirstIP"], spec["allowLastIP"]) == (False, False)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"ipv4": {"cidrs": ["10.0.0.0/16"], "maskSize": 33}}, "spec.ipv4.maskSize"),
        ({"ipv4": {"cidrs": ["10.0.0.0/16"], "maskSize": 0}}, "spec.ipv4.maskSize"),
        ({"ipv4": {"cidrs": ["10.0.0.0/16"], "maskSize": "24"}}, "spec.ipv4.maskSize"),
        ({"ipv4": {"cidrs": ["10.0.0.0/16"]}}, "spec.ipv4.maskSize"),
        ({"ipv4": {"cidrs": [], "maskSize": 24}}, "spec.ipv4.cidrs"),
        (
            {"ipv4": {"cidrs": [f"10.{n}.0.0/16" for n in range(33)], "maskSize": 24}},
            "spec.ipv4.cidrs",
        ),
        ({"ipv4": {"cidrs": ["10.0.0.0"], "maskSize": 24}}, "spec.ipv4.cidrs"),
        ({"ipv4": {"cidrs": "10.0.0.0/16", "maskSize": 24}}, "spec.ipv4.cidrs"),
        ({"allowFirstIP": "yes"}, "spec.allowFirstIP"),
        (
            {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            "spec.podSelector.matchExpressions.operator",
        ),
        ({"podSelector": {"matchLabels": {"a": "-"}}}, "spec.podSelector.matchLabels.a"),
    ],
)
def test_an_invalid_object_is_422_with_the_field(
    api: Api, name: str, spec: dict[str, Any], field: str
) -> None:
    refused = api.call("POST", POOLS, pool(name) | {"spec": spec})
    assert (refused.status, refused.reason) == (422, "Invalid")
    # Newer servers name the item of a list, "cidrs[0]"; 1.20 does not.
    without_index = {cause.partition("[")[0] for cause in refused.causes}
    assert without_index & {field, "spec.podSelector.matchExpressions"} == {
        field if "matchExpressions" not in field else without_index.pop()
    }


def test_a_missing_spec_is_required(api: Api, name: str) -> None:
    item = pool(name)
    del item["spec"]
    assert api.call("POST", POOLS, item).causes == {"spec": "FieldValueRequired"}


def test_two_items_of_one_key_are_refused(api: Api, name: str) -> None:
    refused = api.call("POST", POOLS, pool(name, pool=_RANGES * 2))
    assert refused.causes == {"spec.ipv4.pool[1]": "FieldValueDuplicate"}


def test_one_object_in_two_versions(api: Api, name: str) -> None:
    new = api.call("POST", POOLS, pool(name, pool=_RANGES)).json
    old = api.get(f"{OLD_POOLS}/{name}").json
    assert old["apiVersion"] == "cilium.io/v2alpha1"
    assert "pool" not in old["spec"]["ipv4"]
    assert old["spec"]["ipv4"]["cidrs"] == new["spec"]["ipv4"]["cidrs"]
    for field in ("uid", "resourceVersion", "generation"):
        assert old["metadata"][field] == new["metadata"][field]
    listed = api.get(OLD_POOLS, fieldSelector=f"metadata.name={name}").json
    assert listed["apiVersion"] == "cilium.io/v2alpha1"
    assert listed["items"] == [old]


def test_a_write_through_the_old_version_loses_what_it_does_not_know(api: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name, pool=_RANGES))
    patch = {"metadata": {"labels": {"a": "b"}}}
    assert api.call("PATCH", f"{OLD_POOLS}/{name}", patch, content_type=MERGE).status == 200
    assert "pool" not in api.get(f"{POOLS}/{name}").json["spec"]["ipv4"]


def test_an_old_object_read_as_new(api: Api, name: str) -> None:
    created = api.call("POST", OLD_POOLS, _old(name, pool=_RANGES)).json
    assert "pool" not in created["spec"]["ipv4"]
    assert api.get(f"{POOLS}/{name}").json["spec"] == created["spec"]


def test_two_shapes_of_one_field(api: Api, cluster: Cluster, name: str) -> None:
    """Objects in `cidrs` of the proposal, read through the version that has strings there."""
    definition = _proposal(name)
    cluster.put(definition)
    if (served := getattr(cluster, "await_served", None)) is not None:
        served(definition)
    group = definition["spec"]["group"]
    new, old = (f"/apis/{group}/{version}/pools" for version in ("v2", "v1"))
    item = {
        "apiVersion": f"{group}/v2",
        "kind": "Pool",
        "metadata": {"name": name},
        "spec": {"cidrs": [{"cidr": "10.0.0.0/16"}]},
    }
    assert api.call("POST", new, item).status == 201
    assert api.get(f"{old}/{name}").json["spec"] == {"cidrs": [{}]}
    strings = item | {
        "apiVersion": f"{group}/v1",
        "metadata": {"name": f"{name}-b"},
        "spec": {"cidrs": ["10.0.0.0/16"]},
    }
    assert api.call("POST", old, strings).status == 201
    assert api.get(f"{new}/{name}-b").json["spec"] == {"cidrs": ["10.0.0.0/16"]}


def _proposal(name: str) -> dict[str, Any]:
    items: dict[str, dict[str, Any]] = {
        "v2": {"type": "object", "properties": {"cidr": {"type": "string"}}},
        "v1": {"type": "string"},
    }
    group = f"{name}.example.org"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"pools.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {
                "kind": "Pool",
                "plural": "pools",
                "singular": "pool",
                "listKind": "PoolList",
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == "v2",
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {"cidrs": {"type": "array", "items": item}},
                                }
                            },
                        }
                    },
                }
                for version, item in items.items()
            ],
        },
    }
