"""The event log: list, filters, search, and the page of an event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.pools import blocks, pools
from pools.models import BlockEvent, Cluster, Event, FailureEvent, Pool
from pools.platform import events
from pools.platform.admin import display, lists, pages, search_text

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

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
    "env.ipv4_addon_enabled": _("IPv4 add-on enabled"),
    "env.ipv4_addon_failed": _("IPv4 add-on failed"),
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
RECENT = 100_000  # events; searches by actor, request and environment are limited to the newest


class EventTypeFilter(lists.ChoiceFilter):
    title = _("event type")
    parameter_name = "type"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [
            ("block", gettext("allocated")),
            ("released", gettext("released or reclaimed")),
            ("failed", gettext("allocation failed")),
            ("cooldown", gettext("cooldown ended")),
            *((subject, str(label)) for subject, label in SUBJECTS.items()),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Event]) -> QuerySet[Event]:
        chosen = self.value() or ""
        if chosen in TYPES:
            return rows.filter(type__in=TYPES[chosen])
        if chosen in SUBJECTS:
            return rows.filter(type__startswith=f"{chosen}.")
        return rows


class EventClusterFilter(lists.ChoiceFilter):
    title = _("cluster")
    parameter_name = "cluster"
    options = pools.PoolClusterFilter.options

    def queryset(self, request: HttpRequest, rows: QuerySet[Event]) -> QuerySet[Event]:
        return rows.filter(cluster_id=self.selected_id()) if self.value() else rows


class EventPoolFilter(lists.ChoiceFilter):
    title = _("pool")
    parameter_name = "pool"
    options = blocks.BlockPoolFilter.options

    def queryset(self, request: HttpRequest, rows: QuerySet[Event]) -> QuerySet[Event]:
        return rows.filter(pool_id=self.selected_id()) if self.value() else rows


@admin.register(Event)
class EventAdmin(lists.ReadOnlyAdmin[Event]):
    list_display = (
        "shown_at",
        "shown_type",
        "shown_what",
        "shown_holder",
        "org",
        "env",
        "actor",
        "shown_why",
    )
    list_display_links = None
    list_filter = (EventTypeFilter, EventClusterFilter, EventPoolFilter)
    exported = (
        "id",
        "at",
        "type",
        "cidr",
        "holder_kind",
        "holder_id",
        "org",
        "env",
        "actor",
        "request_id",
        "reason",
        "message",
    )
    search_fields = ("holder_id",)
    search_help_text = _("Address, CIDR, holder, environment, actor or request ID")
    ordering = ("-id",)
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/events_intro.html"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Event], search_term: str
    ) -> tuple[QuerySet[Event], bool]:
        if not search_term:
            return queryset, False
        return _filter_events(queryset, search_text.parse(search_term)), False

    @admin.display(description=_("when"))
    def shown_at(self, event: Event) -> SafeString:
        return display.link(display.url_of(event), display.timestamp(event.at))

    @admin.display(description=_("event"))
    def shown_type(self, event: Event) -> SafeString:
        return type_label(event)

    @admin.display(description=_("address or object"))
    def shown_what(self, event: Event) -> SafeString:
        return display.address_link(event.cidr) if event.cidr else format_html("{}", event.message)

    @admin.display(description=_("holder"))
    def shown_holder(self, event: Event) -> SafeString:
        return display.holder(event.holder_kind, event.holder_id)

    @admin.display(description=_("reason"))
    def shown_why(self, event: Event) -> str:
        return event.reason

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_event")
        number = lists.parse_id(object_id)
        event = Event.objects.filter(pk=number).first()
        if event is None:
            raise Http404(gettext("This event does not exist."))
        return _event_page(request, event)

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_event")
        return HttpResponseRedirect(reverse("admin:pools_event_change", args=[object_id]))


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
        ids = inside.order_by("-pgh_id").values_list("pgh_id", flat=True)[: lists.REACH]
        return rows.filter(pk__in=list(ids))
    ids = [
        number
        for kind in (BlockEvent, FailureEvent)
        for number in kind.objects.filter(holder_id=searched.text)
        .order_by("-pgh_id")
        .values_list("pgh_id", flat=True)[: lists.REACH]
    ]
    ids += [number for further in SEARCHES for number in further(searched)]
    if ids:
        return rows.filter(pk__in=ids)
    newest = Event.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    recent = rows.filter(pk__gt=newest - RECENT)
    text = searched.text
    return recent.filter(Q(actor=text) | Q(request_id=text) | Q(env=text))


# --- one event ------------------------------------------------------------------------------------


def _event_page(request: HttpRequest, event: Event) -> HttpResponse:
    model = events.event_models()[event.table]
    after = model.objects.filter(pk=event.pk).first()
    before = _before(event, model, after)
    return pages.page(
        request,
        "event.html",
        title=event.type,
        opts=Event._meta,
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
    if after is None or event.table == "failureevent":
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
