"""Clusters are connected, changed, tested and disconnected through REST; nothing secret comes back."""

import json
from typing import Any

import pytest
from django.test import Client

from pools.clusters.reconcile import connecting
from pools.models import Connection, Now
from pools.platform.rest import token_scopes
from tests.edges import api as apis
from tests.kube.fake import FakeCluster

PLACE = "clusters/prod/connection/"


def test_a_cluster_is_connected_and_shown(api: apis.Api, fake: FakeCluster) -> None:
    apis.refused(api("GET", PLACE), 404, "not_found")
    answer = api(
        "PUT",
        PLACE,
        {"kubeconfig": fake.kubeconfig(), "mode": "managed", "managed_resources": ["pools"]},
    )
    assert answer.status_code == 201, answer.content
    document = answer.json()
    assert (document["state"], document["mode"], document["managed_resources"]) == (
        "never-synced",
        "managed",
        ["pools"],
    )
    assert (document["server"], document["identity"]) == (fake.url, fake.kube_system_uid)
    assert document["warnings"] == []
    result = api("GET", PLACE).json()
    assert result | {"warnings": []} == document
    assert api("GET", f"clusters/{document['cluster_id']}/connection/").json() == result


def test_the_state_of_a_pass_is_told(api: apis.Api, fake: FakeCluster) -> None:
    api("PUT", PLACE, {"kubeconfig": fake.kubeconfig()})
    Connection.objects.update(
        succeeded_at=Now(), error_code="cluster_unreachable", error="no route"
    )
    document = api("GET", PLACE).json()
    assert document["state"] == "unreachable"
    assert document["error"] == {"code": "cluster_unreachable", "message": "no route"}
    assert document["message"].endswith("Last error: no route")


def test_credentials_are_replaced_and_what_is_not_said_stays(
    api: apis.Api, fake: FakeCluster, other: FakeCluster
) -> None:
    first = {"kubeconfig": fake.kubeconfig(), "mode": "managed", "managed_resources": ["pools"]}
    api("PUT", PLACE, first)
    token = fake.user("second", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    again = api("PUT", PLACE, {"kubeconfig": fake.kubeconfig(token)})
    assert (again.status_code, again.json()["managed_resources"]) == (200, ["pools"])
    assert connecting.cluster_access(Connection.objects.get()).token == token
    refused = api("PUT", PLACE, {"kubeconfig": other.kubeconfig()})
    apis.refused(refused, 409, "identity_changed")
    api.cluster("second")
    twice = api("PUT", "clusters/second/connection/", {"kubeconfig": fake.kubeconfig()})
    assert "as prod" in apis.refused(twice, 409, "same_cluster")["detail"]
    text = token_scopes.create_token(api.user, subject=token_scopes.parse_subject("second"))
    api.client = Client(headers={"Authorization": f"Token {text}"})
    twice = api("PUT", "clusters/second/connection/", {"kubeconfig": fake.kubeconfig()})
    assert "prod" not in json.dumps(apis.refused(twice, 409, "same_cluster"))
    tested = api("POST", "clusters/second/connection/test/", {"kubeconfig": fake.kubeconfig()})
    assert "prod" not in tested.text
    # The stored connection, of which a sync run found it.
    body = {"kubeconfig": fake.kubeconfig(), "offline": True}
    assert api("PUT", "clusters/second/connection/", body).status_code == 201
    tested = api("POST", "clusters/second/connection/test/", {})
    assert (tested.json()["code"], "prod" in tested.text) == ("same_cluster", False)


def test_terms_are_changed(api: apis.Api, fake: FakeCluster) -> None:
    api("PUT", PLACE, {"kubeconfig": fake.kubeconfig()})
    for body, expected in (
        (
            {"mode": "managed", "managed_resources": ["pod-cidrs"]},
            ("managed", ["pod-cidrs"], False),
        ),
        ({"paused": True}, ("managed", ["pod-cidrs"], True)),
        ({"paused": False, "managed_resources": []}, ("managed", [], False)),
        ({"managed_resources": ["conversion"]}, ("managed", ["conversion"], False)),
        ({"mode": "observed"}, ("observed", [], False)),
    ):
        document = api("PATCH", PLACE, body).json()
        assert (document["mode"], document["managed_resources"], document["paused"]) == expected, (
            body
        )


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no source": ({"mode": "observed"}, "kubeconfig", "required"),
    "no text": ({"kubeconfig": {"a": 1}}, "kubeconfig", "wrong_type"),
    "no kubeconfig": ({"kubeconfig": "a: 1"}, "kubeconfig.contexts", "context_missing"),
    "two sources": ({"kubeconfig": "", "in_cluster": True}, "kubeconfig", "conflicting_fields"),
    "no pod": ({"in_cluster": True}, "", "not_in_cluster"),
    "a typo": ({"kubeconfig": "", "kube": 1}, "kube", "unknown_field"),
}


