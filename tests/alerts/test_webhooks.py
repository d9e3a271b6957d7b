"""Webhooks that send events."""

import hashlib
import hmac
import http.server
import secrets as random
import socket
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from pools.core import errors
from pools.models import Clock, Delivery, Event, Now, WebhookTarget, WebhookTargetEvent
from pools.platform import audit
from pools.platform.alerts import dispatch, outbox, targets
from pools.platform.conditions import evaluation
from pools.platform.history import search
from tests import clock, factories, people
from tests.alerts import receivers
from tests.alerts.pools import full_pool
from tests.alerts.receivers import Received, Receiver
from tests.alerts.test_event_feed import retry


def test_an_alert_arrives_signed_when_it_opens_and_when_it_ends(
    receiver: Receiver, settings: Any
) -> None:
    settings.IPAM_URL = "https://ipam.example.org/"
    target, secret = receiver.target(codes=["pool_nearly_full"])
    pool = factories.pool("10.0.0.0/30", cooldown=0)
    blocks = [factories.take(pool), factories.take(pool)]
    assert evaluation.evaluate().deliveries == 1
    assert dispatch.send_pending(target.pk) == 1
    (one,) = receiver.received
    assert one.path == "/hook"
    event = one.event
    assert (event["specversion"], event["type"]) == ("1.0", "cadastre.alert.opened")
    assert event["source"] == "https://ipam.example.org/"
    assert event["data"]["link"] == f"https://ipam.example.org/admin/pools/pool/{pool.pk}/change/"
    assert event["data"]["alert"]["level"] == "error"
    assert event["id"] == one.headers["X-Cadastre-Delivery"]
    timestamp = one.headers["X-Cadastre-Timestamp"]
    expected = hmac.new(secret.encode(), timestamp.encode() + b"." + one.body, hashlib.sha256)
    assert one.headers["X-Cadastre-Signature"] == f"v1={expected.hexdigest()}"
    for block in blocks:
        factories.give_back(block)
    evaluation.evaluate()
    dispatch.send_pending(target.pk)
    assert [got.event["data"]["event"] for got in receiver.received] == ["opened", "ended"]
    assert receiver.received[1].event["data"]["alert"]["open"] is False
    assert set(Delivery.objects.values_list("state", "attempts")) == {("delivered", 1)}


def test_a_target_is_told_only_what_it_wants_and_while_it_is_on(receiver: Receiver) -> None:
    receiver.target("leaks", codes=["leaked_blocks"])
    receiver.target("off", enabled=False)
    full_pool()
    assert not Delivery.objects.exists()


def test_the_waits_grow_and_after_the_last_try_it_is_given_up_until_somebody_sends_again(
    receiver: Receiver,
) -> None:
    target, _ = receiver.target(codes=["pool_nearly_full"])
    full_pool()
    receiver.answer = lambda _handler, _received: 500
    for number in range(dispatch.TRIES):
        retry(target)
        WebhookTarget.objects.update(accepted_at=Clock())  # another message
        before = clock.moment()
        dispatch.send_pending(target.pk)
        after = clock.moment()
        row = Delivery.objects.get()
        wait = timedelta(seconds=min(5 * 2**number, 3600))
        assert before + 0.75 * wait <= row.next_try_at <= after + 1.25 * wait
    assert (row.state, row.attempts, row.last_status) == ("failed", dispatch.TRIES, 500)
    retry(target)
    assert dispatch.send_pending(target.pk) == 0
    assert len(receiver.received) == dispatch.TRIES
    receiver.answer = lambda _handler, _received: 200
    outbox.send_again(row)
    assert dispatch.send_pending(target.pk) == 1
    with pytest.raises(Exception, match="arrived"):
        outbox.send_again(row)


def test_a_failing_target_holds_up_no_other(receiver: Receiver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        silent.close()
        bad, _ = targets.create("bad", url, author=factories.BY)
    good, _ = receiver.target("good")
    full_pool()
    assert set(dispatch.due_targets()) == {bad.pk, good.pk}
    assert dispatch.send_pending(bad.pk) == 0
    assert dispatch.due_targets() == [good.pk]
    assert dispatch.send_pending(good.pk) == 2
    assert Delivery.objects.filter(target=bad, attempts=1).count() == 1  # the others were not tried


def test_the_answer_is_not_kept_however_large(receiver: Receiver) -> None:
    def endless(handler: http.server.BaseHTTPRequestHandler, _received: Received) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(10**12))
        handler.end_headers()
        handler.wfile.write(b"canary" * 1000)

    receiver.answer = endless
    target, _ = receiver.target(codes=["pool_nearly_full"])
    full_pool()
    assert dispatch.send_pending(target.pk) == 1
    assert "canary" not in str(Delivery.objects.values().get())


