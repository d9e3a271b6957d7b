"""The overview lists open alerts: one row for each cause, the most severe first, with its runbook."""

import re
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import resolve, reverse

from pools.models import Alert, Delivery, Finding, Now
from pools.platform.alerts import open_alerts
from pools.platform.conditions import evaluation, registry
from pools.register import overlaps
from pools.register.allocator import requests
from tests import factories, people
from tests.alerts.receivers import Receiver


def finding(severity: str) -> None:
    Finding.objects.create(
        cluster=factories.cluster(), kind="CiliumNode", code="overlap", subject="s",
        severity=severity, message="m", since=Now(),
    )  # fmt: skip


def overview(*rights: str) -> str:
    client = people.browser(rights) if rights else people.browser()
    return client.get(reverse("admin:index")).content.decode()


def test_one_row_for_each_cause_the_most_severe_first() -> None:
    finding("warning")
    factories.pool("10.9.0.0/24")
    factories.pool("10.9.0.0/24")  # overlaps in another cluster
    pool = factories.pool("10.0.0.0/30")
    factories.drain(pool, env="shop")
    requests.allocate(pool.pk, factories.demand(), author=factories.BY, wait=True)
    evaluation.evaluate()
    groups = open_alerts.alert_groups()
    assert [[alert.code for alert in group.alerts] for group in groups] == [
        ["pool_nearly_full", "allocation_failing", "environment_degraded", "requests_waiting"],
        ["cluster_findings"],
        ["cidrs_overlapping"],
    ]
    text = overview()
    rows = re.findall(r'<li class="cad-(\w+)-line">', text)
    assert rows == ["error", "warning", "info"]
    assert text.index("<details>") < text.index("cad-info-line")
    assert "1 alert for information" in text
    assert reverse("admin:runbook", args=["IpamPoolNearlyFull"]) in text
    assert reverse("admin:pools_pool_add_cidr", args=[pool.pk]) in text
    assert "Add a CIDR" not in overview("view_pool", "view_alert")


def test_whoever_may_not_view_alerts_sees_none() -> None:
    factories.drain(factories.pool("10.0.0.0/30"))
    evaluation.evaluate()
    assert "is exhausted" in overview("view_pool", "view_alert")
    assert "<h2>Alerts</h2>" not in overview("view_pool")


def test_a_refusal_of_another_pool_is_another_cause() -> None:
    pools = [factories.pool("10.0.0.0/30"), factories.pool("10.1.0.0/30")]
    for pool in pools:
        factories.drain(pool, env="shop")
    evaluation.evaluate()
    assert {len(group.alerts) for group in open_alerts.alert_groups()} == {3}
    assert len(open_alerts.alert_groups()) == 2


def test_more_rows_with_one_condition_are_counted() -> None:
    for _ in range(7):
        finding("error")
    factories.pool("10.9.0.0/24")
    evaluation.evaluate()
    text = overview()
    assert text.count("cad-error-line") == 5
    assert "2 more: cluster findings" in text
    assert f"{reverse('admin:pools_alert_changelist')}?open=true&amp;code=cluster_findings" in text


def test_information_is_neither_sent_nor_counted(receiver: Receiver) -> None:
    receiver.target()
    factories.pool("10.9.0.0/24")
    factories.pool("10.9.0.0/24")
    assert overlaps.find_overlaps()
    (alert,) = evaluation.evaluate().opened
    assert (alert.code, alert.level) == ("cidrs_overlapping", "info")
    assert not Delivery.objects.exists()
    assert not open_alerts.urgent_alerts().exists()


@pytest.mark.exhaustive
def test_every_alert_of_the_demo_leads_to_a_page() -> None:
    call_command("demo")
    evaluation.evaluate()
    client = people.browser()
    for alert in Alert.objects.exclude(url=""):
        assert resolve(re.split("[?#]", alert.url)[0])
        assert client.get(alert.url, follow=True).status_code == 200, alert.url
        assert client.get(reverse("admin:pools_alert_change", args=[alert.pk])).status_code == 200


@pytest.mark.exhaustive
def test_runbooks_are_pages() -> None:
    client = people.browser(["view_alert"])
    for runbook in registry.runbooks():
        page = client.get(reverse("admin:runbook", args=[runbook])).content.decode()
        assert '<h2 id="mitigation">Mitigation</h2>' in page, runbook
    assert client.get("/admin/runbooks/nonsense/").status_code == 404
    assert people.browser(["view_pool"]).get("/admin/runbooks/IpamLeakGrowing/").status_code == 403


def test_the_page_of_an_alert_shows_its_runbook_and_what_has_the_same_cause() -> None:
    factories.drain(factories.pool("10.0.0.0/30"))
    evaluation.evaluate()
    client = people.browser(["view_alert"])
    alert = Alert.objects.get(code="pool_nearly_full")
    text = client.get(reverse("admin:pools_alert_change", args=[alert.pk])).content.decode()
    assert reverse("admin:runbook", args=["IpamPoolNearlyFull"]) in text
    assert "refuses allocations" in text
    listed = client.get(reverse("admin:pools_alert_changelist")).content.decode()
    assert reverse("admin:runbook", args=["IpamPoolNearlyFull"]) in listed


@pytest.mark.exhaustive
def test_the_pages_of_a_pool_and_a_cluster_list_their_alerts() -> None:
    pool = factories.pool("10.0.0.0/30")
    factories.drain(pool, env="shop")
    Finding.objects.create(
        cluster=pool.cluster, kind="CiliumNode", code="overlap", subject="s", severity="error",
        message="m", since=Now(),
    )  # fmt: skip
    evaluation.evaluate()
    for url, title in (
        (reverse("admin:pools_pool_change", args=[pool.pk]), "refuses allocations"),
        (reverse("admin:pools_cluster_change", args=[pool.cluster_id]), "1 finding in cluster"),
    ):
        text = people.browser().get(url).content.decode()
        assert "Open alerts" in text
        assert title in text
        assert "Open alerts" not in people.browser(people.VIEWER).get(url).content.decode()


def test_thresholds_and_open_alerts_are_metrics(settings: Any) -> None:
    from tests.metrics import scrapes

    settings.IPAM_ALERT_WARNING_PERCENT = 70
    factories.drain(factories.pool("10.0.0.0/30"))
    evaluation.evaluate()
    labels = {"code": "pool_nearly_full", "level": "warning"}
    assert scrapes.value("ipam_alert_threshold", **labels) == 0.7
    assert scrapes.value("ipam_alerts_open", **labels) == 0
    assert scrapes.value("ipam_alerts_open", **{**labels, "level": "error"}) == 1


def test_before_the_first_evaluation_nobody_is_told_that_all_is_well() -> None:
    factories.pool("10.0.0.0/30")
    alerts = people.browser().get(reverse("admin:pools_alert_changelist")).content.decode()
    for text in (overview(), alerts):
        assert "Conditions have not been evaluated yet" in text
        assert "No errors and no warnings" not in text
