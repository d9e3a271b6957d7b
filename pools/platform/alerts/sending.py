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
        status = _post_body(batch.target, batch.body, batch.uid, event_feed.CONTENT_TYPE)
    except faults.ClusterFault as fault:
        log.warning("events were not sent to %s: %s", batch.target.name, fault.code)
        status = 0
    except Exception:
        event_feed.record_failure(batch.target)
        raise
    if 200 <= status < 300:
        return True
    event_feed.record_failure(batch.target)
    return False


def send(delivery: Delivery) -> bool:
    """Try to send a message outside a transaction; return True if the receiver answers 2xx."""
    try:
        status = _post(delivery)
    except faults.ClusterFault as fault:
        outbox.record_failure(delivery, status=None, error=f"{fault.code}: {fault.message}")
        return False
    except Exception:
        # The worker's time limit: a delivery that takes so long is not tried again at once.
        outbox.record_failure(delivery, status=None, error="the attempt was broken off")
        raise
    if 200 <= status < 300:
        outbox.record_success(delivery, status)
        return True
    reason = "a redirect, which is not followed" if 300 <= status < 400 else "not accepted"
    outbox.record_failure(delivery, status=status, error=f"HTTP {status}: {reason}")
    return False


def _post(delivery: Delivery) -> int:
    body = delivery.body.encode()
    return _post_body(delivery.target, body, str(delivery.uid), _CONTENT_TYPE)


def _post_body(target: WebhookTarget, body: bytes, uid: str, content_type: str) -> int:
    now = int(database.now().timestamp())
    headers = {
        "Content-Type": content_type,
        "User-Agent": settings.IPAM_USER_AGENT,
        webhook_signature.DELIVERY: uid,
        webhook_signature.TIMESTAMP: str(now),
        webhook_signature.SIGNATURE: webhook_signature.sign(targets.secret(target), now, body),
    }
    return webhook_post.post(
        Access(target.url, ca=target.ca),
        body,
        headers,
        allow_loopback=settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS,
    )
