"""Events arrive at the targets that subscribe to them: in order, at least once, none missing, none foreign."""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.urls import reverse

from pools.models import Alert, Event, Pool, WebhookTarget
from pools.models.fields import Clock
from pools.platform import database, events
from pools.platform.alerts import event_feed, outbox, sending, targets
from pools.platform.audit import sealing
from pools.platform.conditions import evaluation
from pools.register import pools, retention
from tests import factories, people
from tests.alerts.receivers import Received, Receiver
from tests.edges import api as apis

pytestmark = pytest.mark.django_db


def subscriber(receiver: Receiver, *types: str, **options: Any) -> WebhookTarget:
    target, _secret = receiver.target(alerts=False, event_types=list(types or ("*",)), **options)
    return target


def messages(receiver: Receiver) -> list[dict[str, Any]]:
    """The messages of all batches that arrived."""
    return [message for received in receiver.received for message in received.event]


def expect(since: int, *types: str) -> list[str]:
    """The ids of all events of these types, as messages have them."""
    rows = Event.objects.filter(pk__gt=since).order_by("pk")
    return [
        f"event-{event.pk}"
        for event in rows
        if not types or event.type in types or event.type.partition(".")[0] in types
    ]


def resume(target: WebhookTarget) -> None:
    """As if its pause were over."""
    WebhookTarget.objects.filter(pk=target.pk).update(wait_until=None, leased_until=None)


@pytest.mark.exhaustive
def test_events_arrive_signed_in_order_with_ids_and_numbers(receiver: Receiver) -> None:
    factories.pool("10.9.0.0/24")  # before the subscription
    target, secret = receiver.target(alerts=False, event_types=["*"])
    since = target.event_position
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    pools.change(pool.pk, pools.PoolChange(description="new"), author=factories.BY)
    assert event_feed.due_targets() == [target.pk]
    assert sending.send_pending(target.pk) == 1
    (batch,) = receiver.received
    assert batch.headers["Content-Type"].startswith("application/cloudevents-batch+json")
    timestamp = batch.headers["X-Cadastre-Timestamp"]
    signed = hmac.new(secret.encode(), timestamp.encode() + b"." + batch.body, hashlib.sha256)
    assert batch.headers["X-Cadastre-Signature"] == f"v1={signed.hexdigest()}"
    sent = batch.event
    assert [message["id"] for message in sent] == expect(since)
    assert [message["sequence"] for message in sent] == [str(n) for n in range(1, len(sent) + 1)]
    last = sent[-1]
    assert (last["type"], last["data"]["event"]["pool"]) == (
        "cadastre.event.pool.changed",
        pool.name,
    )
    assert last["data"]["event"]["after"]["description"] == "new"
    assert sending.send_pending(target.pk) == 0
    assert event_feed.due_targets() == []


def test_a_target_receives_only_its_types_clusters_and_pools(receiver: Receiver) -> None:
    mine, other = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    of_type = subscriber(receiver, "pool.changed", "released", name="type")
    of_cluster = subscriber(receiver, "*", name="cluster", event_clusters=[mine.cluster_id])
    of_pool = subscriber(receiver, "*", name="pool", event_pools=[other.pk])
    since = of_pool.event_position
    for pool in (mine, other):
        block = factories.take(pool)
        factories.give_back(block)
        pools.change(pool.pk, pools.PoolChange(description="x"), author=factories.BY)
    pools.delete(mine.pk, author=factories.BY)  # what it had stays its cluster's
    rows = Event.objects.filter(pk__gt=since)
    expected = {
        of_type: expect(since, "pool.changed", "released"),
        of_cluster: [f"event-{pk}" for pk in rows.filter(pool_id=mine.pk).order_by("pk").values_list("pk", flat=True)],
        of_pool: [f"event-{pk}" for pk in rows.filter(pool_id=other.pk).order_by("pk").values_list("pk", flat=True)],
    }  # fmt: skip
    for target, ids in expected.items():
        receiver.received.clear()
        sending.send_pending(target.pk)
        assert [message["id"] for message in messages(receiver)] == ids, target.name
        assert ids


def test_a_deleted_cluster_does_not_widen_a_subscription(receiver: Receiver) -> None:
    from pools.register import clusters

    cluster = factories.cluster()
    target = subscriber(receiver, "*", event_clusters=[cluster.pk])
    clusters.remove(cluster, author=factories.BY)
    factories.pool("10.1.0.0/24")
    sending.send_pending(target.pk)
    assert {message["type"] for message in messages(receiver)} == {"cadastre.event.cluster.deleted"}


