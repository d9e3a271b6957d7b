"""List and pages of IPPools: the conditions, duplicates and entries of each network's IPPool."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext, ngettext_lazy

from claims.access import namespaces
from claims.address_index import duplicates
from claims.admin import scoped, vm_display
from claims.admin.entries import entries as entry_admin, rows as entry_rows
from claims.entries import ippools
from claims.models import Entry, IndexEntry, IPPool
from pools.admin.clusters import field as cluster_fields
from pools.models import Cluster
from pools.platform import documents
from pools.platform.admin import (
    columns,
    display,
    filters,
    forms as fields,
    lists,
    objects,
    pages,
    related,
    row_forms,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.events import Author

_FIRST_ENTRIES = 25  # entries in the table of an IPPool's page; the list of entries has all
_MOST_SHOWN = 50  # entries with conflicts, and invalid entries, on an IPPool's page
_SHOWN_YAML = 500  # entries; a larger manifest is downloaded
_CONFLICT_HELP = _("also used by another entry, a claim, a running VM, or the network itself")
# By condition type: the meaning of status True, and of any other status.
_CONDITION_MEANINGS = {
    "Success": (
        _("All entries are valid, and none duplicates another"),
        _("Some entries are invalid or duplicates"),
    ),
    "DuplicateMACAddresses": (
        _("MAC addresses appear more than once"),
        _("Every MAC address appears once"),
    ),
    "DuplicateIPAddresses": (
        _("IP addresses belong to several MAC addresses"),
        _("Every IP address belongs to one MAC address"),
    ),
}


class IPPoolForm(row_forms.ObjectForm):
    cluster = cluster_fields.cluster_field()
    name = fields.name_field(help_text=_("Name of the IPPool object in the cluster."))
    network_name = fields.identifier_field(
        label=_("Logical network"),
        widget=related.name_widget(scoped.OFFERED_LOGICAL_NETWORKS, placeholder="cluster_udn_prod"),
        help_text=_(
            "The network name in the spec.config of its NetworkAttachmentDefinitions. Each network"
            " has one IPPool."
        ),
    )
    note = fields.reason_field(required=False, help_text="")

    class Meta:
        model = IPPool
        fields = ("cluster", "name", "note")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.uid:
            self.fields["name"].disabled = True
            self.fields["name"].help_text = gettext(
                "Cannot be changed: the object exists in the cluster under this name."
            )


def sync_state(ippool: IPPool) -> str:
    """Return how the IPPool relates to its cluster's object, as text."""
    if ippool.gone_at is not None:
        return gettext("deleted in the cluster")
    if ippool.follows_cluster:
        return gettext("follows the cluster")
    if ippools.writes_ippools(ippool.cluster):
        return gettext("written to the cluster")
    return gettext("not written to the cluster")


def _condition_badge(condition: dict[str, Any]) -> SafeString:
    """Return a badge for a condition; its tooltip is the reason and message."""
    good = condition["status"] == ("True" if condition["type"] == "Success" else "False")
    return display.state(
        "ok" if good else "conflict", f"{condition['reason']}: {condition['message']}"
    )


def _duplicate_links(ippool: IPPool) -> SafeString:
    """Return links with the numbers of MAC and IP addresses in conflict.

    An address is in conflict with another entry, a claim, a running VM or the network itself. The
    conditions of the IPPool count only conflicts between entries.
    """
    counts: Any = (
        ("mac", ippool.duplicate_macs, ngettext_lazy("%(count)s MAC", "%(count)s MACs", "count")),
        ("ip", ippool.duplicate_ips, ngettext_lazy("%(count)s IP", "%(count)s IPs", "count")),
    )
    links = [
        (
            reverse(
                "admin:claims_entry_changelist",
                query={"network": ippool.network_id, "duplicate": kind},
            ),
            text % {"count": count},
            _CONFLICT_HELP,
        )
        for kind, count, text in counts
        if count
    ]
    return format_html_join(
        " ",
        '<a class="cad-state cad-state-conflict" href="{0}" title="{2}"><span aria-hidden="true">▲</span>'
        " {1}</a>",
        links,
    )


def _page(request: HttpRequest, ippool: IPPool) -> HttpResponse:
    scope = scoped.request_scope(request)
    rows = scoped.rows(request, Entry).filter(ippool=ippool)
    flagged_index_rows = IndexEntry.objects.filter(network=ippool.network_id, entry__isnull=False)
    flagged_index_rows = flagged_index_rows.filter(duplicate_mac=True) | flagged_index_rows.filter(
        duplicate_ip=True
    )
    conflicting_entries = list(
        rows.filter(pk__in=flagged_index_rows.values("entry_id")).order_by("mac", "pk")[
            :_MOST_SHOWN
        ]
    )
    first_entries = list(rows.order_by("mac", "pk")[:_FIRST_ENTRIES])
    duplicates_by_entry = duplicates.of_entries([*conflicting_entries, *first_entries], scope)
    count = rows.count()

    def with_badges(entries: list[Entry]) -> list[tuple[Entry, SafeString]]:
        return [
            (entry, vm_display.duplicate_badge(duplicates_by_entry[entry.pk], ippool.network))
            for entry in entries
        ]

    manifest = ""
    if count <= _SHOWN_YAML:
        manifest = documents.dump_yaml(ippools.manifest(ippool, rows=rows, status=scope.everything))
    user: Any = request.user
    return pages.page(
        request,
        "ippool.html",
        ippool,
        title=ippool.name,
        everything=scope.everything,
        sync_state=sync_state(ippool),
        count=count,
        entries_url=reverse("admin:claims_entry_changelist", query={"network": ippool.network_id}),
        may_add=entry_admin.may_add(request) and not _is_decided_by_cluster(ippool),
        may_edit=scope.everything
        and user.has_perm("claims.change_entry")
        and not _is_decided_by_cluster(ippool),
        conditions=[
            (
                _condition_badge(condition),
                _CONDITION_MEANINGS[condition["type"]][condition["status"] != "True"],
                {**condition, "since": parse_datetime(condition.get("lastTransitionTime", ""))},
            )
            for condition in (ippool.conditions if scope.everything else ())
            if condition["type"] in _CONDITION_MEANINGS
        ],
        conflict_links=_duplicate_links(ippool) if scope.everything else "",
        conflicting_entries=with_badges(conflicting_entries),
        first_entries=with_badges(first_entries),
        more_conflicts=len(conflicting_entries) == _MOST_SHOWN,
        problems=ippool.problems[:_MOST_SHOWN] if scope.everything else [],
        nads=ippools.associated_nads([ippool], scope)[ippool.pk],
        manifest=manifest,
        call=f"ippools/{ippool.pk}/entries/",
    )


