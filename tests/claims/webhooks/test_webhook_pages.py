"""The pages of decisions and of how VMs are told."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from claims.models import Decision, NetworkSettings
from claims.workloads import vm_lookup
from tests import factories, people
from tests.claims.webhooks.doors import Door
from tests.core.vm_world import pod

DECISIONS = "admin:claims_decision_changelist"
SETTINGS = "admin:claims_networksettings_changelist"


def _browser(role: str) -> Client:
    person = people.user()
    person.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(person)
    return client


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
    assert "ovn-kubernetes/default" in _text(administrator, SETTINGS)
    assert "/webhooks/v1/prod/mutate-pods" in _text(administrator, of, door.cluster.pk)
    form_data = {
        "annotation": "addresses",
        "default_nad_namespace": "openshift-ovn-kubernetes",
        "default_nad_name": "A",
    }
    url = reverse(of, args=[door.cluster.pk])
    refused = administrator.post(url, form_data)
    assert refused.status_code == 200
    assert not NetworkSettings.objects.exists()
    form_data["default_nad_name"] = "default"
    assert administrator.post(url, form_data).status_code == 302
    row = NetworkSettings.objects.get()
    assert (row.annotation, row.default_nad_namespace) == ("addresses", "openshift-ovn-kubernetes")
    change = reverse("admin:claims_networksettings_change", args=[row.pk])
    assert administrator.get(change).headers["Location"] == url
    assert "openshift-ovn-kubernetes/default" in _text(administrator, SETTINGS)


def test_who_may(door: Door) -> None:
    door.ask(pod())
    url = reverse("admin:claims_networksettings_of", args=[door.cluster.pk])
    viewer = _browser("viewer")
    assert viewer.get(url).status_code == 200
    assert viewer.post(url, {"annotation": "addresses"}).status_code == 403
    owner = _browser("vm-owner")
    decision = reverse("admin:claims_decision_change", args=[Decision.objects.get().pk])
    for page in (url, reverse(SETTINGS), reverse(DECISIONS), decision):
        assert owner.get(page).status_code == 403
    for missing in ("claims_decision_change", "claims_networksettings_of"):
        page = reverse(f"admin:{missing}", args=[999_999])
        assert _browser("administrator").get(page).status_code == 404


@pytest.mark.exhaustive
def test_the_settings_of_many_clusters_are_on_pages() -> None:
    clusters = [factories.cluster() for _ in range(101)]
    vm_lookup.change_settings(clusters[0], {"default_nad_name": "other"}, author=factories.BY)
    browser = _browser("viewer")
    first, second = (browser.get(reverse(SETTINGS, query={"page": page})) for page in (1, 2))
    rows = [*first.context["settings_of_rows"], *second.context["settings_of_rows"]]
    assert {row.cluster_id for row in rows} == {cluster.pk for cluster in clusters}
    assert len(rows) == 101
    assert {row.cluster_id for row in rows if row.pk} == {clusters[0].pk}
    assert 'href="?page=2"' in first.content.decode()
