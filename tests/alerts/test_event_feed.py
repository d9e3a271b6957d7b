"""Events arrive at the targets that subscribe to them: one a message, at least once, none missing, none foreign."""

import contextlib
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.urls import reverse

from pools.core import errors
from pools.models import Delivery, Event, Now, Pool, WebhookTarget
from pools.platform import database, events
from pools.platform.alerts import dispatch, outbox, targets
from pools.platform.conditions import evaluation
from pools.register import pools
from tests import eventually, factories, people
from tests.alerts.receivers import Receiver
from tests.edges import api as apis


def subscriber(receiver: Receiver, *types: str, **options: Any) -> WebhookTarget:
    target, _secret = receiver.target(alerts=False, event_types=list(types or ("*",)), **options)
    return target


def messages(receiver: Receiver) -> list[dict[str, Any]]:
    """The messages that arrived."""
    return [received.event for received in receiver.received]


def numbers(receiver: Receiver) -> list[int]:
    """The numbers of the events in the messages that arrived."""
    return [int(message["sequence"]) for message in messages(receiver)]


def send(target: WebhookTarget) -> int:
    """Write the messages about new events, and send what is due to a target."""
    outbox.write_events()
    return dispatch.send_pending(target.pk)


def expect(since: int, *types: str) -> list[int]:
    """The numbers of all events of these types."""
    rows = Event.objects.filter(pk__gt=since).order_by("pk")
    return [
        event.pk
        for event in rows
        if not types or event.type in types or event.type.partition(".")[0] in types
    ]


def retry(target: WebhookTarget) -> None:
    """As if all pauses were over."""
    Delivery.objects.filter(target=target).update(next_try_at=Now())
    WebhookTarget.objects.filter(pk=target.pk).update(wait_until=None)


def test_each_event_arrives_as_a_message_with_its_number(receiver: Receiver) -> None:
    factories.pool("10.9.0.0/24")  # before the subscription
    target, _ = receiver.target(alerts=False, event_types=["*"])
    since = target.event_position
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    pools.change(pool.pk, pools.PoolChange(description="new"), author=factories.BY)
    count = len(expect(since))
    assert send(target) == count
    last = receiver.received[-1]
    assert last.headers["Content-Type"].startswith("application/cloudevents+json")
    assert last.event["id"] == last.headers["X-Cadastre-Delivery"]
    assert numbers(receiver) == expect(since)
    assert (last.event["type"], last.event["data"]["event"]["pool"]) == (
        "cadastre.event.pool.changed",
        pool.name,
    )
    assert last.event["data"]["event"]["after"]["description"] == "new"
    assert len({message["id"] for message in messages(receiver)}) == count
    assert send(target) == 0


def test_a_target_receives_only_its_types_clusters_and_pools(receiver: Receiver) -> None:
    mine, other = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    of_type = subscriber(receiver, "pool.changed", "released", name="type")
    of_cluster = subscriber(receiver, "*", name="cluster", clusters=[mine.cluster_id])
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
        of_cluster: [*rows.filter(pool_id=mine.pk).order_by("pk").values_list("pk", flat=True)],
        of_pool: [*rows.filter(pool_id=other.pk).order_by("pk").values_list("pk", flat=True)],
    }  # fmt: skip
    for target, ids in expected.items():
        receiver.received.clear()
        send(target)
        assert numbers(receiver) == ids, target.name
        assert ids


def test_a_deleted_cluster_does_not_widen_a_subscription(receiver: Receiver) -> None:
    from pools.register import clusters

    cluster = factories.cluster()
    target = subscriber(receiver, "*", clusters=[cluster.pk])
    clusters.remove(cluster, author=factories.BY)
    factories.pool("10.1.0.0/24")
    send(target)
    assert {message["type"] for message in messages(receiver)} == {"cadastre.event.cluster.deleted"}


def test_what_failed_is_sent_again_with_the_same_id_and_number(receiver: Receiver) -> None:
    target = subscriber(receiver, "pool.created")
    factories.pool("10.0.0.0/24")
    receiver.answer = lambda _handler, _received: 500
    assert send(target) == 0
    target.refresh_from_db()
    assert target.failures == 1
    assert target.wait_until is not None
    (shown,) = apis.Api()("GET", f"webhook-targets/{target.pk}/deliveries/").json()["results"]
    assert (shown["last_status"], shown["last_error"]) == (500, "HTTP 500: not accepted")
    page = people.browser().get(reverse("admin:pools_webhooktarget_change", args=[target.pk]))
    assert "HTTP 500: not accepted" in page.content.decode()
    assert dispatch.due_targets() == []
    receiver.answer = lambda _handler, _received: 204
    retry(target)
    assert send(target) == 1
    first, second = receiver.received
    assert first.body == second.body
    target.refresh_from_db()
    assert (target.failures, target.accepted_at is not None) == (0, True)


