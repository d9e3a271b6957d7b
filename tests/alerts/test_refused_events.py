"""An event that its receiver refuses is set aside, and holds up none; an unavailable receiver loses none."""

from __future__ import annotations

import http.server
import json
from datetime import timedelta

import pytest
from django.urls import reverse

from pools.models import Alert, Delivery, WebhookTarget
from pools.models.fields import Now
from pools.platform.alerts import outbox, refused_events, sending, targets
from pools.platform.conditions import evaluation
from pools.register import pools
from tests import clock, factories, people
from tests.alerts.receivers import Received, Receiver
from tests.alerts.test_event_feed import expect, resume, subscriber
from tests.edges import api as apis

pytestmark = pytest.mark.django_db


class Judge:
    """Answers `status` to an alert or a new value with a `bad` text; keeps the ids of the events it accepts."""

    def __init__(self, *bad: str, status: int = 422) -> None:
        self.bad, self.status = bad, status
        self.accepted: list[str] = []

    def __call__(self, _handler: http.server.BaseHTTPRequestHandler, received: Received) -> int:
        batch = received.event if isinstance(received.event, list) else []
        new = str([message["data"]["event"]["after"] for message in batch] or received.event)
        if any(text in new for text in self.bad):
            return self.status
        self.accepted += [message["id"] for message in batch]
        return 204


def describe(count: int, *special: tuple[int, str]) -> None:
    """Change the description of a pool many times; `special` are the texts of some changes."""
    pool = factories.pool("10.0.0.0/24")
    texts = dict(special)
    for number in range(count):
        text = texts.get(number, f"number {number}")
        pools.change(pool.pk, pools.PoolChange(description=text), author=factories.BY)


def send_all(target: WebhookTarget, runs: int = 8) -> None:
    """Send as if the pauses of the target, but not those of its messages, were over."""
    for _ in range(runs):
        resume(target)
        sending.send_pending(target.pk)


def retry(target: WebhookTarget) -> None:
    """Try what is set aside again, as if its pause were over."""
    Delivery.objects.filter(target=target).update(next_try_at=Now())
    resume(target)
    sending.send_pending(target.pk)


def set_aside() -> Delivery:
    return Delivery.objects.get(event="event")


@pytest.mark.exhaustive
@pytest.mark.parametrize("status", [400, 403, 413, 422])
def test_the_event_that_is_refused_is_set_aside_and_the_others_arrive_in_order(
    receiver: Receiver, status: int
) -> None:
    target = subscriber(receiver)
    since = target.event_position
    describe(40, (17, "poison"))
    receiver.answer = judge = Judge("poison", status=status)
    send_all(target)
    row = set_aside()
    poison = f"event-{row.log_event}"
    assert judge.accepted == [uid for uid in expect(since) if uid != poison]
    assert poison in expect(since)
    assert [message["id"] for message in json.loads(row.body)] == [poison]
    assert (row.state, row.attempts, row.last_status) == ("pending", 1, status)
    assert row.last_error == f"HTTP {status}: not accepted"
    target.refresh_from_db()
    assert (target.events_failing_since, target.failures) == (None, 0)
    assert len(receiver.received) < 60
    # The numbers have a gap at the event that is missing, and none else.
    sent = [m for r in receiver.received for m in r.event if m["id"] in judge.accepted]
    numbers = {int(message["sequence"]) for message in sent}
    own = int(json.loads(row.body)[0]["sequence"])
    assert numbers | {own} == set(range(1, len(expect(since)) + 1))


@pytest.mark.exhaustive
def test_a_refused_event_arrives_when_the_receiver_takes_it(receiver: Receiver) -> None:
    target = subscriber(receiver)
    describe(3, (2, "poison"))
    receiver.answer = Judge("poison")
    send_all(target)
    body, uid = set_aside().body, str(set_aside().uid)
    receiver.answer = lambda _handler, _received: 204
    receiver.received.clear()
    retry(target)
    (one,) = receiver.received
    assert one.body.decode() == body
    assert one.headers["X-Cadastre-Delivery"] == uid
    assert one.headers["Content-Type"].startswith("application/cloudevents-batch+json")
    assert set_aside().state == "delivered"


@pytest.mark.exhaustive
def test_an_event_that_is_always_refused_is_given_up_and_shown(receiver: Receiver) -> None:
    target = subscriber(receiver)
    describe(3, (1, "poison"))
    receiver.answer = Judge("poison")
    send_all(target)
    evaluation.evaluate()
    alert = Alert.objects.get(code="webhook_events_behind", ended_at=None)
    assert (alert.level, "single events" in alert.detail) == ("warning", True)
    for _ in range(outbox.TRIES):
        retry(target)
    row = set_aside()
    assert (row.state, row.attempts, row.last_status) == ("failed", outbox.TRIES, 422)
    evaluation.evaluate()
    alert.refresh_from_db()
    assert (alert.level, "given up" in alert.detail) == ("error", True)
    (shown,) = apis.Api()(
        "GET", f"webhook-targets/{target.pk}/deliveries/?event=event&state=failed"
    ).json()["results"]
    assert (shown["log_event"], shown["last_status"]) == (row.log_event, 422)
    page = people.browser().get(reverse("admin:pools_webhooktarget_change", args=[target.pk]))
    link = reverse("admin:pools_event_change", args=[row.log_event])
    assert f'href="{link}"' in page.content.decode()
    receiver.answer = lambda _handler, _received: 204
    outbox.send_again(row)
    assert sending.send_pending(target.pk) == 2  # and the event of the token that asked above
    evaluation.evaluate()
    assert not Alert.objects.filter(code="webhook_events_behind", ended_at=None).exists()


