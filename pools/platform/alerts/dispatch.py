"""Sending of webhooks, messages that were tried least first.

A worker claims each message for a while. If it is killed, the message is still pending, and due again then: it is
sent again with the same id. So a message arrives at least once. The dispatcher is a thread of each watcher, which
needs neither Redis nor a Celery worker.
"""

import hashlib
import hmac
import logging
import random
import threading
import time
from collections.abc import Mapping
from concurrent import futures
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import urllib3
from django import db
from django.conf import settings
from django.db.models import F, Min, Q

from pools.core import errors
from pools.models import Clock, Delivery, DeliveryState, Now, TargetKind, WebhookTarget
from pools.platform import database, events
from pools.platform.alerts import notifications, outbox, targets
from pools.platform.outbound import credentials, faults, guard, transport

TRIES = 16  # about eight hours
OFF_AFTER = 48  # about a day and a half
TIME_LIMIT = 30  # seconds for one target, before other targets get their turn
INTERVAL = 2  # seconds between two looks for messages
# That one dispatcher sends to at the same time, each with a connection to the database.
RECEIVERS = 16
LONGEST_PAUSE = 3600  # seconds between two tries, and the most of a Retry-After
_FIRST = 5  # seconds between the first tries; the pause doubles each time, up to LONGEST_PAUSE
_CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
# A refusal (4xx) is about the message: another one may be accepted. Whatever else is not 2xx is about the receiver.
_GONE = 410
_UNAVAILABLE = {408, _GONE, 425, 429}  # statuses of 4xx that are not about the message
_BUSY = {429, 503}
_REASONS = {_GONE: "the receiver says that it is gone for good"}
_NO_PAUSE = Q(wait_until=None) | Q(wait_until__lte=Clock())
CLAIM = timedelta(seconds=90)  # longer than any try takes
CONNECT, READ = 5.0, 10.0  # timeouts in seconds: to connect, and to wait for the next bytes
WHOLE = 20.0  # seconds until the status of the response
TIMESTAMP = "X-Cadastre-Timestamp"  # Unix time at which this attempt was signed
SIGNATURE = "X-Cadastre-Signature"  # v1=<hex>
DELIVERY = "X-Cadastre-Delivery"  # the same for each attempt
VERSION = "v1"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """`status` is None without an answer; `error` is "" if the message was accepted; `wait` in seconds."""

    status: int | None
    error: str
    wait: float = 0  # at least so long until the next try

    @property
    def accepted(self) -> bool:
        return not self.error

    @property
    def refused(self) -> bool:
        """True if the receiver refuses this message, and may accept others."""
        status = self.status or 0
        return 400 <= status < 500 and status not in _UNAVAILABLE


def answer(status: int, retry_after: str) -> Answer:
    """Return the answer that a status and a header Retry-After of a response mean."""
    if 200 <= status < 300:
        return Answer(status, "")
    redirect = "a redirect, which is not followed" if 300 <= status < 400 else "not accepted"
    error = f"HTTP {status}: {_REASONS.get(status, redirect)}"
    wait = parse_retry_after(retry_after) if status in _BUSY else 0
    return Answer(status, error, LONGEST_PAUSE if status == _GONE else wait)


def parse_retry_after(text: str) -> float:
    """Return the seconds of a header Retry-After (RFC 9110): a number or a date; 0 if it is neither."""
    try:
        return min(urllib3.Retry().parse_retry_after(text), LONGEST_PAUSE)
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return 0


def due_targets() -> list[int]:
    """Return the targets with due messages, longest due first."""
    due = Q(deliveries__state=DeliveryState.PENDING, deliveries__next_try_at__lte=Clock())
    rows = WebhookTarget.objects.filter(_NO_PAUSE, due, enabled=True)
    rows = rows.annotate(since=Min("deliveries__next_try_at")).order_by("since", "pk")
    return list(rows.values_list("pk", flat=True))


