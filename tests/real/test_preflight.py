"""Preflight reads Cilium's settings and what BGP announces from the cluster itself."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.edges import api as apis
from tests.kube.real import RealCluster

pytestmark = pytest.mark.django_db
CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cilium-config", "namespace": "kube-system"},
    "data": {"ipam": "multi-pool", "routing-mode": "native", "enable-bgp-control-plane": "true"},
}
ADVERTISEMENT = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumBGPAdvertisement",
    "metadata": {"name": "pods"},
    "spec": {
        "advertisements": [
            {
                "advertisementType": "CiliumPodIPPool",
                "selector": {"matchLabels": {"io.cilium.podippool.name": "default"}},
            }
        ]
    },
}
POLICY = {
    "apiVersion": "cilium.io/v2alpha1",
    "kind": "CiliumBGPPeeringPolicy",
    "metadata": {"name": "older"},
    "spec": {"virtualRouters": [{"localASN": 65000, "podIPPoolSelector": {}}]},
}


@pytest.fixture
def api(kube: RealCluster) -> apis.Api:
    api = apis.Api()
    api.cluster()
    for name, cidr in (("default", "10.10.0.0/16"), ("green", "10.20.0.0/16")):
        part = {"mask_size": 24, "cidrs": [cidr]}
        api.create("pools/", {"cluster": "prod", "name": name, "category": "pod", "ipv4": part})
    return api


def _connect(api: apis.Api, kube: RealCluster, token: str | None = None) -> None:
    body = {"kubeconfig": kube.kubeconfig(token)}
    assert api("PUT", "clusters/prod/connection/", body).status_code == 201


def _routes(api: apis.Api) -> dict[str, Any]:
    findings = api("GET", "clusters/prod/preflight/").json()["findings"]
    return next(dict(finding) for finding in findings if finding["rule"] == "pod-cidr-routes")


@pytest.mark.parametrize(
    ("definitions", "manifests", "result", "details"),
    [
        ([], [], "warning", "not announced: default, green"),
        (["cilium.io_ciliumbgpadvertisements"], [ADVERTISEMENT], "warning", "announced: green"),
        (["cilium.io_ciliumbgppeeringpolicies"], [POLICY], "ok", "all pools are announced"),
        (
            ["cilium.io_ciliumbgpadvertisements", "cilium.io_ciliumbgppeeringpolicies"],
            [ADVERTISEMENT, POLICY],
            "ok",
            "all pools are announced",
        ),
    ],
    ids=["not-served", "advertisement", "policy", "both"],
)
def test_what_bgp_announces(
    kube: RealCluster,
    kubectl: Callable[..., str],
    api: apis.Api,
    definitions: list[str],
    manifests: list[dict[str, Any]],
    result: str,
    details: str,
) -> None:
    kube.anew(*definitions)
    for manifest in (CONFIG, *manifests):
        kubectl("apply", "-f", "-", manifest=manifest)
    _connect(api, kube)
    routes = _routes(api)
    assert routes["result"] == result
    assert routes["found"].endswith(details)


def test_credentials_that_may_not_list_advertisements(
    kube: RealCluster, kubectl: Callable[..., str], api: apis.Api
) -> None:
    kube.anew("cilium.io_ciliumbgpadvertisements")
    for manifest in (CONFIG, ADVERTISEMENT):
        kubectl("apply", "-f", "-", manifest=manifest)
    rules = [{"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["get"]}]
    _connect(api, kube, kube.user("preflight", rules))
    routes = _routes(api)
    assert routes["result"] == "unknown"
    assert "allow listing ciliumbgpadvertisements.cilium.io" in routes["advice"]
