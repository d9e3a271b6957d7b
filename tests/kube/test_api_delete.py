"""Delete: preconditions, finalizers, names that come back."""

from __future__ import annotations

from tests.kube.api import JSON_PATCH, MERGE, POOLS, Api, pool


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