@db.transaction.atomic
def claim(target_id: int) -> Delivery | None:
    """Return the next due message of a target, which nobody else sends then; None while it pauses or is disabled.

    Messages that were tried less come first, so that those which a receiver refuses hold up no new one; those of
    alerts come before events, of which many may wait.
    """
    target = WebhookTarget.objects.filter(_NO_PAUSE, pk=target_id, enabled=True)
    if not target.select_for_update().first():
        return None
    rows = Delivery.objects.filter(target=target_id, state=DeliveryState.PENDING)
    due = rows.filter(next_try_at__lte=Clock()).select_related("target")
    delivery = due.order_by("attempts", F("log_event").asc(nulls_first=True), "pk").first()
    if delivery is not None:
        rows.filter(pk=delivery.pk).update(next_try_at=Clock() + CLAIM)
    return delivery


def send_pending(target_id: int, *, stopped: threading.Event | None = None) -> int:
    """Send the due messages of a target; return how many arrived.

    It ends when the receiver is unavailable, after `TIME_LIMIT`, and when `stopped` is set.
    """
    sent, deadline = 0, time.monotonic() + TIME_LIMIT
    while time.monotonic() < deadline and not (stopped and stopped.is_set()):
        delivery = claim(target_id)
        if delivery is None:
            break
        sent += send(delivery).accepted
    return sent


def send(delivery: Delivery) -> Answer:
    """Try to send a message outside a transaction."""
    try:
        answer = _deliver(delivery)
    except Exception:
        # A delivery that takes too long is not tried again at once.
        record_failure(delivery, Answer(None, "the attempt was broken off"))
        raise
    if answer.accepted:
        record_success(delivery, answer.status)
    else:
        record_failure(delivery, answer)
    return answer


def _deliver(delivery: Delivery) -> Answer:
    """Send a message in the way of its target's kind."""
    target = delivery.target
    try:
        if target.kind is TargetKind.EMAIL:
            return Answer(None, notifications.send_email(delivery))
        secret, query = targets.secrets_of(target)
        if target.kind is TargetKind.SERVICE:
            return Answer(None, notifications.send_to_service(delivery, query))
        return _post(delivery, secret, query)
    except (faults.ClusterFault, errors.InvalidInput) as fault:
        return Answer(None, f"{fault.code}: {fault.message}")


def _post(delivery: Delivery, secret: str, query: str) -> Answer:
    """Post a message, and return what the receiver answers. Raises ClusterFault."""
    target, body = delivery.target, delivery.body.encode()
    timestamp = int(database.now().timestamp())
    headers = {
        "Content-Type": _CONTENT_TYPE,
        "User-Agent": settings.IPAM_USER_AGENT,
        DELIVERY: str(delivery.uid),
        TIMESTAMP: str(timestamp),
        SIGNATURE: sign(secret, timestamp, body),
    }
    status, retry_after = post(
        credentials.Access(target.url.removesuffix(targets.HIDDEN_QUERY), ca=target.ca),
        body,
        headers,
        query=query,
        allow_loopback=settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS,
    )
    return answer(status, retry_after)


