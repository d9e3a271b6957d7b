"""Alerts that somebody acknowledges or silences."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from pools.core import errors
from pools.models import Alert, Cluster, Delivery, DeliveryEvent, Now, Pool, Silence
from pools.platform import database
from pools.platform.alerts import open_alerts, outbox, targets
from pools.platform.conditions import evaluation
from tests import factories, people
from tests.edges import api as apis
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
    pool = factories.pool("10.0.0.0/30")
    factories.drain(pool, env="shop")
    evaluation.evaluate()
    alert = Alert.objects.get(code="pool_nearly_full")
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
    pools = [factories.pool("10.0.0.0/30") for _ in range(2)]
    for pool in pools:
        factories.drain(pool, env="shop")
    evaluation.evaluate()
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


# A silence acknowledges alerts of a kind or a cluster when they open; those that outlive it
# are sent then
CODE = "pool_nearly_full"


@pytest.fixture(autouse=True)
def target() -> None:
    targets.create("ops", "https://example.org/", author=factories.BY, codes=[CODE])


def silence(code: str = CODE, cluster: Cluster | None = None, **options: Any) -> Silence:
    until = database.now() + timedelta(hours=1)
    return open_alerts.create_silence(
        code=code, cluster=cluster, **{"until": until, "reason": "moved", "by": "ann"} | options
    )


def full_pool(cluster: Cluster | None = None, cidr: str = "10.0.0.0/30") -> Alert:
    pool = factories.pool(cidr, within=cluster)
    factories.drain(pool)
    evaluation.evaluate()
    return Alert.objects.get(code=CODE, subject__startswith=f"pool/{pool.pk}/")


def sent(alert: Alert) -> list[str]:
    return [*Delivery.objects.filter(alert=alert).order_by("pk").values_list("event", flat=True)]


def test_an_alert_of_the_kind_is_acknowledged_and_not_sent() -> None:
    row = silence()
    alert = full_pool()
    assert (alert.is_acknowledged, alert.acknowledged_by, alert.acknowledged_reason) == (
        True,
        "ann",
        "moved",
    )
    assert alert.acknowledged_until == row.until
    assert sent(alert) == []


def test_only_the_cluster_is_silenced_and_its_open_alerts_are_acknowledged() -> None:
    cluster = factories.cluster()
    before = full_pool(cluster)
    silence("", cluster)
    before.refresh_from_db()
    assert before.is_acknowledged
    assert sent(full_pool()) == ["opened"]
    assert sent(full_pool(cluster, "10.1.0.0/30")) == []


@pytest.mark.parametrize("ending", ["time", "by hand"])
def test_what_is_open_afterwards_is_sent_then(ending: str) -> None:
    row = silence()
    alert = full_pool()
    if ending == "time":
        past = database.now() - timedelta(seconds=1)
        Silence.objects.update(until=past)
        Alert.objects.filter(pk=alert.pk).update(acknowledged_until=past)
    else:
        open_alerts.end_silence(row)
    evaluation.evaluate()
    alert.refresh_from_db()
    assert not alert.is_acknowledged
    assert sent(alert) == ["opened"]
    assert not Silence.objects.exists()
    evaluation.evaluate()
    assert sent(alert) == ["opened"]


def test_the_end_of_a_silenced_alert_is_not_sent() -> None:
    silence()
    alert = full_pool()
    Alert.objects.filter(pk=alert.pk).update(subject="pool/0/ipv4")  # of which nothing is true
    evaluation.evaluate()
    alert.refresh_from_db()
    assert not alert.is_open
    assert sent(alert) == []


def test_a_silence_needs_an_end_and_an_aim() -> None:
    with pytest.raises(errors.InvalidInput):
        silence(until=database.now())
    with pytest.raises(errors.InvalidInput):
        silence("")


def test_operators_silence_on_a_page_and_by_rest() -> None:
    cluster = factories.cluster()
    client = people.browser(
        ["view_alert", "view_silence", "add_silence", "delete_silence", "view_cluster"]
    )
    add = reverse("admin:pools_silence_add")
    assert f'value="{CODE}" selected' in client.get(f"{add}?code={CODE}").content.decode()
    refused = client.post(add, {"code": CODE, "reason": "moved"})
    assert "Enter a duration above 0." in refused.content.decode()
    values = {"cluster": cluster.pk, "duration": "4 hours", "reason": "moved"}
    assert client.post(add, values).status_code == 302
    row = Silence.objects.get()
    assert (row.code, row.cluster, row.reason) == ("", cluster, "moved")
    assert cluster.name in client.get(reverse("admin:pools_silence_changelist")).content.decode()
    client.post(reverse("admin:pools_silence_delete", args=[row.pk]))
    assert not Silence.objects.exists()
    api = apis.Api()
    until = (database.now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {"cluster": cluster.pk, "code": CODE, "until": until, "reason": "moved"}
    answer = api("POST", "silences/", body)
    assert answer.status_code == 201, answer.content
    assert api("DELETE", f"silences/{answer.json()['id']}/").status_code == 204
    assert api("POST", "silences/", body | {"until": "2020-01-01T00:00:00Z"}).status_code == 400
