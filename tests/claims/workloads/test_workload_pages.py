"""The page of workloads: counts, results, and adopting with a look before."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from claims import tasks
from claims.models import NAD, Entry, Membership, Network
from claims.workloads import results
from tests import people
from tests.claims import worlds

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
LIST = "admin:claims_workload_changelist"
ADOPT = "admin:claims_workload_adopt"


@pytest.fixture
def network() -> Network:
    result = worlds.network()
    ippool = worlds.ippool(result)
    NAD.objects.create(network=result, namespace="blue", name="n")
    worlds.entry(ippool, A, "10.0.0.5/24", vm="db", namespace="blue")
    worlds.entry(ippool, B, "10.0.0.6/24", vm="gone", namespace="blue")
    worlds.workload(result, "db", A, "10.0.0.66/24")
    worlds.workload(result, "new", C, "10.0.0.7/24", kind="pod")
    return result


def text(client: Client, name: str, **query: Any) -> str:
    answer = client.get(reverse(name, query=query))
    assert answer.status_code == 200
    return answer.content.decode()


def test_networks_with_their_counts(network: Network) -> None:
    page = text(people.browser(), LIST)
    assert network.name in page
    for result in ("missing", "different", "unknown"):
        assert f"network={network.pk}&amp;result={result}" in page
    assert f"network={network.pk}&amp;result=matching" not in page


def test_the_overview_of_large_networks_has_stored_counts(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tasks.refresh_workload_counts() == 0, "the network is small"
    live = results.overview_counts([network.pk])
    assert live == (results.counts_by_network([network.pk]), None)
    monkeypatch.setattr(results, "LARGE", 2)
    assert tasks.refresh_workload_counts() == 1
    worlds.workload(network, "newer", "02:00:00:00:00:0d", "10.0.0.9/24", kind="pod")
    stored, counted_at = results.overview_counts([network.pk])
    assert (stored, counted_at is not None) == (live[0], True)
    assert results.result_counts(network.pk)["unknown"] == stored[network.pk]["unknown"] + 1
    with CaptureQueriesContext(connection) as queries:
        page = text(people.browser(), LIST)
    assert "The numbers of large networks were counted" in page
    assert not [query for query in queries if "claims_workload_comparison" in query["sql"]]
    assert tasks.refresh_workload_counts() == 1
    monkeypatch.setattr(results, "LARGE", 500)
    assert tasks.refresh_workload_counts() == 0
    assert results.overview_counts([network.pk])[1] is None


def test_a_large_network_is_not_compared_for_the_overview(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "LARGE", 2)
    with CaptureQueriesContext(connection) as queries:
        page = text(people.browser(), LIST)
    assert "not counted yet" in page
    assert not [query for query in queries if "claims_workload_comparison" in query["sql"]]
    assert "not counted yet" not in text(people.browser(), LIST, network=network.pk)


def test_a_network(network: Network, browser: Client) -> None:
    page = text(browser, LIST, network=network.pk)
    for item in ("blue/db", "blue/new", "blue/gone", "10.0.0.66/24", "blue/new is not registered"):
        assert item in page
    page = text(browser, LIST, network=network.pk, result="unknown")
    assert "blue/new" in page
    assert "blue/db" not in page
    assert "No workload is matching" in text(browser, LIST, network=network.pk, result="matching")
    assert browser.get(reverse(LIST, query={"network": 1 << 40})).status_code == 404


def test_one_workload_leads_to_its_network(network: Network) -> None:
    row = network.workloads.get(name="db")
    answer = people.browser().get(reverse("admin:claims_workload_change", args=[row.pk]), follow=True)  # fmt: skip
    page = answer.content.decode()
    assert "blue/db" in page
    assert "blue/new" not in page


def test_export(network: Network) -> None:
    url = reverse("admin:claims_workload_export", query={"network": network.pk})
    lines = people.browser().get(url).getvalue().decode().splitlines()
    assert [line.split(",")[0] for line in lines] == ["result", "different", "missing", "unknown"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("by_ids", [True, False])
def test_adopting(network: Network, by_ids: bool, browser: Client) -> None:
    chosen: dict[str, Any] = {"result": "unknown"}
    if by_ids:
        chosen = {"workload": [row.pk for row in network.workloads.all()]}
    page = text(browser, ADOPT, network=network.pk, **chosen)
    assert "10.0.0.7/24" in page
    assert Entry.objects.count() == 2
    body = {"network": network.pk, **chosen}
    again = browser.post(reverse(ADOPT), body)
    assert (again.status_code, Entry.objects.count()) == (200, 2)  # without a reason
    done = browser.post(reverse(ADOPT), body | {"reason": "it runs"}, follow=True)
    assert "1 added" in done.content.decode()
    assert Entry.objects.filter(source="adopted").count() == 1 + by_ids


def test_nothing_chosen(network: Network) -> None:
    answer = people.browser().get(reverse(ADOPT, query={"network": network.pk}))
    assert answer.status_code == 302


@pytest.mark.exhaustive
def test_a_vm_owner(network: Network) -> None:
    worlds.workload(network, "foreign", "02:00:00:00:00:0d", "10.0.0.77/24", namespace="red")
    person = people.user()
    person.user_permissions.set(Permission.objects.filter(codename__in=["view_workload", "view_network"]))  # fmt: skip
    Membership.objects.create(user=person, cluster=network.cluster, namespaces=["blue"])
    client = people.signed_in(person)
    for page in (text(client, LIST), text(client, LIST, network=network.pk)):
        assert "foreign" not in page
        assert "Adopt" not in page
    assert "blue/new" in text(client, LIST, network=network.pk)
