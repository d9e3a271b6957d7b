"""What becomes of a batch of events that its receiver does not accept.

A receiver that is unavailable gets the events again, after pauses, in smaller batches, without an end. One that
refuses a batch repeatedly gets smaller and smaller parts at once, down to the event that it refuses. That event is
set aside, as a message of its own that is tried 16 times and then given up, and the events behind it are sent.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from pools.models import WebhookTarget
from pools.models.fields import Clock
from pools.platform.alerts import answers, event_feed, outbox
from pools.platform.alerts.answers import Answer
from pools.platform.alerts.event_feed import Batch
from pools.platform.leases import Lease

PATIENCE = 3  # failures until a batch is sent in parts: the receiver may be back in a moment
MOST = 100  # events of a target that are set aside at a time: a receiver that refuses more seems to refuse all


def record_failure(lease: Lease, batch: Batch, answer: Answer) -> bool:
    """Decide what is sent after a batch that was not accepted; return True if it is sent at once."""
    target = batch.target
    changes: dict[str, Any] = {
        "event_status": answer.status,
        "event_error": answer.error[:500],
        "events_failing_since": Coalesce(F("events_failing_since"), Clock()),
    }
    changes["event_refusals"] = target.event_refusals + 1 if answer.refused else 0
    too_large = answer.status == answers.TOO_LARGE
    if answer.refused and (too_large or target.event_refusals >= PATIENCE):
        if len(batch.messages) > 1:
            limit = {"event_limit": len(batch.body) // 2} if too_large else _half(batch)
            return outbox.renew(lease, **changes, **limit)
        if outbox.events_set_aside(target).count() < MOST:
            return _set_aside(lease, batch, answer)
    elif target.failures >= PATIENCE and not answer.refused:
        changes |= _half(batch)  # it may answer too late, because of their number
    with transaction.atomic():
        WebhookTarget.objects.filter(pk=target.pk).update(**changes)
        outbox.pause(target.pk, answer)
    return False


def _half(batch: Batch) -> dict[str, int]:
    return {"event_most": max(1, len(batch.messages) // 2)}


@transaction.atomic
def _set_aside(lease: Lease, batch: Batch, answer: Answer) -> bool:
    if not event_feed.advance(lease, batch, event_most=1):
        return False
    outbox.set_aside(
        batch.target,
        uid=batch.uid,
        body=batch.body.decode(),
        log_event=batch.last_event,
        answer=answer,
    )
    return True
