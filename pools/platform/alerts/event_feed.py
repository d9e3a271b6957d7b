"""Events of the log for webhook targets that subscribe to them: in order, each at least once.

The log itself is the queue: a target has the number of the last event that it is done with, and nothing is
written when events happen. Events are read only up to a number below which nobody can still commit
(pools/platform/history/event_numbers.py), so that a transaction that commits late is not missed. What comes after
that number in order is determined, and with it the number of each event in the sequence of a target: a batch
that is sent again has the same ids and sequence numbers. A worker that is killed has not moved the position.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from pools.core import block_fields, errors
from pools.models import AuditSegment, Cluster, CountedUntil, Event, Pool, PoolEvent, WebhookTarget
from pools.models.fields import Clock
from pools.platform.alerts import outbox
from pools.platform.alerts.representation import link
from pools.platform.history import event_numbers, representation
from pools.platform.leases import Lease

CONTENT_TYPE = "application/cloudevents-batch+json; charset=utf-8"
EVERYTHING = "*"
KINDS = {"block", "node", "instance", "env", "released", "reclaimed", "cooldown_ended", "changed"}
MOST_TYPES = 50
MOST_OBJECTS = 100  # clusters or pools of a subscription
_LOG = "webhooks"
_PAGE = 500  # events that are read at once, and the most of a batch
_LARGEST = 1 << 20  # bytes of a batch, unless a single event is larger
_UID_SPACE = uuid.UUID("6a0b7c52-6d0f-4b0e-9a51-1d7e0b7e8a10")


@dataclass(frozen=True)
class Batch:
    """Messages to a target, which stands at `position` and `sequence` when they have arrived."""

    target: WebhookTarget
    messages: list[str]
    position: int
    sequence: int
    reports_gap: bool = False
    last_event: int | None = None  # the number of the last event in it

    @property
    def body(self) -> bytes:
        return f"[{','.join(self.messages)}]".encode()

    @property
    def uid(self) -> str:
        """The id of the batch: the same for each try to send it."""
        text = f"{self.target.pk}/{self.target.event_sequence}/{self.sequence}"
        return str(uuid.uuid5(_UID_SPACE, text))


def parse_types(value: object, field: str = "event_types") -> list[str]:
    """Parse types of events, their first words or `*`. Raises InvalidInput wrong_type, invalid_choice."""
    if not isinstance(value, list) or len(value) > MOST_TYPES:
        message = f"a list of at most {MOST_TYPES} texts is expected"
        raise errors.InvalidInput.for_field(field, "wrong_type", message)
    for index, text in enumerate(value):
        path = f"{field}.{index}" if field else str(index)
        if not isinstance(text, str):
            raise errors.InvalidInput.for_field(path, "wrong_type", "a text is expected", text)
        kind, dot, action = text.partition(".")
        named = not dot or action.replace("_", "").isalnum()
        if text != EVERYTHING and (kind not in KINDS or not named or len(text) > 63):
            names = ", ".join(sorted(KINDS))
            message = f"a type such as pool.created, * or one of {names} is expected"
            raise errors.InvalidInput.for_field(path, "invalid_choice", message, text)
    return sorted(set(value))


def parse_clusters(value: object, field: str = "event_clusters") -> list[int]:
    """Parse ids of clusters. Raises InvalidInput wrong_type, unknown_cluster."""
    return _parse_ids(value, field, Cluster, "unknown_cluster")


def parse_pools(value: object, field: str = "event_pools") -> list[int]:
    """Parse ids of pools. Raises InvalidInput wrong_type, unknown_pool."""
    return _parse_ids(value, field, Pool, "unknown_pool")


def _parse_ids(value: object, field: str, model: Any, code: str) -> list[int]:
    ids = value if isinstance(value, list) else [None]
    fitting = [
        number
        for number in ids
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 1 << 63
    ]
    if len(fitting) < len(ids) or len(ids) > MOST_OBJECTS:
        message = f"a list of at most {MOST_OBJECTS} ids is expected"
        raise errors.InvalidInput.for_field(field, "wrong_type", message)
    present = set(model.objects.filter(pk__in=fitting).values_list("pk", flat=True))
    for number in fitting:
        if number not in present:
            raise errors.InvalidInput.for_field(field, code, "there is no such object", number)
    return sorted(present)


def complete_number() -> int:
    """Return the number up to which no event can appear any more."""
    with transaction.atomic():
        row, _created = CountedUntil.objects.select_for_update().get_or_create(log=_LOG)
        row.counted = event_numbers.complete_number(row)
        row.save()
    return row.counted


def due_targets() -> list[int]:
    """Return the targets that may have events to receive and that no worker sends to."""
    now = Clock()
    rows = WebhookTarget.objects.filter(
        Q(leased_until=None) | Q(leased_until__lt=now),
        Q(wait_until=None) | Q(wait_until__lte=now),
        enabled=True,
        event_types__len__gt=0,
    )
    if not rows.exists():
        return []
    waiting = Q(event_position__lt=complete_number()) | Q(event_gap_to__isnull=False)
    return list(rows.filter(waiting).order_by("pk").values_list("pk", flat=True))


def start(target: WebhookTarget) -> None:
    """Let a target that receives no events so far begin with the next one."""
    target.event_position = event_numbers.newest_number()
    target.event_gap_from = target.event_gap_to = target.events_failing_since = None
    target.event_status, target.event_error = None, ""


def next_batch(target_id: int, upto: int) -> Batch | None:
    """Return the next messages of a target up to the event `upto`; None if it has seen all events.

    A batch without messages only moves the position past events that do not match.
    """
    target = WebhookTarget.objects.get(pk=target_id)
    if not target.event_types:
        return None
    _leave_out_old(target, upto)
    messages = [_gap_message(target)] if target.event_gap_to is not None else []
    page = _read_page(target.event_position, upto)
    if not page and not messages:
        return (
            None
            if target.event_position >= upto
            else Batch(target, [], upto, target.event_sequence)
        )
    position, largest = target.event_position, target.event_limit or _LARGEST
    most, last_event = target.event_most or _PAGE, None
    size = 1 + sum(len(text.encode()) + 1 for text in messages)  # with brackets and commas
    for event in _load_matching(target, page):
        if event.message is not None:
            text = _event_message(target.event_sequence + len(messages) + 1, event.message)
            size += len(text.encode()) + 1
            if messages and (size > largest or len(messages) >= most):
                break
            messages.append(text)
            last_event = event.pk
        position = event.pk
    else:
        position = upto if len(page) < _PAGE else position
    return Batch(
        target,
        messages,
        position,
        target.event_sequence + len(messages),
        reports_gap=target.event_gap_to is not None,
        last_event=last_event,
    )


@dataclass(frozen=True)
class _Read:
    """An event that was read; `message` is None if the target does not receive it."""

    pk: int
    message: Event | None


def _read_page(position: int, upto: int) -> list[Event]:
    rows = Event.objects.filter(pk__gt=position, pk__lte=upto)
    return list(rows.order_by("pk")[:_PAGE])


def _load_matching(target: WebhookTarget, page: list[Event]) -> Iterator[_Read]:
    """Yield the events of a page in order, those that match with the names that their message has."""
    clusters = _clusters_of(page) if target.event_clusters else {}
    matching = [event for event in page if _matches(target, event, clusters)]
    representation.load(matching)
    numbers = {event.pk for event in matching}
    for event in page:
        yield _Read(event.pk, event if event.pk in numbers else None)


def _matches(target: WebhookTarget, event: Event, clusters: dict[int, int | None]) -> bool:
    types = target.event_types
    if not (EVERYTHING in types or event.type in types or event.type.partition(".")[0] in types):
        return False
    if target.event_pools and event.pool_id not in target.event_pools:
        return False
    return not target.event_clusters or clusters[event.pk] in target.event_clusters


def _clusters_of(page: list[Event]) -> dict[int, int | None]:
    """Return the cluster of each event; of a block whose pool was deleted it is that of the pool's events."""
    pools = {event.pool_id for event in page if event.cluster_id is None}
    rows = PoolEvent.objects.filter(pgh_obj_id__in=pools - {None})
    cluster_of = dict(rows.values_list("pgh_obj_id", "cluster_id"))
    return {event.pk: event.cluster_id or cluster_of.get(event.pool_id) for event in page}


