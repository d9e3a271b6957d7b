"""The event log: list, filters, search, and the page of an event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.admin.clusters.field import CLUSTERS
from pools.admin.pools import blocks
from pools.models import (
    BlockEvent,
    Cluster,
    ContainerEvent,
    Event,
    FailureEvent,
    Pool,
    PoolCIDREvent,
)
from pools.platform import events
from pools.platform.admin import (
    columns,
    display,
    filters,
    large_tables,
    lists,
    pages,
    related,
    search_text,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import event_filters

TYPES = {
    "block": ("instance.allocated", "node.enrolled", "env.ipv4_addon_enabled", "block.allocated"),
    "released": ("released", "reclaimed"),
    "failed": (
        "instance.allocation_failed",
        "node.enrollment_failed",
        "env.ipv4_addon_failed",
        "block.allocation_failed",
    ),
    "cooldown": ("cooldown_ended",),
}
SUBJECTS: dict[str, StrOrPromise] = {}  # first part of a type: its label; filled by pools.extension
_LABELS = {
    "released": _("released"),
    "reclaimed": _("reclaimed"),
    "cooldown_ended": _("cooldown ended"),
    "block.allocated": _("block allocated"),
    "block.allocation_failed": _("block allocation failed"),
    "instance.allocated": _("instance allocated"),
    "instance.allocation_failed": _("instance allocation failed"),
    "node.enrolled": _("node enrolled"),
    "node.enrollment_failed": _("node enrollment failed"),
    "env.ipv4_addon_enabled": _("Public IPv4 allocated"),
    "env.ipv4_addon_failed": _("Public IPv4 allocation failed"),
    "pool.cidr_added": _("CIDR added"),
    "pool.cidr_changed": _("CIDR changed"),
    "pool.cidr_removed": _("CIDR removed"),
    "pool.range_reserved": _("range reserved"),
    "pool.range_changed": _("reserved range changed"),
    "pool.range_removed": _("reserved range removed"),
}
# Labels of all other types, by their last part.
_ACTIONS = {
    "created": _("%(object)s created"),
    "changed": _("%(object)s changed"),
    "deleted": _("%(object)s deleted"),
    "revoked": _("%(object)s revoked"),
    "queued": _("%(object)s queued"),
    "drafting": _("%(object)s being read"),
    "drafted": _("%(object)s ready for review"),
    "committing": _("%(object)s being committed"),
    "committed": _("%(object)s committed"),
    "undone": _("%(object)s undone"),
    "cancelled": _("%(object)s cancelled"),
    "failed": _("%(object)s failed"),
}
# Further searches: each returns the ids of events about the searched object.
Search = Callable[[search_text.SearchText], Iterable[int]]
SEARCHES: list[Search] = []  # filled by pools.extension
RECENT = (
    100_000  # events; searches by what has no index, such as the reason, are limited to the newest
)


def _type_choices(_request: HttpRequest) -> list[tuple[str, StrOrPromise]]:
    return [
        ("block", _("allocated")),
        ("released", _("released or reclaimed")),
        ("failed", _("allocation failed")),
        ("cooldown", _("cooldown ended")),
        *SUBJECTS.items(),
    ]


def _by_type(_request: HttpRequest, rows: QuerySet[Event], chosen: str) -> QuerySet[Event]:
    # The condition on the table keeps PostgreSQL from reading the others.
    if chosen in TYPES:
        table = "failureevent" if chosen == "failed" else "blockevent"
        return rows.filter(table=table, type__in=TYPES[chosen])
    if chosen in SUBJECTS:
        others = rows.exclude(table__in=("blockevent", "failureevent"))
        return others.filter(type__startswith=f"{chosen}.")
    return rows


def _by_cluster(_request: HttpRequest, rows: QuerySet[Event], value: str) -> QuerySet[Event]:
    return event_filters.of_cluster(rows, lists.parse_id(value))


def _by_pool(_request: HttpRequest, rows: QuerySet[Event], value: str) -> QuerySet[Event]:
    return event_filters.of_pools(rows, [lists.parse_id(value)])


def type_label(event: Event) -> SafeString:
    failed = "cad-bad" if event.type.endswith("_failed") else ""
    return format_html('<span class="{}" title="{}">{}</span>', failed, event.type, _label(event))


def _label(event: Event) -> StrOrPromise:
    if event.type in _LABELS:
        return _LABELS[event.type]
    action = _ACTIONS.get(event.type.rpartition(".")[2])
    if action is None:
        return event.type
    model = events.event_models()[event.table].pgh_tracked_model
    return action % {"object": model._meta.verbose_name}


def _filter_events(rows: QuerySet[Event], searched: search_text.SearchText) -> QuerySet[Event]:
    if searched.network is not None:
        last = f"{searched.network.broadcast_address}/{searched.network.max_prefixlen}"
        inside = BlockEvent.objects.filter(cidr__gte=str(searched.network), cidr__lte=last)
        within = {"cidr__net_contained_or_equal": str(searched.network)}
        # Each table is searched by its own ids: the view reads no other table for them.
        return rows.filter(
            Q(table="blockevent", pk__in=_newest(inside))
            | Q(table="containerevent", pk__in=_newest(ContainerEvent.objects.filter(**within)))
            | Q(table="poolcidrevent", pk__in=_newest(PoolCIDREvent.objects.filter(**within)))
        )
    ids = [
        number
        for kind in (BlockEvent, FailureEvent)
        for number in _newest(kind.objects.filter(holder_id=searched.text))
    ]
    ids += [number for further in SEARCHES for number in further(searched)]
    if ids:
        return rows.filter(pk__in=ids)
    newest = Event.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    recent = rows.filter(pk__gt=newest - RECENT)
    text = searched.text
    exact = Q(actor=text) | Q(request_id=text) | Q(env=text)
    return recent.filter(exact | Q(reason__icontains=text) | Q(message__icontains=text))


def _newest(rows: QuerySet[Any]) -> list[int]:
    return list(rows.order_by("-pgh_id").values_list("pgh_id", flat=True)[: large_tables.REACH])


# --- one event ------------------------------------------------------------------------------------


def _event_page(request: HttpRequest, event: Event) -> HttpResponse:
    model = events.event_models()[event.table]
    after = model.objects.filter(pk=event.pk).first()
    before = _before(event, model, after)
    return pages.page(
        request,
        "event.html",
        Event,
        title=capfirst(str(_label(event))),
        event=event,
        pool=Pool.objects.select_related("cluster").filter(pk=event.pool_id or 0).first(),
        cluster=Cluster.objects.filter(pk=event.cluster_id or 0).first(),
        has_before=before is not None,
        changes=_changes(before, after),
        deleted=event.type.endswith(("removed", "deleted")),
        context=json.dumps(after.pgh_context or {}, indent=2) if after else "",
    )


def _before(event: Event, model: Any, after: Any) -> Any:
    """Return the snapshot before the event; failures have none.

    Blocks are filtered by CIDR too, so that their index over CIDRs is used.
    """
    if after is None or event.table in {"failureevent", "tokenevent", "factorevent"}:
        return None
    earlier = model.objects.filter(pgh_obj_id=event.object_id, pk__lt=event.pk)
    if event.table == "blockevent":
        earlier = earlier.filter(cidr=str(after.cidr))
    return earlier.order_by("-pk").first()


def _changes(before: Any, after: Any) -> list[tuple[str, str, str, bool]]:
    """Return (field, before, after, whether it differs) for each field that has a value."""
    if after is None:
        return []
    names = [
        field.attname
        for field in after._meta.concrete_fields
        if not field.name.startswith("pgh_") and field.name != "id"
    ]
    rows = []
    for name in names:
        old = _text(getattr(before, name)) if before is not None else ""
        new = _text(getattr(after, name))
        if old or new:
            rows.append(
                (name.removesuffix("_id") if name != "holder_id" else name, old, new, old != new)
            )
    return rows


def _text(value: Any) -> str:
    return "" if value is None else str(value)


# --- the list -------------------------------------------------------------------------------------


def _object(event: Event) -> SafeString | str:
    return display.address_link(event.cidr) if event.cidr else event.message


def _search(rows: QuerySet[Event], text: str) -> QuerySet[Event]:
    return _filter_events(rows, search_text.parse(text))


@admin.register(Event)
class EventAdmin(lists.ListAdmin[Event]):
    list_display = (
        Column(
            "at",
            _("when"),
            lambda event: display.link(display.url_of(event), display.timestamp(event.at)),
        ),
        Column("type", _("event"), type_label),
        Column("object", _("address or object"), _object),
        columns.holder(),
        "org",
        "env",
        "actor",
        Column("reason", _("reason"), lambda event: event.reason),
    )
    more_columns = (columns.text("request_id", _("request ID")),)
    list_filter = (
        filters.custom(_("event type"), "type", _type_choices, _by_type),
        related.by_row(_("cluster"), "cluster", CLUSTERS, _by_cluster),
        related.by_row(_("pool"), "pool", blocks.POOLS, _by_pool),
    )
    exported = (
        "id", "at", "type", "cidr", "holder_kind", "holder_id", "org", "env", "actor",
        "request_id", "reason", "message",
    )  # fmt: skip
    search_fields = ("holder_id",)
    search_help_text = _("Address, CIDR, holder, environment, actor, reason, name or request ID")
    search = staticmethod(_search)
    ordering = ("-id",)
    list_before_template = "cadastre/events_intro.html"
    empty_text = _("No events yet. Every change of the register is recorded here.")
    row_pages = (
        Page("change", _event_page),
        Page("history", lambda _request, event: HttpResponseRedirect(display.url_of(event))),
    )
