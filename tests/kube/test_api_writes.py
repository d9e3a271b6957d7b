"""What the fake API server reads and writes, and for whom."""

import time
from collections.abc import Iterator

import pytest

from tests.kube.api import CLAIMS, JSON_PATCH, MERGE, OLD_POOLS, POOLS, Api, Cluster, claim, pool


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


# --- Create, replace and patch; resource versions and generations ---------------------------------
def test_create_fills_in_what_the_server_owns(api: Api, name: str) -> None:
    created = api.call("POST", POOLS, pool(name))
    metadata = created.json["metadata"]
    assert (created.status, metadata["generation"]) == (201, 1)
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["creationTimestamp"].endswith("Z")


def test_a_put_without_a_version_is_invalid_for_custom_objects(api: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name))
    refused = api.call("PUT", f"{POOLS}/{name}", pool(name))
    assert (refused.status, list(refused.causes)) == (422, ["metadata.resourceVersion"])


def test_a_write_without_a_change_keeps_the_version(api: Api, name: str) -> None:
    stored = api.call("POST", POOLS, pool(name)).json
    path = f"{POOLS}/{name}"
    version = stored["metadata"]["resourceVersion"]
    assert api.call("PUT", path, stored).version == version
    assert api.call("PATCH", path, {}, content_type=MERGE).version == version


def test_a_label_changes_the_version_but_not_the_generation(api: Api, name: str) -> None:
    before = api.call("POST", POOLS, pool(name))
    labels = {"metadata": {"labels": {"a": "b"}}}
    after = api.call("PATCH", f"{POOLS}/{name}", labels, content_type=MERGE)
    assert after.version != before.version
    assert after.json["metadata"]["generation"] == 1


@pytest.mark.parametrize(("expected", "status"), [(24, 200), (25, 422)])
def test_a_json_patch_with_a_test(api: Api, name: str, expected: int, status: int) -> None:
    api.call("POST", POOLS, pool(name))
    operations = [
        {"op": "test", "path": "/spec/ipv4/maskSize", "value": expected},
        {"op": "replace", "path": "/spec/ipv4/maskSize", "value": 26},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/a~1b", "value": "1"},
    ]
    patched = api.call("PATCH", f"{POOLS}/{name}", operations, content_type=JSON_PATCH)
    assert patched.status == status
    if status == 200:
        assert patched.json["metadata"]["annotations"] == {"a/b": "1"}
        assert patched.json["spec"]["ipv4"]["maskSize"] == 26


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_dry_run_stores_nothing(api: Api, name: str, method: str) -> None:
    stored = api.call("POST", POOLS, pool(name)).json
    other = stored | {"spec": pool(name, mask=25)["spec"]}
    body = {"POST": pool(f"{name}-b"), "PUT": other, "DELETE": None}[method]
    path = POOLS if method == "POST" else f"{POOLS}/{name}"
    assert api.call(method, path, body, dryRun="All").status in {200, 201}
    assert api.get(f"{POOLS}/{name}").json == stored
    assert api.get(f"{POOLS}/{name}-b").status == 404


def _options(**preconditions: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def _kept(name: str, *finalizers: str) -> dict[str, object]:
    item = pool(name)
    item["metadata"]["finalizers"] = list(finalizers)
    return item


def test_a_finalizer_keeps_the_object_until_it_is_removed(api: Api, name: str) -> None:
    path = f"{POOLS}/{name}"
    api.call("POST", POOLS, _kept(name, "example.org/a", "example.org/b"))
    marked = api.call("DELETE", path)
    assert (marked.status, marked.json["kind"]) == (200, "CiliumPodIPPool")
    metadata = api.get(path).json["metadata"]
    assert metadata["deletionTimestamp"]
    assert metadata["generation"] == 2
    again = api.call("DELETE", path)
    assert (again.status, again.version) == (200, marked.version)
    ours = [
        {"op": "test", "path": "/metadata/finalizers/0", "value": "example.org/a"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    one_left = api.call("PATCH", path, ours, content_type=JSON_PATCH).json["metadata"]
    assert one_left["finalizers"] == ["example.org/b"]
    last = {"metadata": {"finalizers": None}}
    assert api.call("PATCH", path, last, content_type=MERGE).status == 200
    assert api.get(path).status == 404


def test_options_in_the_body_make_the_query_void(api: Api, name: str) -> None:
    """A dry run with preconditions is asked for in the body; beside a body, ?dryRun=All deletes."""
    stored = api.call("POST", POOLS, pool(name)).json
    options = _options(uid=stored["metadata"]["uid"])
    path = f"{POOLS}/{name}"
    assert api.call("DELETE", path, options | {"dryRun": ["All"]}).status == 200
    assert api.get(path).json == stored
    assert api.call("DELETE", path, options, dryRun="All").status == 200
    assert api.get(path).status == 404


def test_no_finalizer_is_added_while_it_is_deleted(api: Api, name: str) -> None:
    api.call("POST", POOLS, _kept(name, "example.org/a"))
    api.call("DELETE", f"{POOLS}/{name}")
    more = {"metadata": {"finalizers": ["example.org/a", "example.org/b"]}}
    refused = api.call("PATCH", f"{POOLS}/{name}", more, content_type=MERGE)
    assert (refused.status, list(refused.causes)) == (422, ["metadata.finalizers"])


def test_applied_finalizers_are_a_set_of_several_managers(api: Api, name: str) -> None:
    api.apply(POOLS, _kept(name, "example.org/ours"), "us")
    both = api.apply(POOLS, _kept(name, "example.org/theirs"), "them").json["metadata"]
    assert sorted(both["finalizers"]) == ["example.org/ours", "example.org/theirs"]
    metadata = api.apply(POOLS, pool(name), "us").json["metadata"]
    assert metadata["finalizers"] == ["example.org/theirs"]


# --- Who may do what: tokens, certificates, RBAC, SelfSubjectAccessReview -------------------------
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
