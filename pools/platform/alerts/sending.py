"""Sending of webhooks: to one target at a time, messages that were tried least first, until the receiver is unavailable.

The dispatcher is a thread of each watcher, which needs neither Redis nor a Celery worker.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent import futures

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from pools.models import Delivery, WebhookTarget
from pools.models.alerts import TargetKind
from pools.platform import database
from pools.platform.alerts import event_feed, notifications, outbox, targets
from pools.platform.alerts.outbox import Answer
from pools.platform.outbound import faults, webhook_post
from pools.platform.outbound.credentials import Access

_CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_BROKEN_OFF = Answer(None, "the attempt was broken off")
MOST_REFUSED = 10  # messages that one run sends after another, although each is refused
TIME_LIMIT = 30  # seconds for one target, before other targets get their turn


def send_pending(target_id: int, *, stopped: threading.Event | None = None) -> int:
    """Send the due messages of a target; return how many arrived.

    It ends when the receiver is unavailable, after `TIME_LIMIT`, and when `stopped` is set.
    """
    lease = outbox.take(target_id)
    if lease is None:
        return 0
    sent, refused, deadline = 0, 0, time.monotonic() + TIME_LIMIT
    try:
        while time.monotonic() < deadline and not (stopped and stopped.is_set()):
            delivery = outbox.next_delivery(lease)
            if delivery is None:
                break
            answer = send(delivery)
            sent += answer.accepted
            refused += answer.refused
            # Another message may be accepted: none waits for messages that are refused.
            if not (answer.accepted or answer.refused) or refused == MOST_REFUSED:
                break
    finally:
        outbox.release(lease)
    return sent


def send(delivery: Delivery) -> Answer:
    """Try to send a message outside a transaction."""
    try:
        answer = _deliver(delivery)
    except Exception:
        # A delivery that takes too long is not tried again at once.
        outbox.record_failure(delivery, _BROKEN_OFF)
        raise
    if answer.accepted:
        outbox.record_success(delivery, answer.status)
    else:
        outbox.record_failure(delivery, answer)
    return answer


def _deliver(delivery: Delivery) -> Answer:
    """Send a message in the way of its target's kind."""
    target = delivery.target
    if target.kind is TargetKind.EMAIL:
        return notifications.send_email(delivery)
    if target.kind is TargetKind.SERVICE:
        try:
            url = targets.secrets_of(target)[1]
        except faults.ClusterFault as fault:
            return Answer(None, f"{fault.code}: {fault.message}")
        return notifications.send_to_service(delivery, url)
    return _post(target, delivery.body.encode(), str(delivery.uid))


def _post(target: WebhookTarget, body: bytes, uid: str) -> Answer:
    """Post a message, and return what the receiver answers."""
    now = database.now()
    timestamp = int(now.timestamp())
    try:
        secret, query = targets.secrets_of(target)
        headers = {
            "Content-Type": _CONTENT_TYPE,
            "User-Agent": settings.IPAM_USER_AGENT,
            webhook_post.DELIVERY: uid,
            webhook_post.TIMESTAMP: str(timestamp),
            webhook_post.SIGNATURE: webhook_post.sign(secret, timestamp, body),
        }
        status, retry_after = webhook_post.post(
            Access(target.url.removesuffix(targets.HIDDEN_QUERY), ca=target.ca),
            body,
            headers,
            query=query,
            allow_loopback=settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS,
        )
    except faults.ClusterFault as fault:
        return Answer(None, f"{fault.code}: {fault.message}")
    return outbox.answer(status, retry_after, now)


INTERVAL = 2  # seconds between two looks for messages
# That one dispatcher sends to at the same time, each with a connection to the database.
RECEIVERS = 16

log = logging.getLogger(__name__)


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
                close_old_connections()
                self.send_due()
                # Afterwards: no fault of an event keeps alerts from being sent.
                event_feed.write_messages()
            except (OperationalError, InterfaceError) as error:
                log.warning("webhooks wait for the database: %s", error)
            except Exception:
                log.exception("the dispatcher of webhooks failed")

    def send_due(self) -> None:
        """Start a thread for each target that is due, as far as there are free ones."""
        self._turn += 1
        self._sending = {key: sent for key, sent in self._sending.items() if not sent.done()}
        due = set(outbox.due_targets()) - self._sending.keys()
        for target_id in sorted(due, key=lambda key: (self._served.get(key, 0), key)):
            if len(self._sending) == RECEIVERS:
                break
            self._served[target_id] = self._turn
            self._sending[target_id] = self._threads.submit(self._send, target_id)

    def stop(self, seconds: float) -> None:
        """Stop after the messages that are on their way, but wait for them no longer than `seconds`.

        A message that is cut off is sent again, with the same id, when the lease of its target has expired.
        """
        self._stopped.set()
        futures.wait(list(self._sending.values()), seconds)

    def _send(self, target_id: int) -> None:
        try:
            send_pending(target_id, stopped=self._stopped)
        except Exception:
            log.exception("sending to webhook target %s failed", target_id)
        finally:
            connection.close()
