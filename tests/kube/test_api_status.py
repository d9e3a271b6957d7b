"""Status is an endpoint of its own."""

from __future__ import annotations

from tests.kube.api import CLAIMS, MERGE, POOLS, Api, claim, pool

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


def test_a_kind_without_that_endpoint(api: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name))
    absent = api.get(f"{POOLS}/{name}/status")
    assert (absent.status, absent.json["details"]["name"]) == (404, name)
