"""events/: the event log, newest first, with the state before and after each event."""

from __future__ import annotations

from typing import Any

from pools.api import lookups
from pools.models import Event
from pools.platform.history import representation
from pools.platform.rest import filters, generics, query
from pools.register import event_filters


class EventFilter(filters.FilterSet):
    cluster = filters.Filter(
        lookups.cluster,
        select=lambda rows, cluster: event_filters.of_cluster(rows, cluster.pk),
        help_text="Name or id.",
    )
    pool = filters.Filter(lookups.pools, select=event_filters.of_pools, help_text="Name or id.")
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


class Events(generics.ListView):
    """Events, the newest first."""

    queryset = Event.objects.all()
    serializer_class = representation.EventSerializer
    filterset_class = EventFilter
    limited_by = ("cluster", "pool")
    ordering = "-id"

    def load(self, rows: list[Any]) -> None:
        representation.load(rows)
