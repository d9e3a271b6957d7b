"""Get, list, pages, selectors, and what is answered when something is not there."""

import time

import pytest

from tests.kube.api import CLAIMS, MERGE, POOLS, Api, Cluster, claim, pool


def _names(listed: list[dict[str, object]]) -> list[str]:
    return [item["metadata"]["name"] for item in listed]  # type: ignore[index]


def _some(api: Api, name: str, count: int) -> list[str]:
    names = [f"{name}-{number}" for number in range(count)]
    for element in names:
        item = pool(element)
        item["metadata"]["labels"] = {"of": name}
        assert api.call("POST", POOLS, item).status == 201
    return names


def _pages(api: Api, path: str, **query: object) -> list[dict[str, object]]:
    result, token = [], ""
    while True:
        reply = api.get(path, **query, **({"continue_": token} if token else {}))
        assert reply.status == 200, reply.content
        result += reply.json["items"]
        token = reply.json["metadata"].get("continue", "")
        if not token:
            return result


def test_an_absent_object_has_a_status_with_its_name(api: Api) -> None:
    absent = api.get(f"{POOLS}/nothing")
    assert (absent.status, absent.reason) == (404, "NotFound")
    assert absent.json["details"] == {
        "name": "nothing",
        "group": "cilium.io",
        "kind": "ciliumpodippools",
    }


def test_pages_hold_everything_once_in_order(api: Api, name: str) -> None:
    names = _some(api, name, 7)
    paged = [item for item in _names(_pages(api, POOLS, limit=3)) if item.startswith(f"{name}-")]
    assert paged == names


def test_pages_show_one_moment(api: Api, name: str) -> None:
    names = _some(api, name, 4)
    first = api.get(POOLS, limit=1).json
    api.call("DELETE", f"{POOLS}/{names[-1]}")
    api.call("POST", POOLS, pool(f"{name}-zzz"))
    rest = api.get(POOLS, continue_=first["metadata"]["continue"]).json
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    observed = _names(rest["items"])
    assert names[-1] in observed
    assert f"{name}-zzz" not in observed


def test_a_continue_token_of_a_compacted_past_is_410_with_another(
    api: Api, cluster: Cluster, name: str
) -> None:
    names = _some(api, name, 3)
    first = api.get(POOLS, limit=1).json
    api.call("POST", POOLS, pool(f"{name}-new"))
    cluster.forget()
    gone = api.get(POOLS, limit=1, continue_=first["metadata"]["continue"])
    if gone.status == 200:  # a newer release still has that past in its cache
        assert f"{name}-new" not in _names(gone.json["items"])
        return
    assert (gone.status, gone.reason) == (410, "Expired")
    rest = api.get(POOLS, continue_=gone.json["metadata"]["continue"]).json
    assert {*names, f"{name}-new"} <= {*_names(first["items"]), *_names(rest["items"])}


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ("of={}", 2),
        ("of=={}", 2),
        ("of in (x, {})", 2),
        ("of={},missing", 0),
        ("of={},!missing", 2),
        ("of={},of notin ({})", 0),
        ("of={},of!=x", 2),
    ],
)
def test_label_selectors(api: Api, name: str, selector: str, count: int) -> None:
    _some(api, name, 2)
    text = selector.replace("{}", name)
    assert len(api.get(POOLS, labelSelector=text).json["items"]) == count
    assert len(_pages(api, POOLS, labelSelector=text, limit=1)) == count


def test_a_field_selector_of_the_name(api: Api, name: str) -> None:
    names = _some(api, name, 2)
    items = api.get(POOLS, fieldSelector=f"metadata.name={names[0]}").json["items"]
    assert _names(items) == names[:1]
    assert api.get(POOLS, fieldSelector="spec.x=1").status == 400


def test_one_namespace_or_all(api: Api, cluster: Cluster, name: str) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert api.call("POST", "/api/v1/namespaces", space).status == 201
    for namespace in (name, "default"):
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"map-{name}"}}
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        assert api.call("POST", path, item).status == 201
    assert len(api.get(f"/api/v1/namespaces/{name}/configmaps").json["items"]) == 1
    everywhere = api.get("/api/v1/configmaps", fieldSelector=f"metadata.name=map-{name}").json
    assert {item["metadata"]["namespace"] for item in everywhere["items"]} == {name, "default"}


def test_a_definition_may_come_and_go(api: Api, cluster: Cluster) -> None:
    cluster.crds("k8s.cni.cncf.io_network-attachment-definitions")
    path = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
    assert api.get(path).json["items"] == []
    cluster.remove("customresourcedefinitions", "network-attachment-definitions.k8s.cni.cncf.io")
    until = time.monotonic() + 20
    while api.get(path).status != 404:
        assert time.monotonic() < until
    assert api.get(path).content == b"404 page not found\n"


_STATUS = {"ips": ["10.0.0.1/24"]}


def test_the_main_endpoint_ignores_status(api: Api, name: str) -> None:
    created = api.call("POST", CLAIMS, claim(name, status=_STATUS)).json
    assert "status" not in created
    stored = api.call("PUT", f"{CLAIMS}/{name}", created | {"status": _STATUS}).json
    assert "status" not in stored
    assert stored["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_status_ignores_the_rest(api: Api, name: str) -> None:
    created = api.call("POST", CLAIMS, claim(name)).json
    metadata = created["metadata"] | {"labels": {"a": "b"}}
    body = created | {
        "metadata": metadata,
        "spec": {"network": "other", "interface": "net9"},
        "status": _STATUS,
    }
    stored = api.call("PUT", f"{CLAIMS}/{name}/status", body).json
    assert (stored["spec"], stored["status"]) == (created["spec"], _STATUS)
    assert "labels" not in stored["metadata"]
    assert stored["metadata"]["generation"] == 1


def test_spec_stays_beside_status(api: Api, name: str) -> None:
    api.call("POST", CLAIMS, claim(name))
    api.call("PATCH", f"{CLAIMS}/{name}/status", {"status": _STATUS}, content_type=MERGE)
    patch = {"spec": {"interface": "net2"}}
    stored = api.call("PATCH", f"{CLAIMS}/{name}", patch, content_type=MERGE).json
    assert (stored["status"], stored["metadata"]["generation"]) == (_STATUS, 2)
    assert api.get(f"{CLAIMS}/{name}/status").json == stored


def test_an_applied_status_is_taken_back_by_its_manager(api: Api, name: str) -> None:
    api.apply(CLAIMS, claim(name), "us")
    body = claim(name, status=_STATUS)
    del body["spec"]
    applied = api.apply(CLAIMS + "/status", body, "us-status").json
    assert (applied["status"], applied["spec"]) == (_STATUS, claim(name)["spec"])
    other = body | {"status": {"ips": []}}
    assert api.apply(CLAIMS + "/status", other, "them").status == 409
