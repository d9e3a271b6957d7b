"""Create, replace and patch; resource versions and generations."""

import pytest

from tests.kube.api import JSON_PATCH, MERGE, POOLS, Api, pool


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
