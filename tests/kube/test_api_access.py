"""Who may do what: tokens, certificates, RBAC, SelfSubjectAccessReview."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.kube.api import CLAIMS, POOLS, Api, Cluster, claim, pool

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
