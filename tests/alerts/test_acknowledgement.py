"""An acknowledged alert is neither counted nor sent again, until it ends, becomes more severe, or its time comes."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from pools.core import errors
from pools.models import Alert, Delivery, DeliveryEvent, Now, Pool
from pools.platform import database
from pools.platform.alerts import open_alerts, outbox, targets
from pools.platform.conditions import evaluation
from tests import factories, people
from tests.alerts.pools import full_pool
from tests.metrics import scrapes

RIGHTS = ("view_alert", "change_alert")


@pytest.fixture
def pool() -> Pool:
    return factories.pool("10.0.0.0/27", cooldown=0)  # 30 blocks


@pytest.fixture
def blocks(pool: Pool) -> list[Any]:
    """Blocks that are held: above 80 % of the pool, below 95 %."""
    return [factories.take(pool) for _ in range(25)]


@pytest.fixture
def alert(blocks: list[Any]) -> Alert:
    evaluation.evaluate()
    return Alert.objects.get(code="pool_nearly_full")


def acknowledge(alert: Alert, **options: Any) -> None:
    open_alerts.acknowledge(alert, by="ann", reason="CIDR ordered", **options)


@pytest.mark.exhaustive
def test_it_is_not_counted_and_folded_on_the_overview(alert: Alert) -> None:
    acknowledge(alert)
    assert not open_alerts.urgent_alerts().exists()
    assert not open_alerts.alert_groups()
    assert [group.lead for group in open_alerts.alert_groups(acknowledged=True)] == [alert]
    text = people.browser().get(reverse("admin:index")).content.decode()
    assert text.index("Acknowledged alerts") < text.index(alert.title)
    labels = {"code": "pool_nearly_full", "level": "warning"}
    assert scrapes.value("ipam_alerts_open", **labels) == 1
    assert scrapes.value("ipam_alerts_acknowledged", **labels) == 1


@pytest.mark.exhaustive
def test_a_more_severe_level_ends_it_and_is_sent(pool: Pool, alert: Alert) -> None:
    targets.create("ops", "https://hooks.example.org/", author=factories.BY)
    acknowledge(alert)
    blocks = [factories.take(pool) for _ in range(4)]
    evaluation.evaluate()
    alert.refresh_from_db()
    assert (alert.level, alert.is_acknowledged, alert.acknowledged_by) == ("error", False, "")
    assert [row.event for row in Delivery.objects.filter(event="changed")] == ["changed"]
    acknowledge(alert)
    for block in blocks:
        factories.give_back(block)
    evaluation.evaluate()
    alert.refresh_from_db()
    assert (alert.level, alert.is_acknowledged) == ("warning", True)
    assert Delivery.objects.filter(event="changed").count() == 1


def test_it_ends_with_the_alert(blocks: list[Any], alert: Alert) -> None:
    targets.create("ops", "https://hooks.example.org/", author=factories.BY)
    outbox.write([(DeliveryEvent.OPENED, alert)], database.now())
    acknowledge(alert)
    for block in blocks:
        factories.give_back(block)
    evaluation.evaluate()
    alert.refresh_from_db()
    assert not alert.is_acknowledged
    assert alert.acknowledged_by == "ann"
    assert Delivery.objects.filter(event="ended", alert=alert).exists()
    with pytest.raises(errors.Conflict):
        acknowledge(alert)


def test_it_ends_at_its_time(alert: Alert) -> None:
    with pytest.raises(errors.InvalidInput):
        acknowledge(alert, until=database.now())
    acknowledge(alert, until=database.now() + timedelta(hours=1))
    evaluation.evaluate()
    alert.refresh_from_db()
    assert alert.is_acknowledged
    Alert.objects.update(acknowledged_until=Now())
    evaluation.evaluate()
    alert.refresh_from_db()
    assert not alert.is_acknowledged


def test_rest_acknowledges_and_withdraws(alert: Alert) -> None:
    url = f"/api/v1/alerts/{alert.pk}/"
    client, viewer = people.browser(RIGHTS), people.browser(["view_alert"])

    def patch(body: dict[str, Any], caller: Any = client) -> Any:
        return caller.patch(url, body, content_type="application/json")

    body = {"acknowledged": True, "acknowledged_reason": "ordered"}
    assert patch(body, viewer).status_code == 403
    assert patch({"acknowledged": True}).json()["errors"][0]["field"] == "acknowledged_reason"
    late = patch({**body, "acknowledged_until": "2020-01-01T00:00:00Z"})
    assert late.json()["errors"][0]["field"] == "acknowledged_until"
    answer = patch({**body, "acknowledged_until": "2099-01-01T00:00:00Z"}).json()
    assert answer["acknowledged"] is True
    assert answer["acknowledged_until"] == "2099-01-01T00:00:00Z"
    listed = client.get("/api/v1/alerts/?acknowledged=true").json()["results"]
    assert [row["id"] for row in listed] == [alert.pk]
    answer = patch({"acknowledged": False}).json()
    assert (answer["acknowledged"], answer["acknowledged_reason"]) == (False, "")
    assert not client.get("/api/v1/alerts/?acknowledged=true").json()["results"]


def test_the_page_acknowledges_with_the_alerts_of_the_same_cause() -> None:
    alert = full_pool(env="shop")
    url = reverse("admin:pools_alert_acknowledge", args=[alert.pk])
    page = reverse("admin:pools_alert_change", args=[alert.pk])
    viewer, client = people.browser(["view_alert"]), people.browser(RIGHTS)
    assert viewer.post(url, {"reason": "x"}).status_code == 403
    assert url not in viewer.get(page).content.decode()
    assert "cad-error" in client.post(url, {}).content.decode()
    assert "above 0" in client.post(url, {"reason": "x", "duration": "0"}).content.decode()
    client.post(url, {"reason": "CIDR ordered", "duration": "4 hours", "same_cause": "on"})
    acknowledged = Alert.objects.filter(acknowledged_at__isnull=False)
    assert acknowledged.count() == Alert.objects.count() > 1
    assert "CIDR ordered" in client.get(page).content.decode()
    shown = client.get(reverse("admin:pools_alert_changelist") + "?open=acknowledged")
    assert shown.context["cl"].result_count == acknowledged.count()
    client.post(url, {"withdraw": "1"})
    alert.refresh_from_db()
    assert not alert.is_acknowledged


def test_selected_alerts_are_acknowledged_together() -> None:
    for _ in range(2):
        full_pool(env="shop")
    ids = list(Alert.objects.values_list("pk", flat=True))
    url = reverse("admin:pools_alert_acknowledge_selected", query={"id": ids[:2]})
    viewer, client = people.browser(["view_alert"]), people.browser(RIGHTS)
    assert viewer.get(url).status_code == 403
    assert viewer.post(url, {"reason": "x"}).status_code == 403
    listed = reverse("admin:pools_alert_changelist")
    single = reverse("admin:pools_alert_acknowledge_selected", query={"id": ids[0]})
    assert single not in viewer.get(listed).content.decode()
    assert single in client.get(listed).content.decode()
    assert "cad-error" in client.post(url, {}).content.decode()
    client.post(url, {"reason": "CIDR ordered", "duration": "4 hours"})
    acknowledged = Alert.objects.filter(acknowledged_at__isnull=False)
    assert set(acknowledged.values_list("pk", flat=True)) == set(ids[:2])
    assert single not in client.get(listed).content.decode()


def test_a_list_of_alerts_names_clusters_and_objects() -> None:
    pools = [factories.pool("10.0.0.0/30", within=factories.cluster()) for _ in range(2)]
    for pool in pools:
        factories.drain(pool, env="shop")
    evaluation.evaluate()
    client = people.browser([*RIGHTS, "view_pool", "view_cluster"])
    url = reverse("admin:pools_alert_changelist", query={"cluster": pools[0].cluster_id})
    answer = client.get(url)
    shown = answer.context["cl"].result_list
    assert shown
    assert {alert.cluster for alert in shown} == {pools[0].cluster}
    assert str(pools[0]) in answer.content.decode()
    assert str(pools[1]) not in answer.content.decode()
    names = client.get(reverse("admin:pools_alert_changelist")).content.decode()
    assert str(pools[1]) in names
