"""List and pages of MAC entries: the addresses of each VM, and their conflicts."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.address_index import duplicates
from claims.admin import bulk, duplicate_list, scoped, tables
from claims.admin.entries import form
from claims.entries import entries as services
from claims.entries import requests, search
from claims.models import Entry, IndexEntry, IPPool, Workload
from pools.core import errors
from pools.platform.admin import display, lists, pages

LIST = "admin:claims_entry_changelist"


class EntryList(lists.BoundedList):
    """Adds duplicates and running workloads to the entries of a page, with a few queries for all of them."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        entries: list[Any] = list(self.result_list)
        duplicates_by_entry = duplicates.of_entries(entries, scoped.request_scope(request))
        running = running_workloads(request, entries)
        for entry in entries:
            entry.shown_duplicates = duplicates_by_entry.get(entry.pk, [])
            entry.shown_running = running.get((entry.ippool.network_id, entry.mac))
            entry.shown_links = scoped.request_scope(request).everything
        self.result_list = entries


def running_workloads(request: HttpRequest, entries: list[Any]) -> dict[tuple[int, str], Workload]:
    """Return the visible workloads that run with the MACs of the entries, by network id and MAC."""
    rows = scoped.rows(request, Workload).filter(
        network__in={entry.ippool.network_id for entry in entries},
        mac__in={entry.mac for entry in entries},
    )
    return {(row.network_id, row.mac or ""): row for row in rows.order_by("-pk")}


def cluster_badge(entry: Entry, running: Workload | None) -> SafeString:
    """Return a badge that says if the workload with the entry's MAC runs with the entry's addresses."""
    if running is None:
        return display.DASH
    running_addresses = sorted(ip.partition("/")[0] for ip in running.ips)
    if running_addresses == sorted(ip.partition("/")[0] for ip in entry.ips):
        return _state_badge(
            "ok",
            "●",
            gettext("running"),
            gettext("%(workload)s runs with these addresses") % {"workload": running},
        )
    running_ips = ", ".join(running_addresses) or gettext("no address")
    return _state_badge(
        "open",
        "≠",
        gettext("address mismatch"),
        gettext("%(workload)s runs with %(addresses)s")
        % {"workload": running, "addresses": running_ips},
    )


def _state_badge(style: str, shape: str, label: str, title: str) -> SafeString:
    return format_html(
        '<span class="cad-state cad-state-{}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        style,
        title,
        shape,
        label,
    )


class EntryDuplicateFilter(lists.ChoiceFilter):
    title = _("duplicates")
    parameter_name = "duplicate"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("mac", gettext("duplicate MAC")), ("ip", gettext("duplicate IP"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Entry]) -> QuerySet[Entry]:
        if self.value() not in {"mac", "ip"}:
            return rows
        flagged = IndexEntry.objects.filter(
            entry__isnull=False, **{f"duplicate_{self.value()}": True}
        )
        return rows.filter(pk__in=flagged.values("entry_id"))


class EntryClusterFilter(scoped.ScopedClusterFilter):
    lookup = "ippool__cluster_id"


class EntryNetworkFilter(scoped.NetworkFilter):
    lookup = "ippool__network_id"


class EntrySourceFilter(lists.ChoiceFilter):
    title = _("source")
    parameter_name = "source"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(source, str(label)) for source, label in tables.SOURCE_LABELS.items()]

    def queryset(self, request: HttpRequest, rows: QuerySet[Entry]) -> QuerySet[Entry]:
        return rows.filter(source=self.value()) if self.value() else rows


class NamespaceFilter(lists.ChoiceFilter):
    title = _("namespace")
    parameter_name = "namespace"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        names = scoped.rows(request, Entry).exclude(namespace="").order_by("namespace")
        namespaces = names.values_list("namespace", flat=True).distinct()[: scoped.MOST]
        return [(name, name) for name in namespaces]

    def queryset(self, request: HttpRequest, rows: QuerySet[Entry]) -> QuerySet[Entry]:
        return rows.filter(namespace=self.value()) if self.value() else rows