def test_what_failed_is_sent_again_with_the_same_ids_and_numbers(receiver: Receiver) -> None:
    target = subscriber(receiver)
    factories.pool("10.0.0.0/24")
    receiver.answer = lambda _handler, _received: 500
    assert sending.send_pending(target.pk) == 0
    target.refresh_from_db()
    assert target.failures == 1
    assert target.events_failing_since is not None
    assert target.wait_until is not None
    shown = apis.Api()("GET", f"webhook-targets/{target.pk}/").json()
    assert (shown["event_status"], shown["event_error"]) == (500, "HTTP 500: not accepted")
    page = people.browser().get(reverse("admin:pools_webhooktarget_change", args=[target.pk]))
    assert "HTTP 500: not accepted" in page.content.decode()
    assert event_feed.due_targets() == []
    receiver.answer = lambda _handler, _received: 204
    factories.pool("10.1.0.0/24")
    resume(target)
    assert sending.send_pending(target.pk) == 1
    first, second = (received.event for received in receiver.received)
    identity = [(message["id"], message["sequence"]) for message in first]
    assert [(message["id"], message["sequence"]) for message in second][: len(first)] == identity
    target.refresh_from_db()
    assert (target.failures, target.events_failing_since) == (0, None)
    assert (target.event_status, target.event_error) == (None, "")


