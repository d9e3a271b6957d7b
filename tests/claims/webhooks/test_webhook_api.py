"""network-settings/ and decisions/ over REST."""

from typing import Any

import pytest

from claims.models import Decision, Membership, NetworkSettings
from tests.claims.webhooks.doors import Door
from tests.core.vm_world import pod
from tests.edges.api import Api

SETTINGS = "clusters/prod/network-settings/"


def test_settings_that_nobody_chose(door: Door) -> None:
    assert Api("viewer")("GET", SETTINGS).json() == {
        "cluster": "prod",
        "annotation": "default-network",
        "default_nad_namespace": "ovn-kubernetes",
        "default_nad_name": "default",
        "webhooks": [
            "/webhooks/v1/prod/validate-ciliumpodippools",
            "/webhooks/v1/prod/mutate-pods",
            "/webhooks/v1/prod/mutate-vms",
            "/webhooks/v1/prod/validate-ippools",
        ],
    }
    assert not NetworkSettings.objects.exists()


def test_they_change_one_by_one(door: Door) -> None:
    api = Api("administrator")
    document = api("PATCH", SETTINGS, {"annotation": "addresses"}).json()
    assert (document["annotation"], document["default_nad_name"]) == ("addresses", "default")
    document = api("PATCH", SETTINGS, {"default_nad_namespace": "openshift-ovn-kubernetes"}).json()
    assert document == api("GET", SETTINGS).json()
    assert document["annotation"] == "addresses"
    assert document["default_nad_namespace"] == "openshift-ovn-kubernetes"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"annotation": "both"}, "invalid_choice"),
        ({"annotation": None}, "wrong_type"),
        ({"default_nad_namespace": "a.b"}, "k8s_name"),
        ({"default_nad_name": "A"}, "k8s_name"),
        ({"default_nad_name": 5}, "wrong_type"),
        ({"cluster": "other"}, "read_only_field"),
        ({"network": "n"}, "unknown_field"),
        ({}, "object_expected"),
    ],
)
def test_what_is_refused(door: Door, body: Any, code: str) -> None:
    answer = Api("administrator")("PATCH", SETTINGS, body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert not NetworkSettings.objects.exists()


def test_who_may(door: Door) -> None:
    owner = Api("vm-owner")
    Membership.objects.create(user=owner.user, cluster=door.cluster, namespaces=["blue"])
    for path in (SETTINGS, "decisions/"):
        assert owner("GET", path).status_code == 403
    for role in ("viewer", "operator"):
        assert Api(role)("PATCH", SETTINGS, {"annotation": "addresses"}).status_code == 403
    assert Api("viewer")("GET", "clusters/nowhere/network-settings/").status_code == 404


def test_decisions(door: Door) -> None:
    door.ask(pod())
    door.ask(pod("other"))
    api = Api("viewer")
    newest, oldest = api("GET", "decisions/").json()["results"]
    assert (newest["vm"], newest["code"], newest["patch"]) == ("other", "no_entry", None)
    assert {**oldest, "id": 0, "at": "", "milliseconds": 0, "message": "", "patch": []} == {
        "id": 0, "cluster": "prod", "at": "", "path": "mutate-pods", "operation": "CREATE",
        "namespace": "blue", "name": "virt-launcher-vm-server-00000", "vm": "vm-server",
        "network": "cluster_udn_blue", "code": "patched", "message": "", "allowed": True,
        "patch": [], "milliseconds": 0,
    }  # fmt: skip
    assert oldest["patch"][0]["path"].endswith("v1.multus-cni.io~1default-network")


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("cluster=prod", 2),
        ("namespace=blue&vm=other", 1),
        ("code=patched", 1),
        ("network=cluster_udn_blue", 1),
        ("path=mutate-vms", 0),
        ("namespace=green", 0),
    ],
)
def test_filters_of_decisions(door: Door, query: str, count: int) -> None:
    door.ask(pod())
    door.ask(pod("other"))
    assert len(Api("viewer")("GET", f"decisions/?{query}").json()["results"]) == count


def test_pages_of_decisions(door: Door) -> None:
    for _ in range(3):
        door.ask(pod())
    api = Api("viewer")
    first = api("GET", "decisions/?limit=2").json()
    observed = first["results"] + api.client.get(first["next"]).json()["results"]
    ids = [item["id"] for item in observed]
    assert ids == sorted(Decision.objects.values_list("pk", flat=True), reverse=True)


def test_what_a_filter_refuses(door: Door) -> None:
    answer = Api("viewer")("GET", "decisions/?cluster=nowhere")
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_cluster")
    assert Api("viewer")("GET", "decisions/?nonsense=1").status_code == 400