def _event_message(sequence: int, event: Event) -> str:
    return _cloud_event(
        f"event-{event.pk}",
        f"cadastre.event.{event.type}",
        f"{event.table}/{event.object_id}",
        sequence,
        block_fields.format_time(event.at),
        {
            "event": representation.EventSerializer(event).data,
            "link": link(f"/admin/pools/event/{event.pk}/change/"),
        },
    )


def _gap_message(target: WebhookTarget) -> str:
    first, last = target.event_gap_from, target.event_gap_to
    return _cloud_event(
        f"gap-{first}-{last}",
        "cadastre.events.left_out",
        "events",
        target.event_sequence + 1,
        None,
        {"from": first, "to": last, "link": link("/admin/pools/event/")},
    )


def _cloud_event(
    uid: str, kind: str, subject: str, sequence: int, time: str | None, data: dict[str, Any]
) -> str:
    """Return a message with the attributes of CloudEvents 1.0 and its extension `sequence`."""
    message = {
        "specversion": "1.0",
        "id": uid,
        "source": settings.IPAM_URL or "urn:cadastre",
        "type": kind,
        "subject": subject,
        "sequence": str(sequence),
        **({"time": time} if time else {}),
        "datacontenttype": "application/json",
        "data": data,
    }
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def _leave_out_old(target: WebhookTarget, upto: int) -> None:
    """Move the position of a target behind events that are too many, too old or deleted; note the gap."""
    first_kept = max(upto - settings.IPAM_WEBHOOK_MOST_EVENTS, min(_outdated_number(target), upto))
    if target.event_position >= first_kept:
        return
    rows = WebhookTarget.objects.filter(pk=target.pk, event_position=target.event_position)
    rows.update(
        event_gap_from=Coalesce(F("event_gap_from"), F("event_position") + 1),
        event_gap_to=first_kept,
        event_position=first_kept,
    )
    target.refresh_from_db()


