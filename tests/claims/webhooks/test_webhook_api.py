"""Webhooks over REST and in the admin."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from claims.models import Decision, NetworkSettings
from claims.workloads import vm_lookup
from tests import factories, people
from tests.claims.webhooks.doors import Door
from tests.core.vm_world import pod
from tests.edges.api import Api, user

SETTINGS = "clusters/prod/network-settings/"


def test_settings_that_nobody_chose(door: Door) -> None:
    document = Api("viewer")("GET", SETTINGS).json()
    names = ("validate-ciliumpodippools", "mutate-pods", "mutate-vms", "validate-ippools")
    assert document.pop("webhooks") == [f"/webhooks/v1/prod/{name}" for name in names]
    nad = {"default_nad_namespace": "ovn-kubernetes", "default_nad_name": "default"}
    assert document == {"cluster": "prod", "annotation": "default-network"} | nad
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
    assert Api("viewer")("GET", "clusters/nowhere/network-settings/").status_code == 404


# --- The pages of decisions and of how VMs are told -----------------------------------------------
DECISIONS = "admin:claims_decision_changelist"
SETTINGS_PAGE = "admin:claims_networksettings_changelist"


def _browser(role: str) -> Client:
    return people.signed_in(user(role, is_staff=True))


def _text(client: Client, name: str, *arguments: Any, **query: str) -> str:
    answer = client.get(reverse(name, args=arguments), query)
    assert answer.status_code == 200, answer
    return answer.content.decode()


@pytest.mark.exhaustive
def test_the_list_and_a_decision(door: Door) -> None:
    viewer = _browser("viewer")
    assert "No webhook decisions." in _text(viewer, DECISIONS)
    door.ask(pod())
    door.ask(pod("other"))
    text = _text(viewer, DECISIONS)
    assert "blue/vm-server" in text
    assert "blue/other" in text
    assert "blue/other" not in _text(viewer, DECISIONS, outcome="written")
    assert "blue/vm-server" not in _text(viewer, DECISIONS, outcome="nothing", path="mutate-pods")
    assert "blue/other" not in _text(viewer, DECISIONS, q="patched")
    row = Decision.objects.get(code="patched")
    page = _text(viewer, "admin:claims_decision_change", row.pk)
    assert "gets 10.0.0.5/16" in page
    assert "v1.multus-cni.io~1default-network" in page


def test_settings(door: Door) -> None:
    administrator, of = _browser("administrator"), "admin:claims_networksettings_of"
    assert "ovn-kubernetes/default" in _text(administrator, SETTINGS_PAGE)
    assert "/webhooks/v1/prod/mutate-pods" in _text(administrator, of, door.cluster.pk)
    sent = {"annotation": "addresses", "default_nad_namespace": "openshift-ovn-kubernetes"}
    url = reverse(of, args=[door.cluster.pk])
    assert administrator.post(url, sent | {"default_nad_name": "A"}).status_code == 200
    assert not NetworkSettings.objects.exists()
    assert administrator.post(url, sent | {"default_nad_name": "default"}).status_code == 302
    row = NetworkSettings.objects.get()
    assert (row.annotation, row.default_nad_namespace) == ("addresses", "openshift-ovn-kubernetes")
    change = reverse("admin:claims_networksettings_change", args=[row.pk])
    assert administrator.get(change).headers["Location"] == url
    for missing in ("claims_decision_change", "claims_networksettings_of"):
        url = reverse(f"admin:{missing}", args=[999_999])
        assert administrator.get(url).status_code == 404
    assert "openshift-ovn-kubernetes/default" in _text(administrator, SETTINGS_PAGE)


@pytest.mark.exhaustive
def test_the_settings_of_many_clusters_are_on_pages() -> None:
    clusters = [factories.cluster() for _ in range(101)]
    vm_lookup.change_settings(clusters[0], {"default_nad_name": "other"}, author=factories.BY)
    browser = _browser("viewer")
    first, second = (browser.get(reverse(SETTINGS_PAGE, query={"page": page})) for page in (1, 2))
    rows = [*first.context["settings_of_rows"], *second.context["settings_of_rows"]]
    assert {row.cluster_id for row in rows} == {cluster.pk for cluster in clusters}
    assert len(rows) == 101
    assert {row.cluster_id for row in rows if row.pk} == {clusters[0].pk}
    assert 'href="?page=2"' in first.content.decode()
