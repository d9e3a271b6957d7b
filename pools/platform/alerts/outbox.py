"""The outbox of webhooks: messages are written together with their alert; one worker sends to a target at a time.

If a worker is killed, its lease expires and its messages are still pending: they are sent again with the
same id. So a message arrives at least once.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import utils
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from pools.core import block_fields, errors
from pools.models import Alert, Delivery, WebhookTarget
from pools.models.alerts import DeliveryEvent, DeliveryState, Level
from pools.models.fields import Clock, Now
from pools.platform import database, events, leases
from pools.platform.alerts import open_alerts
from pools.platform.alerts.open_alerts import AlertSerializer, link
from pools.platform.conditions.registry import Key
from pools.platform.history import representation
from pools.platform.leases import Lease

# A refusal (4xx) is about the message: another one may be accepted. Whatever else is not 2xx is about the receiver.
LONGEST_PAUSE = 3600  # seconds between two tries, and the most of a Retry-After
TOO_LARGE = 413
_GONE = 410
_UNAVAILABLE = {408, _GONE, 425, 429}  # statuses of 4xx that are not about the message
_BUSY = {429, 503}
_REASONS = {_GONE: "the receiver says that it is gone for good"}


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


def answer(status: int, retry_after: str, now: datetime) -> Answer:
    """Return the answer that a status and a header Retry-After of a response mean."""
    if 200 <= status < 300:
        return Answer(status, "")
    redirect = "a redirect, which is not followed" if 300 <= status < 400 else "not accepted"
    error = f"HTTP {status}: {_REASONS.get(status, redirect)}"
    wait = parse_retry_after(retry_after, now) if status in _BUSY else 0
    return Answer(status, error, LONGEST_PAUSE if status == _GONE else wait)


def parse_retry_after(text: str, now: datetime) -> float:
    """Return the seconds of a header Retry-After (RFC 9110): a number or a date; 0 if it is neither."""
    text = text.strip()
    if re.fullmatch("[0-9]+", text):
        return LONGEST_PAUSE if len(text) > 9 else min(int(text), LONGEST_PAUSE)
    try:
        date = utils.parsedate_to_datetime(text)
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
    except (ValueError, TypeError, OverflowError):
        return 0
    return min(max(seconds.total_seconds(), 0), LONGEST_PAUSE)


DIGEST_HOUR = 7  # of the site's time zone
MOST_OF_DIGEST = 100  # alerts, the most severe first
TRIES = 16  # about eight hours
OFF_AFTER = 48  # about a day and a half
_FIRST = 5  # seconds between the first tries; the pause doubles each time, up to LONGEST_PAUSE


def write(changes: Sequence[tuple[DeliveryEvent, Alert]], now: datetime) -> int:
    """Write a message for each alert and each target that selects it; return their number.

    Not sent are the opening and the level of an alert that is acknowledged, and the opening of one that was sent.

    Call it in the transaction of the alerts.
    """
    changes = [
        (event, alert)
        for event, alert in changes
        if event is DeliveryEvent.ENDED or not alert.is_acknowledged
    ]
    if not changes:
        return 0
    alerts = [alert for _event, alert in changes]
    clusters = open_alerts.clusters_of(alerts)
    sent = Delivery.objects.filter(alert__in=[alert.pk for alert in alerts])
    known = set(sent.values_list("target_id", "alert_id"))
    rows = [
        _delivery(target, event, alert, now)
        for target in _alert_targets().filter(digest=False)
        if _may_receive(target)
        for event, alert in changes
        if _is_news(event, alert, knows=(target.pk, alert.pk) in known)
        and ((target.pk, alert.pk) in known or _selects(target, alert, clusters))
    ]
    Delivery.objects.bulk_create(rows, batch_size=1000)
    return len(rows)


def _is_news(event: DeliveryEvent, alert: Alert, *, knows: bool) -> bool:
    """Return False for the opening of an alert that a target knows, and for the end of one that was silenced for it."""
    if event is DeliveryEvent.OPENED:
        return not knows
    return knows or event is DeliveryEvent.CHANGED or alert.acknowledged_at is None


def write_digests(now: datetime) -> int:
    """Write the message of today, from `DIGEST_HOUR` on, for each target that wants one a day; return their number.

    A target for which no alert is open gets none. Call it where nobody else does so at the same time.
    """
    local = timezone.localtime(now)
    targets = _alert_targets().filter(digest=True).exclude(digest_on=local.date())
    if local.hour < DIGEST_HOUR or not targets.exists():
        return 0
    alerts = list(open_alerts.open_alerts().filter(acknowledged_at=None)[: open_alerts.MOST])
    clusters = open_alerts.clusters_of(alerts)
    rows = []
    for target in targets:
        selected = [alert for alert in alerts if _selects(target, alert, clusters)]
        if selected and _may_receive(target):
            data = {"alerts": [AlertSerializer(alert).data for alert in selected[:MOST_OF_DIGEST]]}
            rows.append(_about_alerts(target, DeliveryEvent.DIGEST, None, data, now))
    targets.update(digest_on=local.date())
    Delivery.objects.bulk_create(rows)
    return len(rows)


def _alert_targets() -> QuerySet[WebhookTarget]:
    return WebhookTarget.objects.filter(enabled=True, alerts=True).select_related("user")


def _may_receive(target: WebhookTarget) -> bool:
    """Return False for the target of a user who may not view alerts (any more)."""
    return target.user is None or target.user.has_perm("pools.view_alert")


def _selects(target: WebhookTarget, alert: Alert, clusters: Mapping[Key, int | None]) -> bool:
    levels = list(Level)
    return (
        levels.index(Level(alert.level)) <= levels.index(Level(target.least_level))
        and (not target.codes or alert.code in target.codes)
        and (not target.clusters or clusters[alert.code, alert.subject] in target.clusters)
    )


def write_test(target: WebhookTarget) -> Delivery:
    """Write a test message. Raises Conflict if the target is disabled."""
    _require_enabled(target)
    row = _about_alerts(target, DeliveryEvent.TEST, None, {"alert": None}, database.now())
    row.save(force_insert=True)
    WebhookTarget.objects.filter(pk=target.pk).update(wait_until=None)
    return row


def event_message(target: WebhookTarget, event: Any, now: datetime) -> Delivery:
    """Return the message about an event, which `representation.load` has completed."""
    attributes = {
        "type": f"cadastre.event.{event.type}",
        "subject": f"{event.table}/{event.object_id}",
        "sequence": str(event.pk),
        "time": block_fields.format_time(event.at),
    }
    data = {"event": representation.EventSerializer(event).data}
    url = f"/admin/pools/event/{event.pk}/change/"
    row = _message(target, DeliveryEvent.EVENT, attributes, data, url, now)
    row.log_event = event.pk
    return row


def _delivery(target: WebhookTarget, event: DeliveryEvent, alert: Alert, now: datetime) -> Delivery:
    """Return a message; its `data` is the alert as in the API, with its link."""
    return _about_alerts(target, event, alert, {"alert": AlertSerializer(alert).data}, now)


def _about_alerts(
    target: WebhookTarget,
    event: DeliveryEvent,
    alert: Alert | None,
    data: dict[str, Any],
    now: datetime,
) -> Delivery:
    attributes = {
        "type": f"cadastre.alert.{event}",
        "subject": f"{alert.code}/{alert.subject}" if alert else str(event),
        "time": block_fields.format_time(now),
    }
    url = (alert.url if alert else "") or "/admin/pools/alert/"
    row = _message(target, event, attributes, {"event": str(event)} | data, url, now)
    row.alert = alert
    return row


def _message(
    target: WebhookTarget,
    event: DeliveryEvent,
    attributes: dict[str, str | None],
    data: dict[str, Any],
    url: str,
    now: datetime,
) -> Delivery:
    """Return a message with the attributes of CloudEvents 1.0; its data links to `url`."""
    uid = uuid.uuid4()
    body = {
        "specversion": "1.0",
        "id": str(uid),
        "source": settings.IPAM_URL or "urn:cadastre",
        **attributes,
        "datacontenttype": "application/json",
        "data": data | {"link": link(url)},
    }
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Delivery(target=target, uid=uid, event=event, body=text, next_try_at=now, created_at=now)


# --- sending --------------------------------------------------------------------------------------


def due_targets() -> list[int]:
    """Return the targets with due messages that no worker sends to, longest due first."""
    due = Q(deliveries__state=DeliveryState.PENDING, deliveries__next_try_at__lte=Clock())
    rows = WebhookTarget.objects.filter(leases.FREE, _NO_PAUSE, due, enabled=True)
    rows = rows.annotate(since=Min("deliveries__next_try_at")).order_by("since", "pk")
    return list(rows.values_list("pk", flat=True))


_NO_PAUSE = Q(wait_until=None) | Q(wait_until__lte=Clock())


def take(target_id: int) -> Lease | None:
    """Lease a target; None while another worker sends to it, while it pauses, or if it is disabled."""
    return _LEASES.take(target_id, _NO_PAUSE)


def next_delivery(lease: Lease) -> Delivery | None:
    """Renew the lease and return the next message; None if the lease is lost or no message is due.

    Messages that were tried less come first, so that those which a receiver refuses hold up no new one; those of
    alerts come before events, of which many may wait.
    """
    if not _LEASES.renew(lease):
        return None
    rows = Delivery.objects.filter(target_id=lease.row_id, state=DeliveryState.PENDING)
    ready = rows.filter(next_try_at__lte=Now()).select_related("target")
    return ready.order_by("attempts", F("log_event").asc(nulls_first=True), "pk").first()


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
        WebhookTarget.objects.filter(pk=delivery.target_id).update(
            failures=0, wait_until=None, accepted_at=Clock()
        )


def record_failure(delivery: Delivery, answer: Answer) -> None:
    """Schedule the next try, or give the message up; pause the target, so that messages do not pile on it.

    A message is given up after TRIES if the target has accepted another one since it was written. Else the target
    seems to accept nothing: after OFF_AFTER failures it is switched off, and its messages wait.
    """
    with transaction.atomic(), events.recorded_by(events.WORKER):
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
        changes["wait_until"] = Clock() + _pause(1 if answer.refused else failures, answer)
        if not accepted and max(attempts, failures) >= OFF_AFTER and target.enabled:
            changes |= {"enabled": False, "switched_off_at": Clock()}
        WebhookTarget.objects.filter(pk=target.pk).update(**changes)


def _pause(failures: int, answer: Answer) -> timedelta:
    """Return the time until the next try: it doubles with each failure, give or take a quarter."""
    seconds = min(_FIRST * 2 ** min(failures - 1, 12), LONGEST_PAUSE)
    jitter = random.uniform(0.75, 1.25)  # noqa: S311  # no secret
    return timedelta(seconds=max(seconds * jitter, answer.wait))


def cancel_pending(target: WebhookTarget) -> None:
    """Give up the pending messages of a disabled target, except events, which wait for it as those in the log do.

    Call it in the transaction that disables it.
    """
    rows = Delivery.objects.filter(target=target, state=DeliveryState.PENDING)
    rows.exclude(event=DeliveryEvent.EVENT).update(
        state=DeliveryState.FAILED, last_error="the target was switched off"
    )


def retry_pending(target: WebhookTarget) -> None:
    """Try the pending messages of a target again at once, with all their tries."""
    rows = Delivery.objects.filter(target=target, state=DeliveryState.PENDING)
    rows.update(attempts=0, next_try_at=Now())


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