def test_what_waits_for_a_target_that_is_switched_off_is_given_up(receiver: Receiver) -> None:
    target, _ = receiver.target()
    full_pool()
    off = targets.change(target, {"enabled": False}, author=factories.BY)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"failed"}
    for refused in (
        lambda: outbox.write_test(off),
        lambda: outbox.send_again(Delivery.objects.all()[0]),
    ):
        with pytest.raises(errors.Conflict):
            refused()
    targets.change(off, {"enabled": True}, author=factories.BY)
    outbox.send_again(Delivery.objects.all()[0])
    assert dispatch.send_pending(target.pk) == 1


# --- Who made, changed and deleted webhooks is in the log, and nothing of their secrets is --------
URL = "https://hooks.example.org:8443/services/T0/very-secret"


@pytest.fixture
def target() -> WebhookTarget:
    made, _ = targets.create("ops", URL, ca=receivers.AUTHORITY.pem, author=factories.BY)
    return made


@pytest.fixture
def later(target: WebhookTarget) -> None:
    """A second after it was made."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.clock_offset', '1 second', true)")


def types() -> list[str]:
    return list(Event.objects.order_by("id").values_list("type", flat=True))


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ({"name": "on-call"}, "webhook.changed"),
        ({"codes": ["cluster_stale"]}, "webhook.changed"),
        ({"enabled": False}, "webhook.changed"),
        ({"url": f"{URL}-2"}, "webhook.url_changed"),
        ({"ca": ""}, "webhook.ca_changed"),
    ],
)
def test_a_change_is_told(target: WebhookTarget, values: dict[str, Any], type_: str) -> None:
    targets.change(target, values, author=factories.BY)
    assert types() == ["webhook.created", type_]
    last = Event.objects.order_by("id").last()
    assert last is not None
    assert last.actor == factories.BY.actor
    assert last.message == f"{values.get('name', 'ops')} at hooks.example.org:8443"


def test_so_are_a_new_secret_and_the_end(target: WebhookTarget, later: None) -> None:
    targets.rotate(target, author=factories.BY)
    targets.delete(target, author=factories.BY)
    assert types() == ["webhook.created", "webhook.secret_replaced", "webhook.deleted"]


def test_what_deliveries_write_and_a_new_key_are_no_change(
    target: WebhookTarget, settings: Any
) -> None:
    WebhookTarget.objects.update(failures=3, wait_until=Now())
    settings.IPAM_KEY_RING = [random.token_urlsafe(32), *settings.IPAM_KEY_RING]
    assert targets.reseal().resealed == 1
    assert types() == ["webhook.created"]


def test_nothing_secret_is_in_them(target: WebhookTarget, later: None) -> None:
    sealed = target.sealed
    secret = targets.rotate(target, author=factories.BY)
    targets.change(target, {"url": f"{URL}-2"}, author=factories.BY)
    told = f"{list(WebhookTargetEvent.objects.values())}{list(Event.objects.values())}"
    target.refresh_from_db()
    for hidden in (secret, sealed, target.sealed, "very-secret", "BEGIN CERTIFICATE"):
        assert hidden not in told


def test_they_are_searched_shown_and_sealed(target: WebhookTarget) -> None:
    targets.change(target, {"enabled": False}, author=factories.BY)
    wanted = search.HistoryQuery(name="ops", kind="webhook")
    changed, created = search.search([wanted]).events
    assert (created.type, changed.type) == ("webhook.created", "webhook.changed")
    before, after = search.changes([changed])[changed.pk].__dict__.values()
    assert (before["enabled"], after["enabled"]) == (True, False)
    page = people.browser(people.VIEWER).get(reverse("admin:pools_event_change", args=[changed.pk]))
    assert "webhook.changed" in page.content.decode()
    assert audit.seal() == 2
    assert "pools_webhooktargetevent" in audit.current_columns()
