"""Who may do what: tokens, certificates, RBAC, SelfSubjectAccessReview."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.kube.api import CLAIMS, MERGE, OLD_POOLS, POOLS, Api, Cluster, claim, pool

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_OBSERVER = [
    {"apiGroups": ["cilium.io"], "resources": ["ciliumpodippools"], "verbs": ["get", "list"]},
    {
        "apiGroups": ["k8s.cni.cncf.io"],
        "resources": ["ipamclaims/status"],
        "verbs": ["patch", "update"],
    },
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["cilium-config"],
        "verbs": ["get"],
    },
]


def _may(api: Api, **attributes: str) -> bool:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    reply = api.call("POST", _REVIEWS, body)
    assert reply.status == 201, reply.content
    return bool(reply.json["status"]["allowed"])


@pytest.fixture
def observer(cluster: Cluster, name: str) -> Iterator[Api]:
    connected = Api(cluster, token=cluster.user(name, _OBSERVER))
    # The server learns of a role a moment after it was written.
    until = time.monotonic() + 10
    while connected.get(POOLS).status != 200 and time.monotonic() < until:
        pass
    yield connected
    connected.close()


def test_a_token_that_nobody_has(cluster: Cluster) -> None:
    with closing(Api(cluster, token="nonsense")) as api:
        refused = api.get("/version")
        assert (refused.status, refused.reason) == (401, "Unauthorized")


def test_without_credentials_only_what_is_public(cluster: Cluster) -> None:
    with closing(Api(cluster, token="")) as api:
        assert api.get("/version").status == 200
        refused = api.get(POOLS)
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert 'User "system:anonymous" cannot list' in refused.json["message"]


def test_a_client_certificate_names_user_and_groups(cluster: Cluster) -> None:
    for groups, status in ((("system:masters",), 200), ((), 403)):
        pair = cluster.certificate("someone", groups)
        with closing(Api(cluster, token="", pair=pair)) as api:
            reply = api.get(POOLS)
        assert reply.status == status
    assert 'User "someone"' in reply.json["message"]


def test_rights_are_by_verb_and_resource(api: Api, observer: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name))
    assert observer.get(POOLS).status == 200
    assert observer.get(f"{POOLS}/{name}").status == 200
    refused = observer.apply(POOLS, pool(name, mask=25), "us")
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert refused.json["details"] == {
        "name": name,
        "group": "cilium.io",
        "kind": "ciliumpodippools",
    }
    assert "cannot patch resource" in refused.json["message"]
    assert observer.get("/apis/cilium.io/v2/ciliumnodes").status == 403


def test_discovery_is_for_everybody_with_a_name(observer: Api) -> None:
    for path in ("/version", "/api", "/apis", "/apis/cilium.io/v2"):
        assert observer.get(path).status == 200


def test_status_is_a_right_of_its_own(api: Api, observer: Api, name: str) -> None:
    stored = api.call("POST", CLAIMS, claim(name)).json
    changed = stored | {"status": {"ips": []}}
    assert observer.call("PUT", f"{CLAIMS}/{name}/status", changed).status == 200
    assert observer.call("PUT", f"{CLAIMS}/{name}", changed).status == 403


def test_a_right_to_one_name(observer: Api) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps"
    assert observer.get(f"{path}/cilium-config").status == 404
    assert observer.get(f"{path}/other").status == 403
    assert observer.get(path).status == 403


def test_one_may_ask(observer: Api, api: Api) -> None:
    pools = {"group": "cilium.io", "resource": "ciliumpodippools"}
    assert _may(observer, verb="list", **pools)
    assert not _may(observer, verb="patch", **pools)
    claims = {"group": "k8s.cni.cncf.io", "resource": "ipamclaims"}
    assert _may(observer, verb="patch", subresource="status", **claims)
    assert not _may(observer, verb="patch", **claims)
    assert _may(api, verb="delete", group="anything.io", resource="things")


def test_rights_that_shrink(cluster: Cluster, observer: Api, name: str) -> None:
    cluster.grant(name, [])
    until = time.monotonic() + 10
    while observer.get(POOLS).status != 403:
        assert time.monotonic() < until
    assert not _may(observer, verb="list", group="cilium.io", resource="ciliumpodippools")


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
