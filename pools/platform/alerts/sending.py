"""Sending of webhooks: to one target at a time, oldest message first, until a message fails."""

from __future__ import annotations

import logging
import time

from django.conf import settings

from pools.core import webhook_signature
from pools.models import Delivery
from pools.platform import database
from pools.platform.alerts import outbox, targets
from pools.platform.outbound import faults, webhook_post
from pools.platform.outbound.access import Access

TIME_LIMIT = 30  # seconds for one target, before other targets get their turn

log = logging.getLogger(__name__)


def send_pending(target_id: int) -> int:
    """Send the due messages of a target until one fails; return how many arrived."""
    lease = outbox.take(target_id)
    if lease is None:
        return 0
    sent, deadline = 0, time.monotonic() + TIME_LIMIT
    try:
        while time.monotonic() < deadline:
            delivery = outbox.next_delivery(lease)
            if delivery is None or not send(delivery):
                break
            sent += 1
    finally:
        outbox.release(lease)
    return sent


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
    target = delivery.target
    body, now = delivery.body.encode(), int(database.now().timestamp())
    headers = {
        "Content-Type": "application/cloudevents+json; charset=utf-8",
        "User-Agent": settings.IPAM_USER_AGENT,
        webhook_signature.DELIVERY: str(delivery.uid),
        webhook_signature.TIMESTAMP: str(now),
        webhook_signature.SIGNATURE: webhook_signature.sign(targets.secret(target), now, body),
    }
    return webhook_post.post(
        Access(target.url, ca=target.ca),
        body,
        headers,
        allow_loopback=settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS,
    )