def _outdated_number(target: WebhookTarget) -> int:
    """Return the number of the last event that is too old for the target, or was deleted; 0 if there is none.

    Segments of the audit chain have the times; events are deleted segment by segment.
    """
    outdated = Q(purged_at__isnull=False)
    if days := settings.IPAM_WEBHOOK_EVENT_DAYS:
        outdated |= Q(newest_at__lt=Clock() - timedelta(days=days))
    segments = AuditSegment.objects.filter(outdated, last_id__gt=target.event_position)
    return segments.order_by("-last_id").values_list("last_id", flat=True).first() or 0


def advance(lease: Lease, batch: Batch, **changes: Any) -> bool:
    """Note that a target is done with a batch; False if the lease is lost, so that the batch is sent again."""
    changes |= {"event_position": batch.position, "event_sequence": batch.sequence}
    if batch.reports_gap:
        changes |= {"event_gap_from": None, "event_gap_to": None}
    if batch.messages:
        changes |= {"events_failing_since": None, "event_status": None, "event_error": ""}
    return outbox.renew(lease, **changes)


def record_success(lease: Lease, batch: Batch) -> bool:
    """Note that a batch has arrived, if it has messages; False if the lease is lost."""
    if not batch.messages:
        return advance(lease, batch)
    changes: dict[str, Any] = {"failures": 0, "wait_until": None, "events_accepted_at": Clock()}
    most = (batch.target.event_most or _PAGE) * 2
    if most < _PAGE:
        changes["event_most"] = most
    else:
        changes |= {"event_most": None, "event_refusals": 0}
    return advance(lease, batch, **changes)
