"""The outbox of webhooks: messages are written together with their alert; one worker sends to a target at a time.

If a worker is killed, its lease expires and its messages are still pending: they are sent again with the
same id. So a message arrives at least once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from pools.core import block_fields, errors
from pools.models import Alert, Delivery, WebhookTarget
from pools.models.alerts import DeliveryEvent, DeliveryState, Level
from pools.models.fields import Clock, Now
from pools.platform import database, leases
from pools.platform.alerts.answers import LONGEST_PAUSE, Answer
from pools.platform.alerts.representation import AlertSerializer, link
from pools.platform.leases import Lease
from pools.sql import statements

TRIES = 16  # about eight hours
_FIRST = 5  # seconds between the first tries; the pause doubles each time, up to LONGEST_PAUSE
_TYPE = "cadastre.alert."


def write(changes: Sequence[tuple[DeliveryEvent, Alert]], now: datetime) -> int:
    """Write a message for each alert and each target that selects its code; return their number.

    Not sent are alerts of the level info, and a change of the level of an alert that is acknowledged.

    Call it in the transaction of the alerts.
    """
    if not changes:
        return 0
    rows = [
        _delivery(target, event, alert, now)
        for target in WebhookTarget.objects.filter(enabled=True, alerts=True)
        for event, alert in changes
        if alert.level != Level.INFO
        and not (event is DeliveryEvent.CHANGED and alert.is_acknowledged)
        and (not target.codes or alert.code in target.codes)
    ]
    Delivery.objects.bulk_create(rows, batch_size=1000)
    return len(rows)


def write_test(target: WebhookTarget) -> Delivery:
    """Write a test message. Raises Conflict if the target is disabled."""
    _require_enabled(target)
    now = database.now()
    row = _delivery(target, DeliveryEvent.TEST, None, now)
    row.save(force_insert=True)
    WebhookTarget.objects.filter(pk=target.pk).update(wait_until=None)
    return row


def _delivery(
    target: WebhookTarget, event: DeliveryEvent, alert: Alert | None, now: datetime
) -> Delivery:
    uid = uuid.uuid4()
    body = json.dumps(_body(uid, event, alert, now), ensure_ascii=False, separators=(",", ":"))
    return Delivery(
        target=target,
        alert=alert,
        uid=uid,
        event=event,
        body=body,
        next_try_at=now,
        created_at=now,
    )


def _body(
    uid: uuid.UUID, event: DeliveryEvent, alert: Alert | None, now: datetime
) -> dict[str, Any]:
    """Return the attributes of CloudEvents 1.0; `data` is the alert as in the API, with its link."""
    data: dict[str, Any] = {"event": str(event), "alert": None, "link": link("/admin/")}
    if alert is not None:
        data |= {
            "alert": AlertSerializer(alert).data,
            "link": link(alert.url or "/admin/pools/alert/"),
        }
    return {
        "specversion": "1.0",
        "id": str(uid),
        "source": settings.IPAM_URL or "urn:cadastre",
        "type": f"{_TYPE}{event}",
        "subject": f"{alert.code}/{alert.subject}" if alert else str(event),
        "time": block_fields.format_time(now),
        "datacontenttype": "application/json",
        "data": data,
    }


# --- sending --------------------------------------------------------------------------------------


def due_targets(most: int = 200) -> list[int]:
    """Return targets with due messages that no worker sends to, longest due first."""
    return [pk for pk, _ in database.rows(_DUE, {"most": most})]


_DUE = statements.read("pools/targets_with_due_deliveries")


def take(target_id: int) -> Lease | None:
    """Lease a target; None while another worker sends to it, while it pauses, or if it is disabled."""
    return _LEASES.take(target_id, Q(wait_until=None) | Q(wait_until__lte=Clock()))


def next_delivery(lease: Lease) -> Delivery | None:
    """Renew the lease and return the next message; None if the lease is lost or no message is due.

    Messages that were tried less come first, so that those which a receiver refuses hold up no new one.
    """
    if not _LEASES.renew(lease):
        return None
    rows = Delivery.objects.filter(target_id=lease.row_id, state=DeliveryState.PENDING)
    ready = rows.filter(next_try_at__lte=Now()).select_related("target")
    return ready.order_by("attempts", "next_try_at", "pk").first()


def renew(lease: Lease, **changes: Any) -> bool:
    """Renew a lease and change its target; False if the lease is lost or the target is disabled."""
    return _LEASES.renew(lease, **changes)


def release(lease: Lease) -> None:
    _LEASES.end(lease)


# Longer than any step of a worker between two renewals of its lease.
_LEASES = leases.Leases(WebhookTarget, condition=Q(enabled=True), seconds=90)


def record_success(delivery: Delivery, status: int | None) -> None:
    with transaction.atomic():
        Delivery.objects.filter(pk=delivery.pk).update(
            state=DeliveryState.DELIVERED,
            attempts=F("attempts") + 1,
            delivered_at=Now(),
            last_status=status,
            last_error="",
        )
        WebhookTarget.objects.filter(pk=delivery.target_id).update(failures=0, wait_until=None)


def record_failure(delivery: Delivery, answer: Answer) -> None:
    """Schedule the next try, or give the message up; pause the target, so that messages do not pile on it."""
    with transaction.atomic():
        _schedule(delivery, answer)
        pause(delivery.target_id, answer, longest=_FIRST if answer.refused else LONGEST_PAUSE)


def _schedule(delivery: Delivery, answer: Answer) -> None:
    database.rows(
        _FAILED,
        {
            "status": answer.status,
            "error": answer.error[:500],
            "tries": TRIES,
            "longest": LONGEST_PAUSE,
            "first": _FIRST,
            "delivery": delivery.pk,
            "at_least": answer.wait,
        },
        prepare=False,
    )


def pause(target_id: int, answer: Answer, *, longest: int = LONGEST_PAUSE) -> None:
    """Count a failure of a target; nothing is sent to it for a while, longer after each failure."""
    values = {"longest": longest, "first": _FIRST, "target": target_id, "at_least": answer.wait}
    database.rows(_REST, values, prepare=False)


def set_aside(
    target: WebhookTarget, *, uid: str, body: str, log_event: int | None, answer: Answer
) -> None:
    """Write a message of a single event that was refused; it is tried again by itself, like every message."""
    now = database.now()
    row = Delivery(
        target=target,
        uid=uuid.UUID(uid),
        event=DeliveryEvent.EVENT,
        log_event=log_event,
        body=body,
        next_try_at=now,
        created_at=now,
    )
    row.save(force_insert=True)
    _schedule(row, answer)


def events_set_aside(target: WebhookTarget) -> QuerySet[Delivery]:
    """Return the messages of events that were set aside and are still tried."""
    rows = Delivery.objects.filter(target=target, event=DeliveryEvent.EVENT)
    return rows.filter(state=DeliveryState.PENDING)


_FAILED = statements.read("pools/record_failed_delivery")
_REST = statements.read("pools/pause_target")


def cancel_pending(target: WebhookTarget) -> None:
    """Give up the pending messages of a disabled target, except events, which wait for it as those in the log do.

    Call it in the transaction that disables it.
    """
    rows = Delivery.objects.filter(target=target, state=DeliveryState.PENDING)
    rows.exclude(event=DeliveryEvent.EVENT).update(
        state=DeliveryState.FAILED, last_error="the target was switched off"
    )


def _require_enabled(target: WebhookTarget) -> None:
    if not target.enabled:
        raise errors.Conflict("The target is switched off: nothing is sent to it.")


def send_again(delivery: Delivery) -> None:
    """Send a failed or pending message at once, with all its tries. Raises Conflict."""
    _require_enabled(delivery.target)
    changed = (
        Delivery.objects.filter(pk=delivery.pk)
        .exclude(state=DeliveryState.DELIVERED)
        .update(state=DeliveryState.PENDING, attempts=0, next_try_at=Now())
    )
    if not changed:
        raise errors.Conflict("The message has arrived; it is not sent again.")
    WebhookTarget.objects.filter(pk=delivery.target_id).update(wait_until=None)