@admin.register(Entry)
class EntryAdmin(scoped.Scoped[Entry]):
    list_display = (
        "shown_mac",
        "shown_ips",
        "shown_vm",
        "namespace",
        "shown_network",
        "shown_source",
        "shown_seen",
        "shown_duplicates",
    )
    list_display_links = None
    list_per_page = 50
    list_filter = (
        EntryDuplicateFilter,
        EntryClusterFilter,
        EntryNetworkFilter,
        NamespaceFilter,
        EntrySourceFilter,
    )
    exported = (
        "id",
        "ippool.cluster.name",
        "ippool.network.name",
        "ippool.name",
        "mac",
        "ips",
        "vm",
        "namespace",
        "source",
        "note",
    )
    search_fields = ("vm",)
    search_help_text = _("MAC, IP address, VM, namespace or note")
    ordering = ("ippool", "mac", "id")
    list_before_template = "cadastre/entries_intro.html"
    actions = (bulk.ENTRIES.action(), bulk.ENTRY_DELETION.action())

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entry]:
        rows = super().get_queryset(request)
        return rows.select_related("ippool__network__cluster", "ippool__cluster")

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[EntryList]:
        return EntryList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Entry], search_term: str
    ) -> tuple[QuerySet[Entry], bool]:
        search_text = search_term.strip()
        return (search.matching_entries(queryset, search_text) if search_text else queryset), False

    @admin.display(description=_("MAC"), ordering="mac")
    def shown_mac(self, entry: Entry) -> SafeString:
        url = display.url_of(entry)
        return format_html('<a class="cad-mono cad-nowrap" href="{}">{}</a>', url, entry.mac)

    @admin.display(description=_("IPs"))
    def shown_ips(self, entry: Entry) -> SafeString:
        listed = format_html_join(
            "", "<span>{}</span>", ((display.address(ip),) for ip in entry.ips)
        )
        return format_html('<span class="cad-stack cad-nowrap">{}</span>', listed)

    @admin.display(description=_("VM"), ordering="vm")
    def shown_vm(self, entry: Entry) -> SafeString:
        return tables.vm_link(entry.namespace, entry.vm, entry.vm)

    @admin.display(description=_("network"), ordering="ippool__network__name")
    def shown_network(self, entry: Entry) -> SafeString:
        return display.row_link(entry.ippool.network, entry.ippool.network.name)

    @admin.display(description=_("source"), ordering="source")
    def shown_source(self, entry: Entry) -> SafeString:
        label = tables.source_label(entry.source)
        note = f": {entry.note}" if entry.note else ""
        return format_html('<span title="{}{}">{}</span>', label, note, label)

    @admin.display(description=_("seen in cluster"))
    def shown_seen(self, entry: Any) -> SafeString:
        return cluster_badge(entry, entry.shown_running)

    @admin.display(description=_("duplicates"))
    def shown_duplicates(self, entry: Any) -> SafeString:
        return duplicate_list.badge(entry.shown_duplicates, entry.ippool.network)

    # --- pages ------------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        more = {
            "nothing_yet": not scoped.rows(request, Entry).exists(),
            "ippools_exist": scoped.rows(request, IPPool).exists(),
            "everything": scoped.request_scope(request).everything,
            "may_add": form.may_add(request),
            **(extra_context or {}),
        }
        return super().changelist_view(request, more)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return form.may_add(request)

    def get_urls(self) -> list[URLPattern]:
        check = pages.in_admin(form.check)
        own = [path("check/", check, name="claims_entry_check")]
        return [*own, bulk.ENTRIES.url(), bulk.ENTRY_DELETION.url(), *super().get_urls()]

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        return form.add(request)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_entry")
        return form.change(request, self.row_or_404(request, object_id))

    def delete_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_entry")
        entry = self.row_or_404(request, object_id)
        if not requests.may_withdraw(request.user, entry):
            pages.require(request, "claims.delete_entry")
        if request.method == "POST":
            try:
                services.delete([entry.pk], author=pages.author(request))
            except errors.IpamError as error:
                messages.error(request, pages.sentence(error.message))
                return HttpResponseRedirect(display.url_of(entry))
            messages.success(
                request, gettext("The entry of %(mac)s was deleted.") % {"mac": entry.mac}
            )
            return HttpResponseRedirect(reverse(LIST))
        return pages.page(
            request,
            "entry_delete.html",
            title=(gettext("Delete %(mac)s?") % {"mac": entry.mac}),
            opts=Entry._meta,
            original=entry,
            entry=entry,
            running=running_workloads(request, [entry]).get((entry.ippool.network_id, entry.mac)),
        )

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_entry", "pools.view_event")
        entry = self.row_or_404(request, object_id)
        query = {"q": entry.mac, "type": "entry"}
        return HttpResponseRedirect(reverse("admin:pools_event_changelist", query=query))