def post(
    access: credentials.Access,
    body: bytes,
    headers: Mapping[str, str],
    *,
    query: str = "",
    allow_loopback: bool = False,
    resolver: guard.Resolver = guard.system_resolver,
) -> tuple[int, str]:
    """Send a POST with the guard and the TLS of API servers; return the HTTP status, whatever it is, and Retry-After.

    Redirects are not followed. `query` is that of the URL, which may be a secret: no fault and no log has it.
    Raises ClusterFault: Unreachable, AddressNotAllowed, TLSRefused.
    """
    target = guard.parse_url(access.server)

    def addresses() -> list[str]:
        return guard.resolve(
            target,
            allow_loopback=allow_loopback,
            loopback_setting="IPAM_ALLOW_LOOPBACK_WEBHOOKS",
            resolver=resolver,
        )

    connections = transport.Connections(access, addresses)
    late = threading.Timer(WHOLE, connections.interrupt)
    late.daemon = True
    late.start()
    try:
        response = connections.urlopen(
            "POST",
            f"{access.server}?{query}" if query else access.server,
            body=body,
            headers=dict(headers),
            timeout=urllib3.Timeout(connect=CONNECT, read=READ),
            redirect=False,
            preload_content=False,
        )
        status, retry_after = int(response.status), response.headers.get("Retry-After", "")
        response.close()
    except faults.NO_ANSWER as error:
        raise faults.fault_of(error) from error
    finally:
        late.cancel()
        connections.clear()
    return status, retry_after


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the value of the signature header, by which a receiver verifies sender and age: `v1=` and 64 hex digits."""
    signed = str(timestamp).encode() + b"." + body
    return f"{VERSION}={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def record_success(delivery: Delivery, status: int | None) -> None:
    with db.transaction.atomic():
        # The target before its messages, as all others lock them: else its deletion would be a deadlock.
        WebhookTarget.objects.filter(pk=delivery.target_id).update(
            failures=0, wait_until=None, accepted_at=Clock()
        )
        Delivery.objects.filter(pk=delivery.pk).update(
            state=DeliveryState.DELIVERED,
            attempts=F("attempts") + 1,
            delivered_at=Now(),
            last_status=status,
            last_error="",
        )


def record_failure(delivery: Delivery, answer: Answer) -> None:
    """Schedule the next try, or give the message up; pause the target, so that messages do not pile on it.

    A message is given up after TRIES if the target has accepted another one since it was written. Else the target
    seems to accept nothing: after OFF_AFTER failures it is switched off, and its messages wait.
    """
    with db.transaction.atomic(), events.recorded_by(events.WORKER):
        target = WebhookTarget.objects.select_for_update().filter(pk=delivery.target_id).first()
        if target is None:
            return
        accepted = target.accepted_at is not None and target.accepted_at > delivery.created_at
        attempts, failures = delivery.attempts + 1, target.failures + (not answer.refused)
        given_up = accepted and attempts >= TRIES
        Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.PENDING).update(
            state=DeliveryState.FAILED if given_up else DeliveryState.PENDING,
            attempts=attempts,
            last_status=answer.status,
            last_error=answer.error[:500],
            next_try_at=Clock() + _pause(attempts, answer),
        )
        changes: dict[str, Any] = {"failures": failures}
        if not answer.refused:  # another message may be accepted
            changes["wait_until"] = Clock() + _pause(failures, answer)
        if not accepted and max(attempts, failures) >= OFF_AFTER and target.enabled:
            changes |= {"enabled": False, "switched_off_at": Clock()}
        WebhookTarget.objects.filter(pk=target.pk).update(**changes)


def _pause(failures: int, answer: Answer) -> timedelta:
    """Return the time until the next try: it doubles with each failure, give or take a quarter."""
    seconds = min(_FIRST * 2 ** min(failures - 1, 12), LONGEST_PAUSE)
    jitter = random.uniform(0.75, 1.25)  # noqa: S311  # no secret
    return timedelta(seconds=max(seconds * jitter, answer.wait))


class Dispatcher:
    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._threads = futures.ThreadPoolExecutor(RECEIVERS, thread_name_prefix="webhook")
        self._sending: dict[int, futures.Future[None]] = {}
        # The turn in which each target was served last: among many slow receivers, all get their turn.
        self._served: dict[int, int] = {}
        self._turn = 0

    def run(self) -> None:
        """Send what is due and write messages about events, until `stop`; wait for a database that is unavailable."""
        while not self._stopped.wait(INTERVAL):
            try:
                db.close_old_connections()
                self.send_due()
                # Afterwards: no fault of an event keeps alerts from being sent.
                outbox.write_events()
            except (db.OperationalError, db.InterfaceError) as error:
                log.warning("webhooks wait for the database: %s", error)
            except Exception:
                log.exception("the dispatcher of webhooks failed")

    def send_due(self) -> None:
        """Start a thread for each target that is due, as far as there are free ones."""
        self._turn += 1
        self._sending = {key: sent for key, sent in self._sending.items() if not sent.done()}
        due = set(due_targets()) - self._sending.keys()
        for target_id in sorted(due, key=lambda key: (self._served.get(key, 0), key)):
            if len(self._sending) == RECEIVERS:
                break
            self._served[target_id] = self._turn
            self._sending[target_id] = self._threads.submit(self._send, target_id)

    def stop(self, seconds: float) -> None:
        """Stop after the messages that are on their way, but wait for them no longer than `seconds`.

        A message that is cut off is sent again, with the same id, when its claim is over.
        """
        self._stopped.set()
        futures.wait(list(self._sending.values()), seconds)

    def _send(self, target_id: int) -> None:
        try:
            send_pending(target_id, stopped=self._stopped)
        except Exception:
            log.exception("sending to webhook target %s failed", target_id)
        finally:
            db.connection.close()