@pytest.mark.parametrize(("body", "field", "code"), BAD.values(), ids=BAD)
def test_bad_input_is_beside_its_field(
    api: apis.Api, body: dict[str, Any], field: str, code: str
) -> None:
    answer = api("PUT", PLACE, body)
    assert answer.status_code == 400
    assert code in apis.fields(answer.json()).values()
    assert field in apis.fields(answer.json())
    assert not Connection.objects.exists()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"mode": "managed", "managed_resources": ["pods"]}, "invalid_choice"),
        ({"mode": "managed", "managed_resources": [1]}, "wrong_type"),
        ({"managed_resources": ["pools"]}, "managed_resources_of_observed"),
    ],
    ids=str,
)
def test_bad_terms(api: apis.Api, fake: FakeCluster, body: dict[str, Any], code: str) -> None:
    api("PUT", PLACE, {"kubeconfig": fake.kubeconfig(), "offline": True})
    apis.refused(api("PATCH", PLACE, body), 400, code)


def test_a_cluster_that_refuses_is_told_as_such(api: apis.Api, fake: FakeCluster) -> None:
    text = fake.kubeconfig()
    fake.revoke(fake.token)
    apis.refused(api("PUT", PLACE, {"kubeconfig": text}), 502, "cluster_unauthorized")
    assert not Connection.objects.exists()


@pytest.mark.usefixtures("handlers")
def test_the_test_of_a_connection(api: apis.Api, fake: FakeCluster) -> None:
    before = api("POST", "clusters/prod/connection/test/", {"kubeconfig": fake.kubeconfig()})
    assert before.json()["succeeded"], before.content
    assert not Connection.objects.exists()
    apis.refused(api("POST", "clusters/prod/connection/test/", {}), 404, "not_found")
    api("PUT", PLACE, {"kubeconfig": fake.kubeconfig()})
    fake.revoke(fake.token)
    after = api("POST", "clusters/prod/connection/test/", {}).json()
    assert (after["succeeded"], after["code"]) == (False, "cluster_unauthorized")


def test_disconnected(api: apis.Api, fake: FakeCluster) -> None:
    api("PUT", PLACE, {"kubeconfig": fake.kubeconfig()})
    assert api("DELETE", PLACE).status_code == 204
    apis.refused(api("GET", PLACE), 404, "not_found")
    assert api("GET", "clusters/prod/").status_code == 200
    types = [row["type"] for row in api("GET", "events/").json()["results"]]
    assert types[:2] == ["connection.deleted", "connection.created"]


def test_reconciled_at_once(api: apis.Api, fake: FakeCluster) -> None:
    place = "clusters/prod/reconcile/"
    apis.refused(api("POST", place), 404, "not_found")
    api("PUT", PLACE, {"kubeconfig": fake.kubeconfig(), "offline": True})
    Connection.objects.update(due_at="2099-01-01T00:00:00Z")
    answer = api("POST", place)
    assert (answer.status_code, answer.json()["runs"]) == (202, [])
    assert answer.json()["due_at"] < "2099"
    api("PATCH", PLACE, {"paused": True})
    apis.refused(api("POST", place), 409, "connection_paused")
