"""An event as REST answers it and webhooks send it, with the state of its object before and after."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from pools.models import BlockEvent, Cluster, ClusterEvent, Pool, PoolEvent
from pools.platform import events
from pools.platform.rest import fields
from pools.platform.rest.serializers import Representation

State = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """The columns of an object before and after an event; None where the object did not exist."""

    before: State | None = None
    after: State | None = None


# The conditions that, with pgh_id, find the previous event of an object: an index for blocks; most other
# objects have few rows.
_SAME_OBJECT = "p.pgh_obj_id = e.pgh_obj_id"
_SAME_BLOCK = f"p.cidr = e.cidr AND {_SAME_OBJECT}"
_WITHOUT_STATE = "failureevent"  # a refused allocation changes nothing


def read_changes(event_keys: Iterable[tuple[str, int]]) -> dict[int, Change]:
    """Return the change of each event by its id, with one query per table.

    An event key is (table as in `Event.table`, event id).
    """
    by_table: dict[str, list[int]] = defaultdict(list)
    changes: dict[int, Change] = {}
    for table, number in event_keys:
        by_table[table].append(number)
        changes[number] = Change()
    for table, model in events.event_models().items():
        if table in by_table and table != _WITHOUT_STATE:
            changes |= _read(model, by_table[table])
    return changes


def _read(model: Any, numbers: list[int]) -> dict[int, Change]:
    table = model._meta.db_table
    condition = _SAME_BLOCK if model is BlockEvent else _SAME_OBJECT
    statement = f"""
        SELECT e.pgh_id, e.pgh_label, to_jsonb(e)::text, to_jsonb(b)::text
        FROM {table} e LEFT JOIN LATERAL (
            SELECT * FROM {table} p WHERE {condition} AND p.pgh_id < e.pgh_id
            ORDER BY p.pgh_id DESC LIMIT 1) b ON true
        WHERE e.pgh_id = ANY (%s)
    """  # noqa: S608  # names of our own tables
    with connection.cursor() as cursor:
        cursor.execute(statement, [numbers])
        rows = cursor.fetchall()
    changes = {}
    for number, label, current, earlier in rows:
        before, after = _state(earlier), _state(current)
        removed = label in {"deleted", "removed"}
        changes[number] = Change(before or (after if removed else None), None if removed else after)
    return changes


def _state(text: str | None) -> State | None:
    if text is None:
        return None
    return {key: value for key, value in json.loads(text).items() if not key.startswith("pgh_")}


class EventHolderSerializer(Representation):
    """The holder of the block of an event; empty for other events."""

    kind = fields.TextField(source="holder_kind")
    id = fields.TextField(source="holder_id")


class EventSerializer(Representation):
    """What happened, by whom, and the columns of the object before and after; null where it did not exist."""

    id = fields.IntegerField()
    at = fields.TimeField()
    type = fields.TextField()
    cluster = fields.TextField(source="cluster_name")
    pool = fields.TextField(source="pool_name")
    pool_id = fields.IntegerField(allow_null=True)
    block = fields.TextField(source="cidr")
    holder = EventHolderSerializer(source="*")
    org = fields.TextField()
    env = fields.TextField()
    actor = fields.TextField()
    request_id = fields.TextField()
    reason = fields.TextField()
    message = fields.TextField()
    before = fields.ObjectField(source="change.before", allow_null=True)
    after = fields.ObjectField(source="change.after", allow_null=True)


def load(events: Sequence[Any], changes: Mapping[int, Change] | None = None) -> None:
    """Read the names of pools and clusters, and the changes by event id unless they are given."""
    pool_ids: set[Any] = {event.pool_id for event in events}
    pool_events = PoolEvent.objects.filter(pgh_obj_id__in=pool_ids)
    pool_events = pool_events.order_by("pgh_id")
    pools: dict[int, str] = dict(pool_events.values_list("pgh_obj_id", "name"))
    pools |= dict(Pool.objects.filter(pk__in=pools).values_list("pk", "name"))
    # Events of blocks have no cluster id: after the pool was deleted, its events still have it.
    cluster_of = dict(pool_events.values_list("pgh_obj_id", "cluster_id"))
    cluster_ids = {event.pk: event.cluster_id or cluster_of.get(event.pool_id) for event in events}
    ids: set[Any] = {*cluster_ids.values()}
    cluster_events = ClusterEvent.objects.filter(pgh_obj_id__in=ids).order_by("pgh_id")
    clusters: dict[Any, str] = dict(cluster_events.values_list("pgh_obj_id", "name"))
    clusters |= dict(Cluster.objects.filter(pk__in=ids).values_list("pk", "name"))
    if changes is None:
        changes = read_changes([(event.table, event.pk) for event in events])
    for event in events:
        event.cluster_name = clusters.get(cluster_ids[event.pk], "")
        event.pool_name = pools.get(event.pool_id, "")
        event.change = changes[event.pk]
