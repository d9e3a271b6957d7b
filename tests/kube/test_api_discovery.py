"""What a server says of itself."""

from __future__ import annotations

import time

import pytest

from tests.kube.api import Api, Cluster


def test_the_version(api: Api) -> None:
    assert api.get("/version").json["gitVersion"].startswith("v")


def test_the_core_is_v1(api: Api) -> None:
    assert api.get("/api").json["versions"] == ["v1"]


def test_groups_prefer_stable_versions(api: Api) -> None:
    groups = {group["name"]: group for group in api.get("/apis").json["groups"]}
    cilium = groups["cilium.io"]
    assert [version["version"] for version in cilium["versions"]] == ["v2", "v2alpha1"]
    assert cilium["preferredVersion"] == {"groupVersion": "cilium.io/v2", "version": "v2"}
    alone = api.get("/apis/cilium.io").json
    assert (alone["kind"], alone["name"], alone["versions"]) == (
        "APIGroup",
        "cilium.io",
        cilium["versions"],
    )


def test_resources_of_a_version(api: Api) -> None:
    listed = api.get("/apis/cilium.io/v2").json
    assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", "cilium.io/v2")
    result = {resource["name"]: resource for resource in listed["resources"]}
    assert set(result) == {"ciliumpodippools", "ciliumnodes", "ciliumnodes/status"}
    pools = result["ciliumpodippools"]
    assert (pools["kind"], pools["namespaced"]) == ("CiliumPodIPPool", False)
    assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= set(pools["verbs"])
    assert set(result["ciliumnodes/status"]["verbs"]) == {"get", "patch", "update"}


def test_a_version_has_only_its_own(api: Api) -> None:
    listed = api.get("/apis/cilium.io/v2alpha1").json["resources"]
    assert [item["name"] for item in listed] == ["ciliumpodippools"]


def test_core_kinds_that_this_project_reads(api: Api) -> None:
    result = {
        resource["name"]: resource["namespaced"]
        for resource in api.get("/api/v1").json["resources"]
    }
    expected = {"namespaces": False, "nodes": False, "pods": True, "configmaps": True}
    assert expected.items() <= result.items()


@pytest.mark.parametrize("path", ["/apis/nothing.io", "/apis/nothing.io/v1", "/apis/cilium.io/v9"])
def test_an_absent_group(api: Api, path: str) -> None:
    assert api.get(path).status == 404


def test_the_definition_itself_holds_the_schema(api: Api) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    result = api.get(f"{path}/ciliumpodippools.cilium.io").json
    schemas = {
        version["name"]: version["schema"]["openAPIV3Schema"]
        for version in result["spec"]["versions"]
    }
    assert "pool" in schemas["v2"]["properties"]["spec"]["properties"]["ipv4"]["properties"]
    established = {
        condition["type"]: condition["status"] for condition in result["status"]["conditions"]
    }
    assert established["Established"] == "True"


def test_openapi_v3_since_1_24(api: Api, cluster: Cluster) -> None:
    reply = api.get("/openapi/v3/apis/cilium.io/v2")
    if cluster.minor < 24:
        assert reply.status == 404
        return
    schemas = reply.json["components"]["schemas"]
    assert "io.cilium.v2.CiliumPodIPPool" in schemas
    assert "apis/cilium.io/v2" in api.get("/openapi/v3").json["paths"]


def test_openapi_v2(api: Api) -> None:
    """Definitions come into it a moment after they are served."""
    until = time.monotonic() + 20
    name = "io.cilium.v2.CiliumPodIPPool"
    while name not in (definitions := api.get("/openapi/v2").json["definitions"]):
        assert time.monotonic() < until
    assert definitions[name]["x-kubernetes-group-version-kind"] == [
        {"group": "cilium.io", "version": "v2", "kind": "CiliumPodIPPool"}
    ]


def test_the_identity_of_the_cluster(api: Api, cluster: Cluster) -> None:
    result = api.get("/api/v1/namespaces/kube-system").json
    assert result["metadata"]["uid"] == cluster.kube_system_uid


def test_a_definition_may_come_and_go(api: Api, cluster: Cluster) -> None:
    cluster.crds("k8s.cni.cncf.io_network-attachment-definitions")
    path = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
    assert api.get(path).json["items"] == []
    cluster.remove("customresourcedefinitions", "network-attachment-definitions.k8s.cni.cncf.io")
    until = time.monotonic() + 20
    while api.get(path).status != 404:
        assert time.monotonic() < until
    assert api.get(path).content == b"404 page not found\n"
