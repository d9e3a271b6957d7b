"""Pools as YAML: in every shape, in the shape of a cluster, and as Helm values."""

import pytest
import yaml

from tests.edges import api as apis
from tests.kube.fake import FakeCluster


def _pool(api: apis.Api, name: str, cidr: str, *ranges: str, **more: object) -> str:
    part = {"mask_size": 24, "cidrs": [{"cidr": cidr, "reserved_ranges": list(ranges)}]}
    body = {"cluster": "prod", "name": name, "category": "pod", "ipv4": part, **more}
    return f"pools/{api.create('pools/', body)['id']}/manifest/"


@pytest.mark.parametrize(
    ("shape", "version", "family"),
    [
        ("v2", "cilium.io/v2", {"cidrs": ["10.20.0.0/16"], "maskSize": 24, "pool": [{"cidr": "10.20.0.0/16", "reservedRanges": [{"start": "10.20.0.0", "end": "10.20.0.99"}]}]}),
        ("v2-proposal", "cilium.io/v2", {"cidrs": [{"cidr": "10.20.0.0/16", "reservedRange": "10.20.0.0-10.20.0.99"}], "maskSize": 24}),
    ],
)  # fmt: skip
def test_shapes(api: apis.Api, shape: str, version: str, family: object) -> None:
    place = _pool(api, "green", "10.20.0.0/16", "10.20.0.0-10.20.0.99")
    answer = api("GET", f"{place}?shape={shape}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/yaml")
    manifest = yaml.safe_load(answer.content)
    assert (manifest["apiVersion"], manifest["spec"]["ipv4"]) == (version, family)


@pytest.mark.parametrize("shape", ["v2alpha1", "helm"])
def test_a_shape_that_holds_no_ranges(api: apis.Api, shape: str) -> None:
    place = _pool(api, "green", "10.20.0.0/16", "10.20.0.0-10.20.0.99")
    apis.refused(api("GET", f"{place}?shape={shape}"), 400, "shape_cannot_hold_ranges")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("crd", "key"),
    [("cilium.io_ciliumpodippools.v2", "pool"), ("cilium.io_ciliumpodippools.v2-proposal", "")],
)
def test_the_shape_of_a_cluster(api: apis.Api, other: FakeCluster, settings: object, crd: str, key: str) -> None:  # fmt: skip
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True  # type: ignore[attr-defined]
    other.crds(crd)
    place = _pool(api, "green", "10.20.0.0/16", "10.20.0.0-10.20.0.99")
    apis.refused(api("GET", f"{place}?cluster=prod"), 404, "not_found")
    api("PUT", "clusters/prod/connection/", {"kubeconfig": other.kubeconfig()})
    family = yaml.safe_load(api("GET", f"{place}?cluster=prod").content)["spec"]["ipv4"]
    assert ("pool" in family) is bool(key)


def test_helm_values_of_a_cluster_are_taken_in_again(api: apis.Api) -> None:
    _pool(api, "default", "10.10.0.0/16")
    _pool(api, "other", "10.20.0.0/16")
    text = api("GET", "clusters/prod/manifest/?shape=helm").content
    pools = yaml.safe_load(text)["ipam"]["operator"]["autoCreateCiliumPodIPPools"]
    assert pools["default"] == {"ipv4": {"cidrs": ["10.10.0.0/16"], "maskSize": 24}}
    api.cluster("second")
    body = {"cluster": "second", "manifest": text.decode()}
    reports = api("POST", "pools/import/", body).json()["reports"]
    assert [(report["name"], report["result"]) for report in reports] == [
        ("default", "created"),
        ("other", "created"),
    ]


def test_the_documents_of_a_cluster(api: apis.Api) -> None:
    _pool(api, "default", "10.10.0.0/16", labels={"team": "a"})
    _pool(api, "other", "10.20.0.0/16")
    text = api("GET", "clusters/prod/manifest/").content
    assert [document["metadata"]["name"] for document in yaml.safe_load_all(text)] == [
        "default",
        "other",
    ]
    apis.refused(api("GET", "clusters/prod/manifest/?shape=helm"), 400, "helm_cannot_hold")


def test_what_is_no_manifest(api: apis.Api) -> None:
    vms = api.vm_pool("10.40.0.0/28")
    apis.refused(api("GET", f"pools/{vms}/manifest/"), 400, "unsupported_kind")
    place = _pool(api, "default", "10.10.0.0/16")
    apis.refused(api("GET", f"{place}?shape=v3"), 400, "invalid_choice")
    apis.refused(api("GET", f"{place}?shape=v2&cluster=prod"), 400, "conflicting_fields")
    apis.refused(api("GET", "pools/0/manifest/"), 404, "not_found")
