"""events/: the event log, newest first, with the state before and after each event."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from pools.api import lookups
from pools.models import Cluster, Event
from pools.platform.history import representation
from pools.platform.rest import filters, generics, query
from pools.register import event_filters


class EventFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, method="filter_cluster", help_text="Name or id.")
    pool = filters.Filter(lookups.pools, method="filter_pools", help_text="Name or id.")
    type = filters.Filter(help_text="Such as instance.allocated.")
    holder_kind = filters.Filter()
    holder_id = filters.Filter()
    org = filters.Filter()
    env = filters.Filter()
    actor = filters.Filter()
    request_id = filters.Filter()
    block = filters.Filter(query.block, field_name="cidr", schema={"format": "cidr"})
    since = filters.time(field_name="at", lookup_expr="gte", help_text="Included.")
    until = filters.time(field_name="at", lookup_expr="lt", help_text="Not included.")

    def filter_pools(self, rows: QuerySet[Event], _name: str, pools: list[int]) -> QuerySet[Event]:
        return event_filters.of_pools(rows, pools)

    def filter_cluster(
        self, rows: QuerySet[Event], _name: str, cluster: Cluster
    ) -> QuerySet[Event]:
        return event_filters.of_cluster(rows, cluster.pk)


class Events(generics.ListView):
    """Events, the newest first."""

    needs = {"GET": ("pools.view_event",)}
    queryset = Event.objects.all()
    serializer_class = representation.EventSerializer
    filterset_class = EventFilter
    limited_by = ("cluster", "pool")
    ordering = "-id"

    def load(self, rows: list[Any]) -> None:
        representation.load(rows)
