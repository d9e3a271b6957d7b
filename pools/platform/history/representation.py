"""An event as REST answers it and webhooks send it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pools.models import Cluster, ClusterEvent, Pool, PoolEvent
from pools.platform.history import snapshots
from pools.platform.rest import fields
from pools.platform.rest.serializers import Representation


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


def load(events: Sequence[Any], changes: Mapping[int, snapshots.Change] | None = None) -> None:
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
        changes = snapshots.read_changes([(event.table, event.pk) for event in events])
    for event in events:
        event.cluster_name = clusters.get(cluster_ids[event.pk], "")
        event.pool_name = pools.get(event.pool_id, "")
        event.change = changes[event.pk]
