"""events/: the event log, newest first, with the state before and after each event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.api.schemas import endpoints
from pools.core import block_fields
from pools.models import Cluster, ClusterEvent, Event, Pool, PoolEvent
from pools.platform.history import snapshots
from pools.platform.rest import pagination, query, views


class Events(views.View):
    needs = {"GET": ("pools.view_event",)}

    @extend_schema(**endpoints.EVENTS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = Event.objects.all()
        if cluster := parameters.parse("cluster", lookups.cluster):
            rows = rows.filter(cluster_id=cluster.pk)
        if pools := parameters.parse("pool", lookups.pools):
            rows = rows.filter(pool_id__in=pools)
        for name in ("type", "holder_kind", "holder_id", "org", "env", "actor", "request_id"):
            if value := parameters.text(name):
                rows = rows.filter(**{name: value})
        if block := parameters.parse("block", query.block):
            rows = rows.filter(cidr=block)
        if since := parameters.parse("since", query.moment):
            rows = rows.filter(at__gte=since)
        if until := parameters.parse("until", query.moment):
            rows = rows.filter(at__lt=until)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=endpoints.EVENT_FIELDS,
                shape=shapes,
                default="-id",
            )
        )


def shapes(
    rows: list[dict[str, Any]], states: Mapping[int, snapshots.Change] | None = None
) -> list[dict[str, Any]]:
    """Return the JSON objects of event rows.

    `states` has the states before and after by event id; without it they are read here.
    """
    pool_events = PoolEvent.objects.filter(pgh_obj_id__in={row["pool_id"] for row in rows})
    pool_events = pool_events.order_by("pgh_id")
    pools: dict[int, str] = dict(pool_events.values_list("pgh_obj_id", "name"))
    pools |= dict(Pool.objects.filter(pk__in=pools).values_list("pk", "name"))
    # Events of blocks have no cluster id: after the pool was deleted, its events still have it.
    cluster_of = dict(pool_events.values_list("pgh_obj_id", "cluster_id"))
    for row in rows:
        row["cluster_id"] = row["cluster_id"] or cluster_of.get(row["pool_id"])
    ids = {row["cluster_id"] for row in rows}
    cluster_events = ClusterEvent.objects.filter(pgh_obj_id__in=ids).order_by("pgh_id")
    clusters: dict[int, str] = dict(cluster_events.values_list("pgh_obj_id", "name"))
    clusters |= dict(Cluster.objects.filter(pk__in=ids).values_list("pk", "name"))
    if states is None:
        states = snapshots.read_changes([(row["table"], row["id"]) for row in rows])
    return [
        {
            "id": row["id"],
            "at": block_fields.time(row["at"]),
            "type": row["type"],
            "cluster": clusters.get(row["cluster_id"], ""),
            "pool": pools.get(row["pool_id"], ""),
            "pool_id": row["pool_id"],
            "block": row["cidr"],
            "holder": {"kind": row["holder_kind"], "id": row["holder_id"]},
            "org": row["org"],
            "env": row["env"],
            "actor": row["actor"],
            "request_id": row["request_id"],
            "reason": row["reason"],
            "message": row["message"],
            "before": states[row["id"]].before,
            "after": states[row["id"]].after,
        }
        for row in rows
    ]
