"""Messages that a receiver refuses, takes later, or takes."""

import http.server
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse

from ipam_site import data_folder
from pools.models import Alert, Delivery, Event, WebhookTarget
from pools.platform import database
from pools.platform.alerts import dispatch, outbox, targets
from pools.platform.alerts.dispatch import Answer
from pools.platform.conditions import evaluation, registry
from pools.register import pools
from tests import clock, factories, people
from tests.alerts import receivers
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


# --- The receiver's sample of docs/reference/alerts.md, word for word, in a real HTTPS server -----
DOCUMENT = (data_folder.PROJECT / "docs" / "reference" / "alerts.md").read_text()
Verify = Callable[[str, dict[str, str], bytes], bool]


@pytest.fixture
def verified() -> Verify:
    (source,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    space: dict[str, Any] = {}
    exec(compile(source, "docs/reference/alerts.md", "exec"), space)  # noqa: S102
    result: Verify = space["verified"]
    return result


@pytest.fixture
def strict(receiver: Receiver, verified: Verify) -> tuple[Receiver, str]:
    """A receiver that answers 204 to what it verified, and 401 to the rest; the target's secret."""
    target, secret = receiver.target()

    def answer(_handler: http.server.BaseHTTPRequestHandler, received: Received) -> int:
        return 204 if verified(secret, received.headers, received.body) else 401

    receiver.answer = answer
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 1
    assert Delivery.objects.get().last_status == 204
    return receiver, secret


def replay(receiver: Receiver, body: bytes, **changes: str) -> int:
    headers = receiver.received[0].headers | {k.replace("_", "-"): v for k, v in changes.items()}
    request = urllib.request.Request(f"{receiver.url}/hook", body, headers)
    context = ssl.create_default_context(cadata=receivers.AUTHORITY.pem)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_what_was_sent_is_verified_and_whatever_differs_is_not(
    strict: tuple[Receiver, str],
) -> None:
    receiver, _ = strict
    body = receiver.received[0].body
    event = receiver.received[0].event
    assert (event["type"], event["data"]["alert"]) == ("cadastre.alert.test", None)
    stamp = receiver.received[0].headers["X-Cadastre-Timestamp"]
    assert replay(receiver, body) == 204
    assert replay(receiver, body.replace(b"test", b"tent")) == 401
    assert replay(receiver, body, X_Cadastre_Timestamp=str(int(stamp) + 1)) == 401
    assert replay(receiver, body, X_Cadastre_Timestamp="soon") == 401
    assert replay(receiver, body, X_Cadastre_Signature="v1=00") == 401
    assert replay(receiver, body, X_Cadastre_Signature="") == 401


@pytest.mark.parametrize(("age", "status"), [(240, 204), (301, 401), (-360, 401)])
def test_a_message_older_than_five_minutes_is_refused(
    strict: tuple[Receiver, str], age: int, status: int
) -> None:
    receiver, secret = strict
    body, stamp = receiver.received[0].body, int(time.time()) - age
    signature = dispatch.sign(secret, stamp, body)
    changes = {"X_Cadastre_Timestamp": str(stamp), "X_Cadastre_Signature": signature}
    assert replay(receiver, body, **changes) == status


def test_the_document_tells_every_code_and_the_shape_of_a_message(
    strict: tuple[Receiver, str],
) -> None:
    alerts = DOCUMENT.partition("\n## Events\n")[0]
    documented = set(re.findall(r"^\| `([a-z_]+)` \| (?:error|warning|info)", alerts, re.MULTILINE))
    assert documented == set(registry.codes())
    (sample,) = re.findall(r"```json\n(.*?)```", alerts, re.DOTALL)
    assert set(json.loads(sample)) == set(strict[0].received[0].event)
    for link in re.findall(r"\]\(\.\./(runbooks/[^)]+)\)", DOCUMENT):
        assert (data_folder.PROJECT / "docs" / link).is_file()


# --- Retry-After of a receiver that is busy is honoured, up to an hour; no other answer shortens a
# pause
NOW = datetime(2026, 5, 5, 14, 2, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("0", 0),
        ("86400", 3600),
        ("9" * 1000, 3600),
        ("Tue, 05 May 2026 14:03:30 GMT", 90),
        ("Tuesday, 05-May-26 14:03:30 GMT", 90),
        ("Tue May  5 14:03:30 2026", 90),
        ("Tue, 05 May 2026 14:03:30 -0000", 90),
        ("Tue, 05 May 2026 14:01:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        ("", 0),
        ("-5", 0),
        ("1.5", 0),
        ("\u0663", 0),  # a digit, but not of ASCII
        ("soon", 0),
    ],
)
def test_a_header_is_a_number_of_seconds_or_a_date(
    text: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", NOW.timestamp)
    assert dispatch.parse_retry_after(text) == seconds


def _busy(status: int, text: str) -> Callable[[http.server.BaseHTTPRequestHandler, Received], None]:
    def respond(handler: http.server.BaseHTTPRequestHandler, _received: Received) -> None:
        handler.send_response(status)
        handler.send_header("Retry-After", text)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return respond


@pytest.mark.parametrize("status", [429, 503])
def test_nothing_is_sent_before_a_busy_receiver_says(receiver: Receiver, status: int) -> None:
    target, _secret = receiver.target(event_types=["*"])
    factories.pool("10.0.0.0/24")
    outbox.write_events()
    receiver.answer = _busy(status, "1800")
    before = clock.moment()
    assert dispatch.send_pending(target.pk) == 0
    delivery = outbox.write_test(target)  # ends the pause
    assert dispatch.send_pending(target.pk) == 0
    after = clock.moment()
    target.refresh_from_db()
    delivery.refresh_from_db()
    for moment in (target.wait_until, delivery.next_try_at):
        assert before + timedelta(minutes=30) <= moment <= after + timedelta(minutes=30)
    assert len(receiver.received) == 2
    assert dispatch.due_targets() == []


def test_a_short_retry_after_shortens_no_pause_and_gives_up_nothing_early(
    receiver: Receiver,
) -> None:
    """Sixteen tries within a second would lose the message."""
    target, _secret = receiver.target()
    outbox.write_test(target)
    WebhookTarget.objects.update(failures=12)
    Delivery.objects.update(attempts=12)
    receiver.answer = _busy(429, "1")
    before = clock.moment()
    dispatch.send_pending(target.pk)
    target.refresh_from_db()
    assert target.wait_until is not None
    assert min(target.wait_until, Delivery.objects.get().next_try_at) > before + timedelta(
        minutes=40
    )