def test_a_killed_worker_loses_nothing(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed after the receiver has the batch, before the position is written."""
    target = subscriber(receiver)
    since = target.event_position
    factories.pool("10.0.0.0/24")

    class Killed(BaseException):
        pass

    def kill(*_: Any) -> bool:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(event_feed, "record_success", kill)
        with pytest.raises(Killed):
            sending.send_pending(target.pk)
    resume(target)
    factories.take(Pool.objects.get())
    sending.send_pending(target.pk)
    ids = [message["id"] for message in messages(receiver)]
    assert sorted(set(ids)) == sorted(expect(since))
    assert len(ids) > len(set(ids))
    numbers = {(message["id"], message["sequence"]) for message in messages(receiver)}
    assert len(numbers) == len(set(ids))


def test_a_worker_that_lost_its_lease_moves_nothing(receiver: Receiver) -> None:
    target = subscriber(receiver)
    factories.pool("10.0.0.0/24")
    lease = outbox.take(target.pk)
    assert lease is not None
    batch = event_feed.next_batch(target.pk, event_feed.complete_number())
    assert batch is not None
    WebhookTarget.objects.filter(pk=target.pk).update(leased_until=None)
    assert outbox.take(target.pk) is not None
    assert not event_feed.advance(lease, batch)


def test_many_events_come_in_batches(receiver: Receiver) -> None:
    target = subscriber(receiver, "instance", "block", "released")
    since = target.event_position
    pool = factories.pool("10.0.0.0/20")
    for _ in range(2):
        factories.ask(pool, *factories.holders(650))
    while sending.send_pending(target.pk):
        pass
    sizes = [len(received.event) for received in receiver.received]
    assert max(sizes) <= 500
    ids = [message["id"] for message in messages(receiver)]
    assert ids == expect(since, "instance", "block", "released")
    assert len(ids) == 1300
    assert [message["sequence"] for message in messages(receiver)] == [
        str(number) for number in range(1, 1301)
    ]


def test_a_receiver_that_takes_small_batches_gets_all_events(receiver: Receiver) -> None:
    target = subscriber(receiver)
    since = target.event_position
    factories.ask(factories.pool("10.0.0.0/24"), *factories.holders(40))
    accepted: list[dict[str, Any]] = []

    def refuse_large(_handler: Any, received: Received) -> int:
        if len(received.body) > 10_000:
            return 413
        accepted.extend(received.event)
        return 204

    receiver.answer = refuse_large
    tries = 0
    while sending.send_pending(target.pk) or tries < 5:
        tries += 1
        resume(target)
    assert [message["id"] for message in accepted] == expect(since)
    refused = [len(received.body) for received in receiver.received if len(received.body) > 10_000]
    assert refused == sorted(refused, reverse=True)  # what was learnt is kept
    target.refresh_from_db()
    assert target.event_limit == refused[-1] // 2
    assert (
        max(len(received.body) for received in receiver.received[len(refused) :])
        <= target.event_limit
    )
    assert targets.change(target, {"ca": target.ca}, author=factories.BY).event_limit is None


def test_too_many_waiting_events_are_left_out_and_reported(
    receiver: Receiver, settings: Any
) -> None:
    settings.IPAM_WEBHOOK_MOST_EVENTS = 3
    target = subscriber(receiver)
    start = target.event_position
    pool = factories.pool("10.0.0.0/24")
    for number in range(6):
        pools.change(pool.pk, pools.PoolChange(description=str(number)), author=factories.BY)
    receiver.answer = lambda _handler, _received: 500
    sending.send_pending(target.pk)
    evaluation.evaluate()
    alert = Alert.objects.get(code="webhook_events_behind", ended_at=None)
    assert alert.level == "error"
    receiver.answer = lambda _handler, _received: 204
    receiver.received.clear()
    resume(target)
    sending.send_pending(target.pk)
    gap, *rest = messages(receiver)
    assert (gap["type"], gap["sequence"]) == ("cadastre.events.left_out", "1")
    assert gap["data"]["from"] == start + 1
    assert [message["id"] for message in rest] == expect(gap["data"]["to"])
    evaluation.evaluate()
    assert not Alert.objects.filter(code="webhook_events_behind", ended_at=None).exists()


@pytest.mark.parametrize("reason", ["too old", "deleted"])
def test_events_that_are_too_old_or_deleted_are_reported(
    receiver: Receiver, settings: Any, reason: str
) -> None:
    """A target that was disabled for 40 days."""
    target = subscriber(receiver)
    start = target.event_position
    factories.pool("10.0.0.0/24")
    last_old = expect(start)[-1]
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.clock_offset', '40 days', true)")
    settings.IPAM_WEBHOOK_EVENT_DAYS = 30 if reason == "too old" else 0
    if reason == "deleted":
        assert retention.purge_events(7)
    else:
        sealing.seal()
    factories.pool("10.1.0.0/24")
    sending.send_pending(target.pk)
    gap, *rest = messages(receiver)
    assert (gap["type"], gap["data"]["from"]) == ("cadastre.events.left_out", start + 1)
    assert f"event-{gap['data']['to']}" == last_old
    assert [message["id"] for message in rest] == expect(gap["data"]["to"])
    assert rest


def test_a_receiver_that_is_down_is_a_condition(receiver: Receiver) -> None:
    target = subscriber(receiver)
    since = Clock() - timedelta(minutes=16)
    WebhookTarget.objects.filter(pk=target.pk).update(events_failing_since=since)
    evaluation.evaluate()
    assert Alert.objects.get(code="webhook_events_behind").level == "warning"


def test_a_disabled_target_goes_on_where_it_was(receiver: Receiver) -> None:
    target = subscriber(receiver)
    since = target.event_position
    targets.change(target, {"enabled": False}, author=factories.BY)
    factories.pool("10.0.0.0/24")
    assert event_feed.due_targets() == []
    assert sending.send_pending(target.pk) == 0
    targets.change(target, {"enabled": True}, author=factories.BY)
    sending.send_pending(target.pk)
    assert [message["id"] for message in messages(receiver)] == expect(since)


def test_no_message_has_a_secret(receiver: Receiver) -> None:
    target, secret = receiver.target(alerts=False, event_types=["*"])
    targets.rotate(target, author=factories.BY)
    targets.change(target, {"url": f"{receiver.url}/token-in-path"}, author=factories.BY)
    sending.send_pending(target.pk)
    text = str(messages(receiver))
    assert "webhook.url_changed" in text
    for hidden in (secret, "token-in-path", WebhookTarget.objects.get().sealed):
        assert hidden not in text


def test_every_type_of_the_log_can_be_subscribed_to() -> None:
    """The view of the log has the types of all event tables as texts."""
    ((definition,),) = database.rows("SELECT pg_get_viewdef('pools_event_log'::regclass)", [])
    subjects = {*re.findall(r"'([a-z_]+)\.[a-z0-9_]*'::text", definition)}
    assert {"pool", "instance", "directory_account", "network"} <= subjects
    for subject in subjects:
        assert event_feed.parse_types([subject]) == [subject]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"event_types": ["colour"]}, "invalid_choice"),
        ({"event_types": ["pool.x y"]}, "invalid_choice"),
        ({"event_types": "pool"}, "wrong_type"),
        ({"event_clusters": [0]}, "wrong_type"),
        ({"event_clusters": [99999]}, "unknown_cluster"),
        ({"event_pools": ["1"]}, "wrong_type"),
        ({"event_position": 1}, "read_only_field"),
    ],
)
def test_wrong_subscriptions_are_refused(change: dict[str, Any], code: str) -> None:
    api = apis.Api()
    body = {"name": "siem", "url": "https://siem.example.org/", "event_types": ["pool"]}
    target = api.create("webhook-targets/", body)
    assert target["event_types"] == ["pool"]
    answer = api("PATCH", f"webhook-targets/{target['id']}/", change)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_only_administrators_subscribe() -> None:
    body = {"name": "siem", "url": "https://siem.example.org/", "event_types": ["*"]}
    for role in ("viewer", "operator", "vm-owner"):
        assert apis.Api(role)("POST", "webhook-targets/", body).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_commits_late_is_not_missed(receiver: Receiver) -> None:
    """It has drawn a lower number than one that has committed already."""
    target = subscriber(receiver)
    since = target.event_position
    early, late = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    drawn, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        try:
            with transaction.atomic(), events.recorded_by(factories.BY):
                Pool.objects.filter(pk=early.pk).update(description="slow")
                drawn.set()
                go_on.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        assert drawn.wait(30)
        pools.change(late.pk, pools.PoolChange(description="fast"), author=factories.BY)
        sending.send_pending(target.pk)
        sending.send_pending(target.pk)
        assert "fast" not in str(messages(receiver))
    finally:
        go_on.set()
        thread.join(30)
    while sending.send_pending(target.pk):
        pass
    assert [message["id"] for message in messages(receiver)] == expect(since)
