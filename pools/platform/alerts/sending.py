"""Sending of webhooks: to one target at a time, messages that were tried least first, until the receiver is unavailable."""

from __future__ import annotations

import threading
import time

from django.conf import settings

from pools.core import webhook_signature
from pools.models import Delivery, WebhookTarget
from pools.platform import database
from pools.platform.alerts import answers, outbox, targets
from pools.platform.alerts.answers import Answer
from pools.platform.outbound import faults, webhook_post
from pools.platform.outbound.access import Access

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
        answer = _post(delivery.target, delivery.body.encode(), str(delivery.uid))
    except Exception:
        # A delivery that takes too long is not tried again at once.
        outbox.record_failure(delivery, _BROKEN_OFF)
        raise
    if answer.accepted:
        outbox.record_success(delivery, answer.status)
    else:
        outbox.record_failure(delivery, answer)
    return answer


def _post(target: WebhookTarget, body: bytes, uid: str) -> Answer:
    """Post a message, and return what the receiver answers."""
    now = database.now()
    timestamp = int(now.timestamp())
    try:
        secret, query = targets.secrets_of(target)
        headers = {
            "Content-Type": _CONTENT_TYPE,
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
