"""Messages are sent: to one target at a time, oldest first, until one does not arrive."""

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

LONGEST = 30  # seconds for one target, before others get their turn

log = logging.getLogger(__name__)


def work_off(target_id: int) -> int:
    """Send what waits for a target; how many messages arrived. The first failure lets it rest."""
    lease = outbox.take(target_id)
    if lease is None:
        return 0
    sent, until = 0, time.monotonic() + LONGEST
    try:
        while time.monotonic() < until:
            delivery = outbox.following(lease)
            if delivery is None or not send(delivery):
                break
            sent += 1
    finally:
        outbox.give_back(lease)
    return sent


def send(delivery: Delivery) -> bool:
    """One try; whether the receiver answered 2xx. No transaction is open meanwhile."""
    try:
        status = _post(delivery)
    except faults.ClusterFault as fault:
        outbox.failed(delivery, status=None, why=f"{fault.code}: {fault.message}")
        return False
    except Exception:
        # The worker's time limit: what took so long is not tried again at once.
        outbox.failed(delivery, status=None, why="the attempt was broken off")
        raise
    if 200 <= status < 300:
        outbox.delivered(delivery, status)
        return True
    why = "a redirect, which is not followed" if 300 <= status < 400 else "not accepted"
    outbox.failed(delivery, status=status, why=f"HTTP {status}: {why}")
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
