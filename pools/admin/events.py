"""The event log: list, filters, search, and the page of an event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_permission_codename
from django.db.models import DateTimeField, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.admin.clusters.field import CLUSTERS, tenant_filters
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
from pools.platform import events, search
from pools.platform.admin import (
    columns,
    display,
    filters,
    lists,
    pages,
    related,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.history import search as history_search
from pools.platform.history.representation import Change
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
Search = Callable[[search.SearchText], Iterable[int]]
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
    failed = "cad-bad" if event.type.endswith("failed") else ""
    return format_html('<span class="{}" title="{}">{}</span>', failed, event.type, _label(event))


def _label(event: Event) -> StrOrPromise:
    if event.type in _LABELS:
        return _LABELS[event.type]
    action = _ACTIONS.get(event.type.rpartition(".")[2])
    if action is None:
        return event.type
    model = events.event_models()[event.table].pgh_tracked_model
    return action % {"object": model._meta.verbose_name}


def _filter_events(rows: QuerySet[Event], text: str) -> QuerySet[Event]:
    """Return the events of a holder or inside of a CIDR, and the newest in which a text is found."""
    searched = search.parse(text)
    ids = [number for further in SEARCHES for number in further(searched)]
    if searched.network is not None and not searched.is_part:
        last = f"{searched.network.broadcast_address}/{searched.network.max_prefixlen}"
        within = {"cidr__net_contained_or_equal": str(searched.network)}
        ids += [
            *_newest(BlockEvent.objects.filter(cidr__gte=str(searched.network), cidr__lte=last)),
            *_newest(ContainerEvent.objects.filter(**within)),
            *_newest(PoolCIDREvent.objects.filter(**within)),
        ]
    for kind in (BlockEvent, FailureEvent):
        ids += _newest(kind.objects.filter(holder_id=searched.text))
    newest = Event.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    recent = search.matching(Event.objects.filter(pk__gt=newest - RECENT), text)
    return rows.filter(pk__in={*ids, *recent.values_list("pk", flat=True)[: search.MOST]})


def _newest(rows: QuerySet[Any]) -> list[int]:
    return list(rows.order_by("-pgh_id").values_list("pgh_id", flat=True)[: search.MOST])


# --- one event ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FieldChange:
    """A field of the object of an event as pages show it; "" stands for a value that is absent."""

    label: str
    before: StrOrPromise
    after: StrOrPromise
    differs: bool


@dataclass(frozen=True)
class EventChange:
    """The fields of the object of an event that have a value; `is_change` is False where it began or ended."""

    fields: list[FieldChange]
    is_change: bool = False

    @property
    def changed(self) -> list[FieldChange]:
        return [field for field in self.fields if field.differs]

    @property
    def unchanged(self) -> list[FieldChange]:
        return [field for field in self.fields if not field.differs]


def read_changes(rows: list[Event], user: Any) -> dict[int, EventChange]:
    """Return what events changed by their numbers, as far as the user may see it."""
    names = _RowNames(user)
    changes = history_search.changes(rows, user=user)
    return {event.pk: _event_change(event, changes[event.pk], names) for event in rows}


def _event_change(event: Event, change: Change, names: _RowNames) -> EventChange:
    # The event before one of a token or a second factor is that of another one of its owner.
    before = {} if event.table in _OF_OWNERS else change.before or {}
    after = change.after or {}
    is_change = bool(before and after)
    rows = []
    for field in events.event_models()[event.table]._meta.concrete_fields:
        old, new = (_shown(field, state.get(field.column), names) for state in (before, after))
        if field.column != "id" and (old or new):
            label = capfirst(str(field.verbose_name))
            rows.append(FieldChange(label, old, new, is_change and old != new))
    return EventChange(rows, is_change)


_OF_OWNERS = ("tokenevent", "factorevent")


class _RowNames:
    """The names of rows that events refer to, with links for users who may see them; each is read once.

    Who sees only some of the events sees no names: the row may be somebody else's.
    """

    def __init__(self, user: Any) -> None:
        self._user = user
        self._names: dict[tuple[Any, Any], StrOrPromise] = {}

    def name(self, model: Any, key: Any) -> StrOrPromise:
        if (model, key) not in self._names:
            self._names[model, key] = self._read(model, key)
        return self._names[model, key]

    def _read(self, model: Any, key: Any) -> StrOrPromise:
        meta = model._meta
        permission = f"{meta.app_label}.{get_permission_codename('view', meta)}"
        if not self._user.has_perms([history_search.VIEW_EVENTS, permission]):
            return f"#{key}"
        row = model._default_manager.filter(pk=key).first()
        if row is not None:
            return display.row_link(row) if admin.site.is_registered(model) else str(row)
        last = events.event_models().get(f"{meta.model_name}event")
        event = last and last.objects.filter(pgh_obj_id=key).order_by("-pk").first()
        name = getattr(event, "name", "") or getattr(event, "cidr", "") or f"#{key}"
        return gettext("%(name)s (deleted)") % {"name": name}


def _shown(field: Any, value: Any, names: _RowNames) -> StrOrPromise:
    """Return a value of a column, as PostgreSQL writes it in JSON, for a page."""
    if value in (None, "", [], {}):
        return ""
    if field.many_to_one or field.one_to_one:
        return names.name(field.related_model, value)
    if isinstance(field, DateTimeField):
        return display.exact_time(datetime.fromisoformat(value))
    if field.choices:
        return str(dict(field.flatchoices).get(value, value))
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    return display.DASH if value is None else str(value)


def _event_page(request: HttpRequest, event: Event) -> HttpResponse:
    row = events.event_models()[event.table].objects.filter(pk=event.pk).first()
    return pages.page(
        request,
        "event.html",
        event,
        title=capfirst(str(_label(event))),
        pool=Pool.objects.select_related("cluster").filter(pk=event.pool_id or 0).first(),
        cluster=Cluster.objects.filter(pk=event.cluster_id or 0).first(),
        change=read_changes([event], request.user)[event.pk],
        deleted=event.type.endswith(("removed", "deleted")),
        context=json.dumps(row.pgh_context or {}, indent=2) if row else "",
    )


# --- the list -------------------------------------------------------------------------------------


def _object(event: Event) -> SafeString | str:
    return display.address_link(event.cidr) if event.cidr else event.message


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
        *tenant_filters(),
    )
    exported = (
        "id", "at", "type", "cidr", "holder_kind", "holder_id", "org", "env", "actor",
        "request_id", "reason", "message",
    )  # fmt: skip
    search_help_text = _("Address, CIDR, holder, environment, actor, reason, name or request ID")
    ordering = ("-id",)
    list_before_template = "cadastre/events_intro.html"
    empty_text = _("No events yet. Every change of the register is recorded here.")
    row_pages = (
        Page("change", _event_page),
        Page("history", lambda _request, event: HttpResponseRedirect(display.url_of(event))),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Event], search_term: str
    ) -> tuple[QuerySet[Event], bool]:
        return _filter_events(queryset, search_term) if search_term else queryset, False