@pytest.mark.exhaustive
def test_a_receiver_that_refuses_everything_loses_nothing(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its secret is an old one, say. It is repaired after more tries than a single event has."""
    monkeypatch.setattr(refused_events, "MOST", 2)
    target = subscriber(receiver)
    since = target.event_position
    describe(12)
    receiver.answer = lambda _handler, _received: 401
    for _ in range(2 * outbox.TRIES + 8):
        Delivery.objects.update(next_try_at=Now())
        send_all(target, 1)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"pending"}
    assert Delivery.objects.count() == 2
    assert min(Delivery.objects.values_list("attempts", flat=True)) > outbox.TRIES
    receiver.answer = judge = Judge()
    Delivery.objects.update(next_try_at=Now())
    send_all(target)
    assert sorted(judge.accepted) == sorted(expect(since))


@pytest.mark.exhaustive
def test_a_receiver_that_refuses_for_a_moment_gets_all_in_order(receiver: Receiver) -> None:
    target = subscriber(receiver)
    since = target.event_position
    describe(12)
    receiver.answer = lambda _handler, _received: 400
    send_all(target, 3)
    receiver.answer = judge = Judge()
    send_all(target, 1)
    assert judge.accepted == expect(since)
    assert not Delivery.objects.exists()


@pytest.mark.sample(6)
@pytest.mark.parametrize("status", [302, 408, 410, 429, 500, 503])
def test_an_unavailable_receiver_loses_nothing_and_gets_all_in_order(
    receiver: Receiver, status: int
) -> None:
    target = subscriber(receiver)
    since = target.event_position
    describe(6)
    receiver.answer = lambda _handler, _received: status
    send_all(target, 20)
    first = {received.event[0]["id"] for received in receiver.received}
    assert first == {expect(since)[0]}
    receiver.answer = lambda _handler, _received: 404  # on its way back
    send_all(target, 3)
    receiver.answer = judge = Judge()
    send_all(target, 1)
    assert judge.accepted == expect(since)
    assert not Delivery.objects.exists()


@pytest.mark.exhaustive
def test_a_receiver_that_is_too_slow_for_large_batches_gets_small_ones(receiver: Receiver) -> None:
    """Its proxy answers 504."""
    target = subscriber(receiver)
    since = target.event_position
    describe(60)
    judge = Judge()

    def slow(handler: http.server.BaseHTTPRequestHandler, received: Received) -> int:
        return 504 if len(received.event) > 20 else judge(handler, received)

    receiver.answer = slow
    send_all(target, 25)
    assert judge.accepted == expect(since)


@pytest.mark.exhaustive
def test_what_is_set_aside_waits_while_the_target_is_disabled(receiver: Receiver) -> None:
    target = subscriber(receiver)
    describe(1, (0, "poison"))
    receiver.answer = Judge("poison")
    send_all(target)
    targets.change(target, {"enabled": False}, author=factories.BY)
    assert set_aside().state == "pending"
    retry(target)
    assert set_aside().attempts == 1
    receiver.answer = Judge()
    targets.change(target, {"enabled": True}, author=factories.BY)
    retry(target)
    assert set_aside().state == "delivered"


@pytest.mark.exhaustive
def test_alerts_that_are_refused_hold_up_neither_new_alerts_nor_events(receiver: Receiver) -> None:
    target, _secret = receiver.target(event_types=["pool.changed"])
    for number in range(12):
        factories.drain(factories.pool(f"10.{number}.0.0/30"))
    evaluation.evaluate()
    refused = Delivery.objects.filter(target=target).count()
    assert refused >= 12
    receiver.answer = judge = Judge("pool_nearly_full", "allocation_failing")
    describe(2)
    sending.send_pending(target.pk)
    assert len(judge.accepted) == 2
    for _ in range(refused + 2):
        Delivery.objects.update(next_try_at=Now())
        resume(target)
        sending.send_pending(target.pk)
    target.refresh_from_db()
    assert target.failures > 3  # messages in a row were refused
    assert target.wait_until is not None
    assert target.wait_until < clock.moment() + timedelta(seconds=7)
    Delivery.objects.update(next_try_at=Now() - timedelta(minutes=1))  # all are due at once
    test = outbox.write_test(target)
    resume(target)
    sending.send_pending(target.pk)
    test.refresh_from_db()
    assert test.state == "delivered"
