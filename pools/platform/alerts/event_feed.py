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


def parse_type(value: object, field: str = "") -> str:
    """Parse a type of events, its first word or `*`. Raises InvalidInput wrong_type, invalid_choice."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "a text is expected", value)
    text = value.strip()
    kind, dot, action = text.partition(".")
    is_type = kind in KINDS and (not dot or action.replace("_", "").isalnum()) and len(text) < 64
    if text != EVERYTHING and not is_type:
        message = f"a type such as pool.created, * or one of {', '.join(sorted(KINDS))} is expected"
        raise errors.InvalidInput.for_field(field, "invalid_choice", message, text)
    return text


def parse_cluster(value: object, field: str = "") -> int:
    """Parse the id of a cluster. Raises InvalidInput wrong_type, unknown_cluster."""
    return _parse_id(value, field, Cluster, "unknown_cluster")


def parse_pool(value: object, field: str = "") -> int:
    """Parse the id of a pool. Raises InvalidInput wrong_type, unknown_pool."""
    return _parse_id(value, field, Pool, "unknown_pool")


def _parse_id(value: object, field: str, model: Any, code: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 63:
        raise errors.InvalidInput.for_field(field, "wrong_type", "an id is expected", value)
    if not model.objects.filter(pk=value).exists():
        raise errors.InvalidInput.for_field(field, code, "there is no such object", value)
    return value


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
    clusters = _clusters_of(page) if target.clusters else {}
    events = [event for event in page if _matches(target, event, clusters)]
    representation.load(events)
    return events


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
