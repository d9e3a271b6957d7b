"""Sending of webhooks: to one target at a time, oldest message first, until a message fails.

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
from pools.platform import database
from pools.platform.alerts import event_feed, outbox, targets
from pools.platform.leases import Lease
from pools.platform.outbound import faults, webhook_post
from pools.platform.outbound.access import Access

_CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_BROKEN_OFF = "the attempt was broken off"
TIME_LIMIT = 30  # seconds for one target, before other targets get their turn

log = logging.getLogger(__name__)


def send_pending(target_id: int, *, stopped: threading.Event | None = None) -> int:
    """Send the due messages and the events of a target until one fails; return how many messages arrived.

    It ends after `TIME_LIMIT`, and when `stopped` is set.
    """
    lease = outbox.take(target_id)
    if lease is None:
        return 0
    sent, deadline = 0, time.monotonic() + TIME_LIMIT

    def goes_on() -> bool:
        return time.monotonic() < deadline and not (stopped and stopped.is_set())

    try:
        while goes_on():
            delivery = outbox.next_delivery(lease)
            if delivery is None:
                sent += _send_events(lease, goes_on)
                break
            if not send(delivery):
                break
            sent += 1
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
        if batch.messages:
            if not _send_batch(batch):
                break
            sent += 1
        if not event_feed.advance(lease, batch):
            break
    return sent


def _send_batch(batch: event_feed.Batch) -> bool:
    """Try to send a batch outside a transaction; return True if the receiver answers 2xx."""
    try:
        status, error = _post(batch.target, batch.body, batch.uid, event_feed.CONTENT_TYPE)
    except Exception:
        event_feed.record_failure(batch, status=None, error=_BROKEN_OFF)
        raise
    if error:
        log.warning("events were not sent to %s: %s", batch.target.name, error)
        event_feed.record_failure(batch, status=status, error=error)
    return not error


def send(delivery: Delivery) -> bool:
    """Try to send a message outside a transaction; return True if the receiver answers 2xx."""
    body, uid = delivery.body.encode(), str(delivery.uid)
    try:
        status, error = _post(delivery.target, body, uid, _CONTENT_TYPE)
    except Exception:
        # A delivery that takes too long is not tried again at once.
        outbox.record_failure(delivery, status=None, error=_BROKEN_OFF)
        raise
    if status is None or error:
        outbox.record_failure(delivery, status=status, error=error)
        return False
    outbox.record_success(delivery, status)
    return True


def _post(
    target: WebhookTarget, body: bytes, uid: str, content_type: str
) -> tuple[int | None, str]:
    """Return the status of the answer, if there is one, and why the message has not arrived; "" if it has."""
    now = int(database.now().timestamp())
    try:
        secret, query = targets.secrets_of(target)
        headers = {
            "Content-Type": content_type,
            "User-Agent": settings.IPAM_USER_AGENT,
            webhook_signature.DELIVERY: uid,
            webhook_signature.TIMESTAMP: str(now),
            webhook_signature.SIGNATURE: webhook_signature.sign(secret, now, body),
        }
        status = webhook_post.post(
            Access(target.url.removesuffix(targets.HIDDEN_QUERY), ca=target.ca),
            body,
            headers,
            query=query,
            allow_loopback=settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS,
        )
    except faults.ClusterFault as fault:
        return None, f"{fault.code}: {fault.message}"
    if 200 <= status < 300:
        return status, ""
    reason = "a redirect, which is not followed" if 300 <= status < 400 else "not accepted"
    return status, f"HTTP {status}: {reason}"
