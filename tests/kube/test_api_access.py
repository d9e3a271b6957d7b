"""Who may do what: tokens, certificates, RBAC, SelfSubjectAccessReview."""

import time
from collections.abc import Iterator

import pytest

from tests.kube.api import CLAIMS, MERGE, OLD_POOLS, POOLS, Api, Cluster, claim, pool

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


@pytest.fixture
def observer(cluster: Cluster, name: str) -> Iterator[Api]:
    connected = Api(cluster, token=cluster.user(name, _OBSERVER))
    # The server learns of a role a moment after it was written.
    until = time.monotonic() + 10
    while connected.get(POOLS).status != 200 and time.monotonic() < until:
        pass
    yield connected
    connected.close()


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


_RANGES = [{"cidr": "10.0.0.0/16", "reservedRanges": [{"start": "10.0.0.1", "end": "10.0.0.9"}]}]


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
