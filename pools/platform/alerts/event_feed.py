"""Messages about events of the log for the webhook targets that subscribe to them: one a message, none missing.

A target has the number of the last event that was looked at for it. Events are read only up to a number below
which nobody can still commit (pools/platform/history/event_numbers.py), so that a transaction that commits late
is not missed. Messages and number are written in one transaction.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from pools.core import errors
from pools.models import Cluster, CountedUntil, Delivery, Event, Pool, PoolEvent, WebhookTarget
from pools.models.alerts import DeliveryEvent, DeliveryState
from pools.platform import database
from pools.platform.alerts import outbox
from pools.platform.history import event_numbers, representation

EVERYTHING = "*"
KINDS = {"block", "node", "instance", "env", "released", "reclaimed", "cooldown_ended", "changed"}
MOST_TYPES = 50
MOST_OBJECTS = 100  # clusters or pools of a subscription
MOST_WAITING = 1000  # messages about events that wait for a target; more events wait in the log
_LOG = "webhooks"
_PAGE = 500  # events that are read at once


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


def write_messages() -> int:
    """Write the messages about new events for all targets that subscribe to them; return their number."""
    targets = WebhookTarget.objects.filter(enabled=True, event_types__len__gt=0)
    if not targets.exists():
        return 0
    upto, count = complete_number(), 0
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
    matching = _matching(target, page)
    now = database.now()
    Delivery.objects.bulk_create(outbox.event_message(target, event, now) for event in matching)
    position = page[-1].pk if len(page) == _PAGE else upto
    WebhookTarget.objects.filter(pk=target.pk).update(event_position=position)
    return len(matching)


def _matching(target: WebhookTarget, page: list[Event]) -> list[Event]:
    """Return the events of a page that a target subscribes to, with the names that their messages have."""
    clusters = _clusters_of(page) if target.event_clusters else {}
    events = [event for event in page if _matches(target, event, clusters)]
    representation.load(events)
    return events


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
