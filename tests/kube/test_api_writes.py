"""Create, replace and patch; resource versions and generations."""

from __future__ import annotations

import pytest

from tests.kube.api import CLAIMS, JSON_PATCH, MERGE, POOLS, Api, claim, pool


def test_create_fills_in_what_the_server_owns(api: Api, name: str) -> None:
    created = api.call("POST", POOLS, pool(name))
    metadata = created.json["metadata"]
    assert (created.status, metadata["generation"]) == (201, 1)
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["creationTimestamp"].endswith("Z")


def test_a_second_create_is_already_exists(api: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name))
    again = api.call("POST", POOLS, pool(name))
    assert (again.status, again.reason) == (409, "AlreadyExists")


def test_a_generated_name(api: Api, name: str) -> None:
    expected = pool("")
    expected["metadata"] = {"generateName": f"{name}-"}
    created = api.call("POST", POOLS, expected).json["metadata"]["name"]
    assert created.startswith(f"{name}-")
    assert len(created) == len(name) + 6


def test_a_name_that_is_none(api: Api) -> None:
    refused = api.call("POST", POOLS, pool("Not_A_Name"))
    assert (refused.status, list(refused.causes)) == (422, ["metadata.name"])


def test_a_namespace_that_is_not_there(api: Api, name: str) -> None:
    refused = api.call("POST", CLAIMS.replace("default", "nowhere"), claim(name))
    assert (refused.status, refused.json["details"]["kind"]) == (404, "namespaces")


def test_a_put_with_a_stale_version_is_a_conflict(api: Api, name: str) -> None:
    old = api.call("POST", POOLS, pool(name)).json
    new = api.call("PUT", f"{POOLS}/{name}", old | {"spec": pool(name, mask=25)["spec"]})
    assert (new.status, new.json["metadata"]["generation"]) == (200, 2)
    stale = api.call("PUT", f"{POOLS}/{name}", old)
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert "causes" not in stale.json["details"]


def test_a_put_without_a_version_is_invalid_for_custom_objects(api: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name))
    refused = api.call("PUT", f"{POOLS}/{name}", pool(name))
    assert (refused.status, list(refused.causes)) == (422, ["metadata.resourceVersion"])


def test_a_put_of_another_uid_is_a_conflict(api: Api, name: str) -> None:
    old = api.call("POST", POOLS, pool(name)).json
    old["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    assert api.call("PUT", f"{POOLS}/{name}", old).status == 409


def test_a_put_of_an_absent_object(api: Api, name: str) -> None:
    assert api.call("PUT", f"{POOLS}/{name}", pool(name)).status == 404


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


def test_a_merge_patch_removes_with_null(api: Api, name: str) -> None:
    item = pool(name)
    item["metadata"]["annotations"] = {"a": "1", "b": "2"}
    api.call("POST", POOLS, item)
    patch = {"metadata": {"annotations": {"a": None}}}
    patched = api.call("PATCH", f"{POOLS}/{name}", patch, content_type=MERGE).json
    assert patched["metadata"]["annotations"] == {"b": "2"}


def test_a_merge_patch_may_name_the_version(api: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name))
    patch = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
    assert api.call("PATCH", f"{POOLS}/{name}", patch, content_type=MERGE).status == 409


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


def test_custom_objects_take_no_strategic_merge_patch(api: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name))
    how = "application/strategic-merge-patch+json"
    assert api.call("PATCH", f"{POOLS}/{name}", {}, content_type=how).status == 415


@pytest.mark.parametrize("body", [b"{]", b"[]", b""])
def test_a_body_that_is_no_object(api: Api, body: bytes) -> None:
    assert api.call("POST", POOLS, body).status == 400


def test_a_body_of_another_kind(api: Api, name: str) -> None:
    assert api.call("POST", POOLS, claim(name)).status == 400


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


def test_it_answers_success_with_the_uid(api: Api, name: str) -> None:
    uid = api.call("POST", POOLS, pool(name)).json["metadata"]["uid"]
    done = api.call("DELETE", f"{POOLS}/{name}").json
    assert (done["kind"], done["status"], done["details"]["uid"]) == ("Status", "Success", uid)
    assert api.call("DELETE", f"{POOLS}/{name}").status == 404


def test_a_name_that_comes_back_is_another_object(api: Api, name: str) -> None:
    first = api.call("POST", POOLS, pool(name)).json["metadata"]
    api.call("DELETE", f"{POOLS}/{name}")
    second = api.call("POST", POOLS, pool(name)).json["metadata"]
    assert first["uid"] != second["uid"]
    refused = api.call("DELETE", f"{POOLS}/{name}", _options(uid=first["uid"]))
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert api.call("DELETE", f"{POOLS}/{name}", _options(uid=second["uid"])).status == 200


def test_a_stale_version_is_refused(api: Api, name: str) -> None:
    stored = api.call("POST", POOLS, pool(name))
    api.call("PATCH", f"{POOLS}/{name}", {"metadata": {"labels": {"a": ""}}}, content_type=MERGE)
    stale = _options(resourceVersion=stored.version)
    assert api.call("DELETE", f"{POOLS}/{name}", stale).status == 409


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
