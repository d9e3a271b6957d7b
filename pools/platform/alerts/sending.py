"""Sending of webhooks: to one target at a time, messages that were tried least first, until the receiver is unavailable.

Messages of alerts come before events, of which many may wait.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.conf import settings

from pools.core import webhook_signature
from pools.models import Delivery, WebhookTarget
from pools.models.alerts import DeliveryEvent
from pools.platform import database
from pools.platform.alerts import answers, event_feed, outbox, refused_events, targets
from pools.platform.alerts.answers import Answer
from pools.platform.leases import Lease
from pools.platform.outbound import faults, webhook_post
from pools.platform.outbound.access import Access

_CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_BROKEN_OFF = Answer(None, "the attempt was broken off")
MOST_REFUSED = 10  # messages that one run sends after another, although each is refused
TIME_LIMIT = 30  # seconds for one target, before other targets get their turn

log = logging.getLogger(__name__)


def send_pending(target_id: int, *, stopped: threading.Event | None = None) -> int:
    """Send the due messages and the events of a target; return how many messages arrived.

    It ends when the receiver is unavailable, after `TIME_LIMIT`, and when `stopped` is set.
    """
    lease = outbox.take(target_id)
    if lease is None:
        return 0
    sent, refused, deadline = 0, 0, time.monotonic() + TIME_LIMIT

    def goes_on() -> bool:
        return time.monotonic() < deadline and not (stopped and stopped.is_set())

    try:
        while goes_on():
            delivery = outbox.next_delivery(lease)
            # Another message may be accepted: neither alerts nor events wait for the messages that are refused.
            if delivery is None or refused == MOST_REFUSED:
                sent += _send_events(lease, goes_on)
                break
            answer = send(delivery)
            if not (answer.accepted or answer.refused):
                break
            sent += answer.accepted
            refused += answer.refused
    finally:
        outbox.release(lease)
    return sent


def _send_events(lease: Lease, goes_on: Callable[[], bool]) -> int:
    """Send batches of events until none is left or one fails; return the number of batches that arrived."""
    sent = 0
    upto = event_feed.complete_number()
    while goes_on() and outbox.renew(lease):
        batch = event_feed.next_batch(lease.row_id, upto)
        if batch is None:
            break
        try:
            answer = _send_batch(batch)
        except Exception:
            refused_events.record_failure(lease, batch, _BROKEN_OFF)
            raise
        if not answer.accepted:
            if refused_events.record_failure(lease, batch, answer):
                continue
            break
        sent += bool(batch.messages)
        if not event_feed.record_success(lease, batch):
            break
    return sent


def _send_batch(batch: event_feed.Batch) -> Answer:
    """Try to send a batch outside a transaction."""
    if not batch.messages:
        return Answer(None, "")
    answer = _post(batch.target, batch.body, batch.uid, event_feed.CONTENT_TYPE)
    if not answer.accepted:
        log.warning("events were not sent to %s: %s", batch.target.name, answer.error)
    return answer


def send(delivery: Delivery) -> Answer:
    """Try to send a message outside a transaction."""
    is_event = delivery.event == DeliveryEvent.EVENT
    content_type = event_feed.CONTENT_TYPE if is_event else _CONTENT_TYPE
    try:
        answer = _post(delivery.target, delivery.body.encode(), str(delivery.uid), content_type)
    except Exception:
        # A delivery that takes too long is not tried again at once.
        outbox.record_failure(delivery, _BROKEN_OFF)
        raise
    if answer.accepted:
        outbox.record_success(delivery, answer.status)
    else:
        outbox.record_failure(delivery, answer)
    return answer


def _post(target: WebhookTarget, body: bytes, uid: str, content_type: str) -> Answer:
    """Post a message, and return what the receiver answers."""
    now = database.now()
    timestamp = int(now.timestamp())
    try:
        secret, query = targets.secrets_of(target)
        headers = {
            "Content-Type": content_type,
            "User-Agent": settings.IPAM_USER_AGENT,
            webhook_signature.DELIVERY: uid,
            webhook_signature.TIMESTAMP: str(timestamp),
            webhook_signature.SIGNATURE: webhook_signature.sign(secret, timestamp, body),
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
    return answers.answer(status, retry_after, now)
