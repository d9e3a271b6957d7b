"""Pages of alerts and webhooks: who sees them, the secret that is shown once, the buttons."""

import re
from typing import Any

from django.urls import reverse

from pools.models import Alert, Delivery, Measure, WebhookTarget
from pools.platform.alerts import dispatch, outbox, targets
from pools.platform.conditions import evaluation
from tests import factories, people
from tests.alerts.receivers import Receiver

ALERTS = "admin:pools_alert_changelist"
ADD = "admin:pools_webhooktarget_add"
ALL = (
    "view_webhooktarget", "add_webhooktarget", "change_webhooktarget", "delete_webhooktarget",
    "view_delivery", "view_alert",
)  # fmt: skip


def full() -> Alert:
    factories.drain(factories.pool("10.0.0.0/30"), env="<b>evil</b>")
    evaluation.evaluate()
    return Alert.objects.get(code="pool_nearly_full")


def page(row: Any, name: str = "change") -> str:
    return reverse(f"admin:pools_{row._meta.model_name}_{name}", args=[row.pk])


def test_open_alerts_come_first_and_the_menu_counts_them() -> None:
    alert = full()
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
