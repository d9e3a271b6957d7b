"""A silence acknowledges alerts of a kind or a cluster when they open; those that outlive it are sent then."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from pools.core import errors
from pools.models import Alert, Cluster, Delivery, Silence
from pools.platform import database
from pools.platform.alerts import open_alerts, targets
from pools.platform.conditions import evaluation
from tests import factories, people
from tests.alerts.pools import full_pool
from tests.edges import api as apis

CODE = "pool_nearly_full"


@pytest.fixture(autouse=True)
def target() -> None:
    targets.create("ops", "https://example.org/", author=factories.BY, codes=[CODE])


def silence(code: str = CODE, cluster: Cluster | None = None, **options: Any) -> Silence:
    until = database.now() + timedelta(hours=1)
    return open_alerts.create_silence(
        code=code, cluster=cluster, **{"until": until, "reason": "moved", "by": "ann"} | options
    )


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
