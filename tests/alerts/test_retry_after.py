"""Retry-After of a receiver that is busy is honoured, up to an hour; no other answer shortens a pause."""

import http.server
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from pools.models import Delivery, WebhookTarget
from pools.platform.alerts import dispatch, outbox
from tests import clock, factories
from tests.alerts.receivers import Received, Receiver

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
