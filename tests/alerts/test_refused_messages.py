"""A message that its receiver refuses holds up none; a receiver that accepts nothing loses none, and is switched off."""

import http.server
from datetime import timedelta

import pytest
from django.urls import reverse

from pools.models import Alert, Delivery, Event, WebhookTarget
from pools.platform import database
from pools.platform.alerts import dispatch, outbox, targets
from pools.platform.alerts.dispatch import Answer
from pools.platform.conditions import evaluation
from pools.register import pools
from tests import factories, people
from tests.alerts.receivers import Received, Receiver
from tests.alerts.test_event_feed import expect, numbers, retry, send, subscriber
from tests.edges import api as apis


class Judge:
    """Answers `status` to a message with a `bad` text; keeps the numbers of the events that it accepts."""

    def __init__(self, *bad: str, status: int = 422) -> None:
        self.bad, self.status = bad, status
        self.accepted: list[int] = []

    def __call__(self, _handler: http.server.BaseHTTPRequestHandler, received: Received) -> int:
        event = received.event["data"].get("event")
        new = event["after"] if isinstance(event, dict) else received.event
        if any(text in str(new) for text in self.bad):
            return self.status
        if "sequence" in received.event:
            self.accepted.append(int(received.event["sequence"]))
        return 204


def describe(*texts: str) -> None:
    """Give a new pool these descriptions, one after another."""
    pool = factories.pool("10.0.0.0/24")
    for text in texts:
        pools.change(pool.pk, pools.PoolChange(description=text), author=factories.BY)


def failing() -> Alert | None:
    evaluation.evaluate()
    return Alert.objects.filter(code="webhook_failing", ended_at=None).first()


@pytest.mark.parametrize("status", [422, 500])
def test_an_event_that_is_always_refused_holds_up_none_and_is_given_up(
    receiver: Receiver, status: int
) -> None:
    target = subscriber(receiver, "pool.changed")
    since = target.event_position
    describe("one", "poison", "two")
    receiver.answer = judge = Judge("poison", status=status)
    for _ in range(dispatch.TRIES):
        retry(target)
        send(target)
    row = Delivery.objects.get(state="failed")
    assert judge.accepted == [pk for pk in expect(since, "pool.changed") if pk != row.log_event]
    assert (row.attempts, row.last_status) == (dispatch.TRIES, status)
    alert = failing()
    assert alert is not None
    assert (alert.level, "given up" in alert.detail) == ("error", True)
    (shown,) = apis.Api()(
        "GET", f"webhook-targets/{target.pk}/deliveries/?event=event&state=failed"
    ).json()["results"]
    assert (shown["log_event"], shown["last_status"]) == (row.log_event, status)
    page = people.browser().get(reverse("admin:pools_webhooktarget_change", args=[target.pk]))
    link = reverse("admin:pools_event_change", args=[row.log_event])
    assert f'href="{link}"' in page.content.decode()
    receiver.answer = lambda _handler, _received: 204
    outbox.send_again(row)
    assert send(target) == 1
    assert failing() is None


@pytest.mark.parametrize("status", [401, 503])
def test_a_receiver_that_accepts_nothing_is_switched_off_and_loses_nothing(
    receiver: Receiver, status: int
) -> None:
    """Its secret is an old one, or it is down."""
    target = subscriber(receiver, "pool.changed")
    since = target.event_position
    describe("one", "two")
    receiver.answer = lambda _handler, _received: status
    for _ in range(2 * dispatch.OFF_AFTER):
        retry(target)
        send(target)
    target.refresh_from_db()
    assert (target.enabled, target.switched_off_at is not None) == (False, True)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"pending"}
    tries = len(receiver.received)
    assert dispatch.OFF_AFTER <= tries <= 2 * dispatch.OFF_AFTER
    changed = Event.objects.filter(type="webhook.changed").get()
    assert changed.actor == "worker"
    alert = failing()
    assert alert is not None
    assert (alert.level, "switched off" in alert.detail) == ("error", True)
    pools.change(
        Event.objects.filter(type="pool.created").get().object_id,
        pools.PoolChange(description="meanwhile"),
        author=factories.BY,
    )
    receiver.received.clear()
    receiver.answer = lambda _handler, _received: 204
    targets.change(target, {"enabled": True}, author=factories.BY)
    send(target)
    assert numbers(receiver) == expect(since, "pool.changed")
    assert len(receiver.received) == 3
    assert failing() is None


def test_messages_that_wait_are_a_condition(receiver: Receiver) -> None:
    target = subscriber(receiver, "pool")
    factories.pool("10.0.0.0/24")
    outbox.write_events()
    assert failing() is None
    Delivery.objects.update(created_at=database.now() - timedelta(minutes=16))
    alert = failing()
    assert alert is not None
    assert (alert.level, alert.subject) == ("warning", f"webhook/{target.pk}")


def test_alerts_that_are_refused_hold_up_neither_new_alerts_nor_events(receiver: Receiver) -> None:
    target, _secret = receiver.target(event_types=["pool.changed"])
    for number in range(12):
        factories.drain(factories.pool(f"10.{number}.0.0/30"))
    evaluation.evaluate()
    refused = Delivery.objects.filter(target=target).count()
    assert refused >= 12
    receiver.answer = judge = Judge("pool_nearly_full", "allocation_failing")
    describe("one", "two")
    for _ in range(4):
        WebhookTarget.objects.update(wait_until=None)
        send(target)
    assert len(judge.accepted) == 2
    retry(target)
    test = outbox.write_test(target)
    dispatch.send_pending(target.pk)
    test.refresh_from_db()
    assert test.state == "delivered"


def test_a_target_that_was_deleted_meanwhile_is_no_failure(receiver: Receiver) -> None:
    target, _secret = receiver.target()
    delivery = outbox.write_test(target)
    targets.delete(target, author=factories.BY)
    dispatch.record_failure(delivery, Answer(500, "HTTP 500"))
    assert not Delivery.objects.exists()
