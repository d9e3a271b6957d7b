"""List and pages of MAC entries: the addresses of each VM, and their conflicts."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.address_index import duplicates
from claims.admin import bulk, duplicate_list, scoped, tables
from claims.admin.entries import form
from claims.entries import entries as services
from claims.models import Entry, IndexEntry, IPPool, Workload
from claims.models.networks import FirstAddress
from claims.models.workloads import WorkloadKind
from pools.platform.admin import columns, display, filters, lists, pages, related
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page

_DUPLICATES = {"mac": _("duplicate MAC"), "ip": _("duplicate IP")}


def running_workloads(request: HttpRequest, entries: list[Any]) -> dict[tuple[int, str], Workload]:
    """Return the visible workloads that run with the MACs of the entries, by network id and MAC."""
    # Workloads have no index for MACs, the address index has one.
    index_entries = IndexEntry.objects.filter(
        workload__isnull=False,
        network__in={entry.ippool.network_id for entry in entries},
        mac__in={entry.mac for entry in entries},
    )
    ids = list(index_entries.values_list("workload_id", flat=True))
    rows = scoped.rows(request, Workload).filter(pk__in=ids).exclude(kind=WorkloadKind.TEMPLATE)
    return {(row.network_id, row.mac or ""): row for row in rows.order_by("-pk")}


def cluster_badge(entry: Entry, running: Workload | None) -> SafeString:
    """Return a badge that says if the workload with the entry's MAC runs with the entry's addresses."""
    if running is None:
        return display.DASH
    running_addresses = sorted(ip.partition("/")[0] for ip in running.ips)
    if running_addresses == sorted(ip.partition("/")[0] for ip in entry.ips):
        return display.badge(
            "ok",
            "●",
            gettext("running"),
            gettext("%(workload)s runs with these addresses") % {"workload": running},
        )
    running_ips = ", ".join(running_addresses) or gettext("no address")
    return display.badge(
        "open",
        "≠",
        gettext("address mismatch"),
        gettext("%(workload)s runs with %(addresses)s")
        % {"workload": running, "addresses": running_ips},
    )


def _duplicate(_request: HttpRequest, rows: QuerySet[Entry], kind: str) -> QuerySet[Entry]:
    if kind not in _DUPLICATES:
        return rows
    flagged = IndexEntry.objects.filter(entry__isnull=False, **{f"duplicate_{kind}": True})
    return rows.filter(pk__in=flagged.values("entry_id"))


def _namespaces(request: HttpRequest, most: int) -> list[str]:
    if scoped.request_scope(request).everything:
        return services.used_namespaces(most)
    names = scoped.rows(request, Entry).exclude(namespace="").order_by("namespace")
    return list(names.values_list("namespace", flat=True).distinct()[:most])


def _mac(entry: Entry) -> SafeString:
    url = display.url_of(entry)
    return format_html('<a class="cad-mono cad-nowrap" href="{}">{}</a>', url, entry.mac)


def _source(entry: Entry) -> SafeString:
    label = tables.source_label(entry.source)
    note = f": {entry.note}" if entry.note else ""
    return format_html('<span title="{}{}">{}</span>', label, note, label)


def _delete(request: HttpRequest, entry: Entry) -> HttpResponseBase:
    if not services.may_withdraw(request.user, entry):
        pages.require(request, "claims.delete_entry")
    text = gettext("%(holder)s loses these addresses, and another VM can get them: %(ips)s.")
    holder = f"{entry.vm} ({entry.mac})" if entry.vm else entry.mac
    effects = [text % {"holder": holder, "ips": ", ".join(entry.ips)}]
    running = running_workloads(request, [entry]).get((entry.ippool.network_id, entry.mac))
    if running:
        text = gettext(
            "It is running now, as %(workload)s, and keeps its addresses until it stops."
        )
        effects.append(text % {"workload": running})
    return pages.deletion(
        request,
        entry,
        lambda: services.delete([entry.pk], author=pages.author(request)),
        title=gettext("Delete %(mac)s?") % {"mac": entry.mac},
        deleted=gettext("The entry of %(mac)s was deleted.") % {"mac": entry.mac},
        effects=effects,
    )


@admin.register(Entry)
class EntryAdmin(scoped.Scoped[Entry]):
    list_display = (
        Column("mac", _("MAC"), _mac, ordering="mac"),
        Column(
            "ips",
            _("IPs"),
            lambda entry: scoped.addresses(entry.ips),
            ordering=FirstAddress("ips"),
        ),
        Column(
            "vm",
            _("VM"),
            lambda entry: tables.vm_link(entry.namespace, entry.vm, entry.vm),
            ordering="vm",
        ),
        "namespace",
        columns.related(
            "ippool.network", _("network"), text="name", ordering="ippool__network__name"
        ),
        Column("source", _("source"), _source, ordering="source"),
        Column(
            "seen", _("seen in cluster"), lambda entry: cluster_badge(entry, entry.shown_running)
        ),
        Column(
            "duplicates",
            _("duplicates"),
            lambda entry: duplicate_list.chip(entry.shown_duplicates, entry.ippool.network),
        ),
    )
    more_columns = (
        columns.text("note", _("note")),
        Column("cluster", _("cluster"), lambda entry: entry.ippool.cluster.name),
        Column("ippool", _("IPPool"), lambda entry: entry.ippool.name),
        columns.timestamp("created_at", _("created"), ordering="id"),
    )
    list_per_page = 50
    list_filter = (
        filters.custom(_("duplicates"), "duplicate", _DUPLICATES, _duplicate),
        scoped.cluster_filter("ippool__cluster_id"),
        scoped.network_filter("ippool__network_id"),
        related.by_names(_("namespace"), "namespace", _namespaces),
        filters.by_value(_("source"), "source", tables.SOURCE_LABELS),
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
    search_help_text = _("MAC, IP address, VM, namespace or note")
    ordering = ("ippool_id", "mac", "id")
    sortable_by = ("namespace",)
    list_select_related = ("ippool__network__cluster", "ippool__cluster")
    list_before_template = "cadastre/entries_intro.html"
    actions = (bulk.ENTRIES.action(), bulk.ENTRY_DELETION.action())
    list_pages = (
        Page("add", form.add),
        Page("check", form.check),
        bulk.ENTRIES.page(),
        bulk.ENTRY_DELETION.page(),
    )
    row_pages = (
        Page("change", form.change),
        Page("delete", _delete),
        lists.history(
            lambda entry: {"q": entry.mac, "type": "entry"}, "claims.view_entry", "pools.view_event"
        ),
    )

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        duplicates_by_entry = duplicates.of_entries(rows, scoped.request_scope(request))
        running = running_workloads(request, rows)
        for entry in rows:
            entry.shown_duplicates = duplicates_by_entry.get(entry.pk, [])
            entry.shown_running = running.get((entry.ippool.network_id, entry.mac))

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not scoped.rows(request, Entry).exists(),
            "ippools_exist": scoped.rows(request, IPPool).exists(),
            "everything": scoped.request_scope(request).everything,
            "may_add": form.may_add(request),
        }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return form.may_add(request)