def _is_decided_by_cluster(ippool: IPPool) -> bool:
    """Return True if the cluster's object decides the entries, so that they cannot be changed here."""
    return (
        ippool.follows_cluster
        and ippool.gone_at is None
        and not ippools.writes_ippools(ippool.cluster)
    )


# --- the list -------------------------------------------------------------------------------------


def _duplicate_choices(request: HttpRequest) -> list[tuple[str, str]]:
    """Only for users who see all namespaces, because the counts include all of them."""
    everything = scoped.request_scope(request).everything
    return [("yes", gettext("with duplicates"))] if everything else []


def _with_duplicates(request: HttpRequest, rows: QuerySet[IPPool], value: str) -> QuerySet[IPPool]:
    if value != "yes" or not scoped.request_scope(request).everything:
        return rows
    return rows.exclude(duplicate_macs=0, duplicate_ips=0)


def _entries(ippool: Any) -> SafeString:
    url = reverse("admin:claims_entry_changelist", query={"network": ippool.network_id})
    return format_html('<a href="{}">{}</a>', url, display.number(ippool.shown_number))


def _success(ippool: Any) -> SafeString:
    if not (ippool.shown_links and ippool.conditions):
        return display.DASH
    return _condition_badge(ippool.conditions[0])


def _conflicts(ippool: Any) -> SafeString | str:
    return (_duplicate_links(ippool) if ippool.shown_links else "") or display.DASH


@admin.register(IPPool)
class IPPoolAdmin(scoped.Scoped[IPPool], objects.ObjectAdmin[IPPool]):
    form = IPPoolForm
    fixed_fields = ("cluster", "network_name")
    form_template = "ippool_form.html"
    add_title = _("Add an IPPool")
    list_display = (
        columns.link("name", _("name"), ordering="name"),
        Column("cluster", _("cluster"), scoped.cluster_link, ordering="cluster__name"),
        columns.related("network", _("network"), text="name", ordering="network__name"),
        Column("entries", _("entries"), _entries),
        Column("success", _("success"), _success),
        Column("duplicates", _("duplicates and conflicts"), _conflicts),
        Column("sync", _("sync"), sync_state),
    )
    found_columns = ("name", "cluster", "network")
    list_per_page = 50
    list_filter = (
        scoped.cluster_filter(),
        scoped.network_filter(),
        filters.custom(_("duplicates"), "duplicate", _duplicate_choices, _with_duplicates),
    )
    exported = ("id", "cluster.name", "name", "network.name", "note")
    search_help_text = _("Name of the IPPool or of its network")
    ordering = ("cluster__name", "name")
    list_select_related = ("cluster__connection", "network__cluster")
    list_before_template = "cadastre/ippools_intro.html"
    row_pages = (
        Page("change", _page),
        Page("entries", entry_rows.view, "claims.view_entry"),
        lists.history(
            lambda ippool: {"q": ippool.name, "type": "ippool"},
            "claims.view_ippool",
            "pools.view_event",
        ),
    )

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        entries = scoped.rows(request, Entry).filter(ippool__in=rows).order_by()
        counts = dict(entries.values_list("ippool").annotate(number=Count("pk")))
        scoped.mark_links(request, rows)
        for ippool in rows:
            ippool.shown_number = counts.get(ippool.pk, 0)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not scoped.rows(request, IPPool).exists(),
            "clusters_exist": scoped.rows(request, Cluster).exists(),
            "everything": scoped.request_scope(request).everything,
        }

    def _needs(self, verb: str) -> tuple[str, ...]:
        """All entries go with an IPPool, also those of namespaces that the user may not see."""
        more = (namespaces.EVERY_NAMESPACE,) if verb == "delete" else ()
        return (*super()._needs(verb), *more)

    def form_context(self, request: HttpRequest, row: IPPool | None) -> dict[str, Any]:
        return {"clusters_exist": row is not None or Cluster.objects.exists()}

    def save_row(self, row: IPPool | None, form: Any, author: Author) -> IPPool:
        values = {**form.cleaned_data, "note": form.cleaned_data["note"] or ""}
        if row is None:
            return ippools.create(**values, author=author)
        return ippools.change(row.pk, **values, author=author, version=form.check_version)

    def delete_model(self, request: HttpRequest, obj: IPPool) -> None:
        ippools.delete(obj.pk, author=pages.author(request))

    def deletion_effects(self, row: IPPool) -> list[str]:
        count = row.entries.count()
        text = ngettext(
            "%(number)s entry is deleted and its addresses are released: VMs that are not running may lose them.",
            "%(number)s entries are deleted and their addresses are released: VMs that are not running may lose them.",
            count,
        )
        gone = gettext("An object in the cluster is not deleted.")
        return [text % {"number": display.digits(count)}, gone]
