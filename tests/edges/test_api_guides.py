"""What a cluster's pools mean for a pod or a node, preflight and overlaps, through REST."""

from typing import Any

import pytest

from tests.edges import api as apis
from tests.kube.fake import FakeCluster

CONFIG = {
    "ipam": "multi-pool",
    "routing-mode": "native",
    "ipam-default-ip-pool": "green",
    "ipam-multi-pool-pre-allocation": "green=4",
}


@pytest.fixture
def api() -> apis.Api:
    api = apis.Api()
    api.cluster()
    for name, cidr in (("default", "10.10.0.0/16"), ("green", "10.20.0.0/16")):
        part = {"mask_size": 24, "cidrs": [cidr]}
        api.create("pools/", {"cluster": "prod", "name": name, "category": "pod", "ipv4": part})
    return api


def _connect(
    api: apis.Api, fake: FakeCluster, config: dict[str, str] | None, **labels: str
) -> None:
    if config is not None:
        metadata = {"name": "cilium-config", "namespace": "kube-system", "labels": labels}
        fake.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": config})
    answer = api("PUT", "clusters/prod/connection/", {"kubeconfig": fake.kubeconfig()})
    assert answer.status_code == 201


def _pod(**pod: Any) -> dict[str, Any]:
    return {"pod": {"name": "web-0", **pod}, "namespace": {"name": "shop"}}


def _for_pod(api: apis.Api, body: Any) -> dict[str, Any]:
    answer = api("POST", "clusters/prod/pool-for-pod/", body)
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def test_the_pool_of_a_pod_and_why(api: apis.Api) -> None:
    explanation = _for_pod(api, _pod(annotations={"ipam.cilium.io/ip-pool": "green"}))
    (choice,) = explanation["choices"]
    assert (choice["family"], choice["pool"], choice["free"]) == (4, "green", "256")
    assert choice["pool_id"]
    assert choice["reasons"] == ["The pod has the annotation ipam.cilium.io/ip-pool=green."]
    assert (explanation["default_pool"], explanation["default_pool_assumed"]) == (
        "default",
        "the cluster is not connected",
    )
    assert "when the pod is created" in explanation["when"]


def test_the_default_pool_of_the_cluster(api: apis.Api, fake: FakeCluster) -> None:
    _connect(api, fake, CONFIG)
    explanation = _for_pod(api, _pod())
    assert explanation["choices"][0]["pool"] == "green"
    assert (explanation["default_pool"], explanation["default_pool_assumed"]) == ("green", "")


def test_node_demand(api: apis.Api) -> None:
    body = {"in_use": {"default": 12}, "pending": {"default": {"ipv4": 1}}, "pre_allocation": "default=8,green=4"}  # fmt: skip
    answer = api("POST", "clusters/prod/node-demand/", body)
    assert answer.status_code == 200, answer.content
    document = answer.json()
    assert document["pre_allocation"] == {"default": 8, "green": 4}
    assert [
        (request["pool"], request["needed"], request["blocks"]) for request in document["requests"]
    ] == [
        ("default", 24, ["10.10.0.0/24"]),
        ("green", 4, ["10.20.0.0/24"]),
    ]
    assert document["errors"] == []


def test_node_demand_takes_the_map_of_the_cluster(api: apis.Api, fake: FakeCluster) -> None:
    _connect(api, fake, CONFIG)
    document = api("POST", "clusters/prod/node-demand/", {"in_use": {"green": 3}}).json()
    assert (document["pre_allocation"], document["pre_allocation_assumed"]) == ({"green": 4}, "")
    assert document["requests"][0]["needed"] == 8


def test_preflight_without_a_connection_is_unknown_where_it_must_be(api: apis.Api) -> None:
    document = api("GET", "clusters/prod/preflight/").json()
    results = {finding["rule"]: finding["result"] for finding in document["findings"]}
    assert (results["ipam-mode"], results["overlapping-pools"]) == ("unknown", "ok")
    assert (document["result"], document["config_unknown"]) == (
        "unknown",
        "the cluster is not connected",
    )
    assert document["pools"] == 2


def test_preflight_of_a_connected_cluster(api: apis.Api, fake: FakeCluster) -> None:
    _connect(api, fake, {**CONFIG, "routing-mode": "tunnel"}, **{"helm.sh/chart": "cilium-1.17.3"})
    document = api("GET", "clusters/prod/preflight/").json()
    result = {finding["rule"]: finding for finding in document["findings"]}
    assert (document["release"], document["result"]) == ("1.17.3", "violated")
    assert result["ipam-mode"]["found"] == "ipam: multi-pool"
    assert result["native-routing"]["result"] == "violated"
    assert "routingMode=native" in result["native-routing"]["advice"]


def test_a_release_that_somebody_names(api: apis.Api, fake: FakeCluster) -> None:
    _connect(api, fake, {**CONFIG, "routing-mode": "tunnel"})
    document = api("GET", "clusters/prod/preflight/?release=1.18").json()
    results = {finding["rule"]: finding["result"] for finding in document["findings"]}
    assert (document["release"], results["native-routing"]) == ("1.18", "ok")


def test_credentials_that_may_not_read_the_configuration(api: apis.Api, fake: FakeCluster) -> None:
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]
    body = {"kubeconfig": fake.kubeconfig(fake.user("poor", rules))}
    assert api("PUT", "clusters/prod/connection/", body).status_code == 201
    document = api("GET", "clusters/prod/preflight/").json()
    assert "may not read ConfigMap" in document["config_unknown"]
    assert document["result"] == "unknown"


def test_a_cluster_without_a_configuration(api: apis.Api, fake: FakeCluster) -> None:
    _connect(api, fake, None)
    document = api("GET", "clusters/prod/preflight/").json()
    assert document["config_unknown"] == "the cluster has no ConfigMap kube-system/cilium-config"


def test_overlaps_in_pages(api: apis.Api) -> None:
    api.cluster("other")
    part = {"mask_size": 24, "cidrs": ["10.10.0.0/17", "10.20.0.0/15"]}
    api.create("pools/", {"cluster": "other", "name": "o", "category": "pod", "ipv4": part})
    first = api("GET", "overlaps/?limit=1").json()
    assert (first["count"], first["results"][0]["cidr"]) == (2, "10.10.0.0/16")
    second = api("GET", first["next"].partition("/api/v1/")[2]).json()
    (overlap,) = second["results"]
    assert (overlap["cidr"], overlap["kinds"], overlap["clusters"]) == (
        "10.20.0.0/15",
        ["clusters"],
        2,
    )
    assert [(member["cluster"], member["pool"]) for member in overlap["members"]] == [
        ("other", "o"),
        ("prod", "green"),
    ]
    assert second["next"] is None
    for query, count in (("cluster=other", 2), ("kind=overlay", 0), ("within=10.10.1.0/24", 1)):
        assert api("GET", f"overlaps/?{query}").json()["count"] == count, query
    apis.refused(api("GET", "overlaps/?kind=x"), 400, "invalid_choice")