def test_a_killed_worker_loses_nothing(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed before the number is written: its messages are not written either."""
    target = subscriber(receiver)
    since = target.event_position
    factories.pool("10.0.0.0/24")

    class Killed(BaseException):
        pass

    def kill(*_: Any, **__: Any) -> bool:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Delivery.objects, "bulk_create", kill)
        with pytest.raises(Killed):
            outbox.write_events()
    target.refresh_from_db()
    assert (target.event_position, Delivery.objects.count()) == (since, 0)
    send(target)
    assert numbers(receiver) == expect(since)
    send(target)
    assert numbers(receiver) == expect(since)


def test_many_events_are_read_page_by_page(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_PAGE", 7)
    target = subscriber(receiver, "instance", "block", "released")
    since = target.event_position
    factories.ask(factories.pool("10.0.0.0/24"), *factories.holders(40))
    assert outbox.write_events() == 40
    rows = Delivery.objects.order_by("pk").values_list("log_event", flat=True)
    assert list(rows) == expect(since, "instance", "block", "released")


def test_more_events_wait_in_the_log_than_as_messages(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST_WAITING", 5)
    monkeypatch.setattr(outbox, "_PAGE", 5)
    target = subscriber(receiver)
    since = target.event_position
    factories.ask(factories.pool("10.0.0.0/24"), *factories.holders(20))
    for _ in range(3):
        assert outbox.write_events() <= 5
    assert Delivery.objects.count() == 5
    while send(target):
        pass
    assert numbers(receiver) == expect(since)


def test_a_disabled_target_goes_on_where_it_was(receiver: Receiver) -> None:
    target = subscriber(receiver)
    since = target.event_position
    targets.change(target, {"enabled": False}, author=factories.BY)
    factories.pool("10.0.0.0/24")
    assert outbox.write_events() == 0
    targets.change(target, {"enabled": True}, author=factories.BY)
    send(target)
    assert numbers(receiver) == expect(since)


def test_messages_that_arrived_are_deleted_after_a_day_and_failed_ones_are_not(
    receiver: Receiver,
) -> None:
    target = subscriber(receiver, "pool")
    factories.pool("10.0.0.0/24")
    factories.pool("10.1.0.0/24")
    send(target)
    old = database.now() - timedelta(days=2)
    rows = Delivery.objects.order_by("pk")
    rows.update(created_at=old)
    rows.filter(pk=rows[0].pk).update(state="failed")
    count = rows.count()
    assert evaluation.tidy(90) == count - 1
    assert [row.state for row in rows] == ["failed"]


def test_no_message_has_a_secret(receiver: Receiver) -> None:
    target, secret = receiver.target(alerts=False, event_types=["*"])
    targets.rotate(target, author=factories.BY)
    targets.change(target, {"url": f"{receiver.url}/token-in-path"}, author=factories.BY)
    send(target)
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
        assert targets.parse_type(subject) == subject


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"event_types": ["colour"]}, "invalid_choice"),
        ({"event_types": ["pool.x y"]}, "invalid_choice"),
        ({"event_types": "pool"}, "wrong_type"),
        ({"clusters": [0]}, "wrong_type"),
        ({"clusters": [99999]}, "unknown_cluster"),
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
        send(target)
        send(target)
        assert "fast" not in str(messages(receiver))
    finally:
        go_on.set()
        thread.join(30)
    while send(target):
        pass
    assert numbers(receiver) == expect(since)


def _arrived(delivery: Delivery) -> None:
    dispatch.record_success(delivery, 200)


def _refused(delivery: Delivery) -> None:
    dispatch.record_failure(delivery, dispatch.answer(500, ""))


_WAITS_FOR_ME = (
    "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("work", [_arrived, _refused, outbox.send_again])
def test_a_target_is_deleted_while_one_of_its_messages_is_recorded(
    receiver: Receiver, work: Callable[[Delivery], None]
) -> None:
    """Both lock the target before its messages: the deletion waits for nobody, and is no deadlock."""
    target = subscriber(receiver)
    factories.pool("10.0.0.0/24")
    outbox.write_events()
    delivery = Delivery.objects.select_related("target").first()
    assert delivery is not None

    def record() -> None:
        try:
            with contextlib.suppress(errors.NotFound):
                work(delivery)
        finally:
            connection.close()

    thread = threading.Thread(target=record)
    with transaction.atomic():
        WebhookTarget.objects.select_for_update().get(pk=target.pk)
        thread.start()
        eventually.until(lambda: database.rows(_WAITS_FOR_ME, []))
        Delivery.objects.select_for_update(nowait=True).get(pk=delivery.pk)
        targets.delete(target, author=factories.BY)
    thread.join(30)
    assert not Delivery.objects.exists()
