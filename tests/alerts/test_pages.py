"""Alerts on their pages and in the overview."""

import re
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import resolve, reverse

from pools.models import Alert, Delivery, Finding, Measure, Now, WebhookTarget
from pools.platform.alerts import dispatch, open_alerts, outbox, targets
from pools.platform.conditions import evaluation, registry
from pools.register import overlaps
from pools.register.allocator import requests
from tests import factories, people
from tests.alerts.pools import full_pool
from tests.alerts.receivers import Receiver

ALERTS = "admin:pools_alert_changelist"
ADD = "admin:pools_webhooktarget_add"
ALL = (
    "view_webhooktarget", "add_webhooktarget", "change_webhooktarget", "delete_webhooktarget",
    "view_delivery", "view_alert",
)  # fmt: skip


def page(row: Any, name: str = "change") -> str:
    return reverse(f"admin:pools_{row._meta.model_name}_{name}", args=[row.pk])


def test_open_alerts_come_first_and_the_menu_counts_them() -> None:
    alert = full_pool(env="<b>evil</b>")
    Alert.objects.filter(code="allocation_failing").update(ended_at="2026-01-01T00:00:00Z")
    client = people.browser(["view_alert"])
    answer = client.get(reverse(ALERTS))
    assert [item.ended_at is None for item in answer.context["cl"].result_list] == [
        True,
        True,
        False,
    ]
    text = answer.content.decode()
    assert alert.title in text
    assert "<b>evil</b>" not in text
    badge = re.search(r"Alerts\s*</span>.{0,400}?>\s*(\d+)\s*<", text, re.DOTALL)
    assert badge is not None
    assert badge[1] == "2"
    for query, count in (
        ("?open=true", 2),
        ("?open=false", 1),
        ("?code=cluster_stale", 0),
        ("?q=exhausted", 1),
    ):
        assert len(client.get(reverse(ALERTS) + query).context["cl"].result_list) == count, query
    assert client.get(page(alert)).status_code == 200
    assert b"pool nearly full" in client.get(page(alert)).content
    assert b"Webhooks" not in client.get(page(alert)).content


def test_the_secret_is_shown_once_and_rotated() -> None:
    client = people.browser(ALL)
    answer = client.post(
        reverse(ADD), {"name": "ops", "url": "https://example.org/hook", "enabled": "on"}
    )
    row = WebhookTarget.objects.get()
    secret = targets.secrets_of(row)[0]
    assert secret in answer.content.decode()
    assert secret not in row.sealed
    for url in (page(row), reverse("admin:pools_webhooktarget_changelist"), page(row, "delete")):
        assert secret not in client.get(url).content.decode()
    rotated = client.post(page(row, "rotate")).content.decode()
    row.refresh_from_db()
    assert targets.secrets_of(row)[0] != secret
    assert targets.secrets_of(row)[0] in rotated
    assert "Rotate the secret of ops?" in client.get(page(row, "rotate")).content.decode()
    export = client.get(reverse("admin:pools_webhooktarget_export"))
    assert row.sealed not in export.getvalue().decode()


def test_the_form_says_what_is_wrong() -> None:
    client = people.browser(ALL)
    targets.create("ops", "https://example.org/", author=factories.BY)
    for data, words in (
        ({"name": "x", "url": "http://example.org/"}, "must begin with https"),
        ({"name": "x", "url": "https://example.org/#x"}, "fragment"),
        ({"name": "x", "url": "https://example.org/?***"}, "the whole URL is expected"),
        ({"name": "ops", "url": "https://example.org/"}, "There is a target ops"),
        ({"name": "x", "url": "https://example.org/", "ca": "nonsense"}, "PEM"),
        ({"name": "x", "url": "https://example.org/", "codes": ["nonsense"]}, "nonsense"),
        ({}, "required"),
    ):
        assert words in client.post(reverse(ADD), data).content.decode(), data
    assert WebhookTarget.objects.count() == 1


def test_a_test_is_sent_by_a_button_and_what_was_given_up_is_sent_again(receiver: Receiver) -> None:
    target, _ = receiver.target()
    client = people.browser(ALL)
    assert client.post(page(target, "test")).status_code == 302
    assert dispatch.send_pending(target.pk) == 1
    delivery = outbox.write_test(target)
    Delivery.objects.filter(pk=delivery.pk).update(state="failed", attempts=16)
    assert b"Send again" in client.get(page(target)).content
    client.post(reverse("admin:pools_webhooktarget_again", args=[target.pk, delivery.pk]))
    assert dispatch.send_pending(target.pk) == 1
    assert client.post(page(target, "delete")).status_code == 302
    assert Delivery.objects.count() == 0


def test_a_change_keeps_the_secret(receiver: Receiver) -> None:
    target, secret = receiver.target()
    data = {"name": "new", "url": target.url, "ca": target.ca, "codes": ["leaked_blocks"]}
    assert people.browser(ALL).post(page(target), data).status_code == 302
    target.refresh_from_db()
    assert (target.name, target.codes, target.enabled) == ("new", ["leaked_blocks"], False)
    assert targets.secrets_of(target)[0] == secret


def test_the_page_says_when_the_scheduler_stands_still() -> None:
    client = people.browser(["view_alert"])
    Measure.objects.create(name="ipam_scheduler_last_tick_timestamp_seconds", value=1_600_000_000)
    assert b"The scheduler has not run" in client.get(reverse(ALERTS)).content
    assert evaluation.evaluate_without_scheduler() is not None
    assert Alert.objects.get().code == "scheduler_stopped"
    Measure.objects.update(value=32_000_000_000)
    assert b"The scheduler has not run" not in client.get(reverse(ALERTS)).content
    assert evaluation.evaluate_without_scheduler() is None


def test_events_are_limited_by_names_and_a_deleted_pool_stays() -> None:
    pool = factories.pool("10.0.0.0/24")
    client = people.browser(ALL)
    values = {
        "name": "ops",
        "url": "https://example.org/hook",
        "event_types": "block",
        "clusters": f"{pool.cluster.name}\n",
        "event_pools": f" {pool} \n{pool}",
    }
    refused = client.post(reverse(ADD), values | {"event_pools": f"{pool}\nprod/nothing"})
    assert refused.context["form"].errors["event_pools"] == [
        "Line 2: Nothing has the name prod/nothing."
    ]
    client.post(reverse(ADD), values)
    row = WebhookTarget.objects.get()
    assert (row.clusters, row.event_pools) == ([pool.cluster_id], [pool.pk])
    row.event_pools = [pool.pk, 8_000_001]
    row.save()
    initial = client.get(page(row)).context["form"].initial
    assert initial["clusters"] == pool.cluster.name
    assert initial["event_pools"] == f"{pool}\n8000001"
    client.post(page(row), values | {"event_pools": initial["event_pools"]})
    row.refresh_from_db()
    assert row.event_pools == [pool.pk, 8_000_001]


# --- The overview lists open alerts: one row for each cause, the most severe first, with its
# runbook
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
    full_pool()
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
    alert = full_pool()
    client = people.browser(["view_alert"])
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
    full_pool()
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
