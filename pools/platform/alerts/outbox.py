"""The outbox of webhooks: messages are written together with their alert, or with the position in the log of events.

Messages about events: one a message, none missing. A target has the number of the last event that was looked at for it.
Events are read only up to a number below which nobody can still commit (pools/platform/history/event_numbers.py), so that
a transaction that commits late is not missed. Messages and number are written in one transaction.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from pools.core import block_fields, errors
from pools.models import Alert, CountedUntil, Delivery, Event, Now, PoolEvent, WebhookTarget
from pools.models.alerts import DeliveryEvent, DeliveryState, Level
from pools.platform import database
from pools.platform.alerts import open_alerts
from pools.platform.conditions.registry import Key
from pools.platform.history import event_numbers, representation

DIGEST_HOUR = 7  # of the site's time zone
MOST_OF_DIGEST = 100  # alerts, the most severe first
EVERYTHING = "*"
MOST_WAITING = 1000  # messages about events that wait for a target; more events wait in the log
_LOG = "webhooks"
_PAGE = 500  # events that are read at once


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
        _alert_message(target, event, now, alert, alert=open_alerts.AlertSerializer(alert).data)
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
            data = [open_alerts.AlertSerializer(alert).data for alert in selected[:MOST_OF_DIGEST]]
            rows.append(_alert_message(target, DeliveryEvent.DIGEST, now, alerts=data))
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
    row = _alert_message(target, DeliveryEvent.TEST, database.now(), alert=None)
    row.save(force_insert=True)
    WebhookTarget.objects.filter(pk=target.pk).update(wait_until=None)
    return row


def _alert_message(
    target: WebhookTarget,
    event: DeliveryEvent,
    now: datetime,
    subject: Alert | None = None,
    **data: Any,
) -> Delivery:
    """Return a message with this data, such as an alert as in the API, and a link to the page of its subject."""
    attributes = {
        "type": f"cadastre.alert.{event}",
        "subject": f"{subject.code}/{subject.subject}" if subject else str(event),
        "time": block_fields.format_time(now),
    }
    url = (subject.url if subject else "") or "/admin/pools/alert/"
    row = _message(target, event, attributes, {"event": str(event)} | data, url, now)
    row.alert = subject
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
        "data": data | {"link": open_alerts.link(url)},
    }
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Delivery(target=target, uid=uid, event=event, body=text, next_try_at=now, created_at=now)


# --- events ---------------------------------------------------------------------------------------


def _complete_number() -> int:
    """Return the number up to which no event can appear any more."""
    with transaction.atomic():
        row, _created = CountedUntil.objects.select_for_update().get_or_create(log=_LOG)
        row.counted = event_numbers.complete_number(row)
        row.save()
    return row.counted


def write_events() -> int:
    """Write the messages about new events for all targets that subscribe to them; return their number."""
    targets = WebhookTarget.objects.filter(enabled=True, event_types__len__gt=0)
    if not targets.exists():
        return 0
    upto, count = _complete_number(), 0
    behind = targets.filter(event_position__lt=upto).order_by("pk")
    for target_id in list(behind.values_list("pk", flat=True)):
        # Another process that writes for the same target goes on by itself.
        while (written := _write_page(target_id, upto)) is not None:
            count += written
    return count


@transaction.atomic
def _write_page(target_id: int, upto: int) -> int | None:
    """Write the messages about the next events of a target; None if it has seen all, or too many wait."""
    rows = WebhookTarget.objects.select_for_update(skip_locked=True)
    target = rows.filter(pk=target_id, enabled=True, event_position__lt=upto).first()
    if target is None:
        return None
    waiting = Delivery.objects.filter(target=target, state=DeliveryState.PENDING)
    if waiting.filter(event=DeliveryEvent.EVENT).count() >= MOST_WAITING:
        return None
    events = Event.objects.filter(pk__gt=target.event_position, pk__lte=upto).order_by("pk")
    page = list(events[:_PAGE])
    clusters = _clusters_of(page) if target.clusters else {}
    matching = [event for event in page if _matches(target, event, clusters)]
    representation.load(matching)
    now = database.now()
    Delivery.objects.bulk_create(_event_message(target, event, now) for event in matching)
    position = page[-1].pk if len(page) == _PAGE else upto
    WebhookTarget.objects.filter(pk=target.pk).update(event_position=position)
    return len(matching)


def _matches(target: WebhookTarget, event: Event, clusters: dict[int, int | None]) -> bool:
    types = target.event_types
    if not (EVERYTHING in types or event.type in types or event.type.partition(".")[0] in types):
        return False
    if target.event_pools and event.pool_id not in target.event_pools:
        return False
    return not target.clusters or clusters[event.pk] in target.clusters


def _clusters_of(page: list[Event]) -> dict[int, int | None]:
    """Return the cluster of each event; of a block whose pool was deleted it is that of the pool's events."""
    pools = {event.pool_id for event in page if event.cluster_id is None}
    rows = PoolEvent.objects.filter(pgh_obj_id__in=pools - {None})
    cluster_of = dict(rows.values_list("pgh_obj_id", "cluster_id"))
    return {event.pk: event.cluster_id or cluster_of.get(event.pool_id) for event in page}


def _event_message(target: WebhookTarget, event: Any, now: datetime) -> Delivery:
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


# --- what a target and its users do with them -----------------------------------------------------


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


@transaction.atomic
def send_again(delivery: Delivery) -> None:
    """Send a failed or pending message at once, with all its tries. Raises Conflict, NotFound."""
    _require_enabled(delivery.target)
    # The target first, as all others lock them.
    if not WebhookTarget.objects.filter(pk=delivery.target_id).update(wait_until=None):
        raise errors.NotFound("There is no such target.")
    changed = (
        Delivery.objects.filter(pk=delivery.pk)
        .exclude(state=DeliveryState.DELIVERED)
        .update(state=DeliveryState.PENDING, attempts=0, next_try_at=Now())
    )
    if not changed:
        raise errors.Conflict("The message has arrived; it is not sent again.")
