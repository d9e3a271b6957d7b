"""MAC entries, the addresses of each VM: list, form, page, the check while the user types, and their conflicts."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.address_index import duplicates
from claims.admin import bulk, scoped, vm_display
from claims.core import entries as core
from claims.core.entries import EntrySpec
from claims.entries import entries as services, ippools
from claims.models import NAD, Entry, IndexEntry, IPPool, Network, Workload
from claims.models.networks import EntrySource, FirstAddress
from claims.models.workloads import WorkloadKind
from claims.networks import networks
from pools.core import errors, object_reader
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

_DUPLICATES = {"mac": _("duplicate MAC"), "ip": _("duplicate IP")}


# --- the form ---


class EntryForm(row_forms.ObjectForm):
    """The IPPool of an existing entry cannot be changed."""

    ippool = related.RelatedField(scoped.OFFERED_IPPOOLS, IPPool.objects.none(), label=_("IPPool"))
    mac = forms.CharField(
        label=_("MAC address"), widget=fields.addresses_text(placeholder="00:1a:4b:12:34:56")
    )
    ips = forms.CharField(
        label=_("IP addresses"),
        widget=scoped.addresses_widget(placeholder="10.0.0.5/24"),
        help_text=_(
            "At most one of each family, separated by commas. Without a prefix length,"
            " the prefix length of the subnet is used."
        ),
    )
    vm = forms.CharField(
        label=_("VM"), required=False, max_length=253, widget=fields.text(placeholder="web")
    )
    namespace = forms.CharField(
        required=False,
        max_length=253,
        widget=related.name_widget(scoped.OFFERED_NAMESPACES, placeholder="shop"),
    )
    note = forms.CharField(required=False, max_length=500, widget=fields.text())

    spec: EntrySpec

    class Meta:
        model = Entry
        fields = ("ippool", *core.FIELDS)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        ippool: Any = self.fields["ippool"]
        if self.request is not None:  # else it reads the values of a row of a table
            ippools = scoped.rows(self.request, IPPool)
            ippool.queryset = ippools.select_related("cluster", "network")
        ippool.disabled = self.row is not None

    def shown_values(self, row: Entry) -> dict[str, Any]:
        return {**super().shown_values(row), "ippool": row.ippool_id, "ips": ", ".join(row.ips)}

    def clean(self) -> dict[str, Any]:
        """Parse the entry; each problem is shown beside its field."""
        super().clean()
        ippool = self.cleaned_data.get("ippool")
        if ippool is not None and not self.errors:
            self.spec, problems = parse_entry(self.cleaned_data, ippool)
            for problem in problems:
                name = problem.field.split(".")[0]
                field = name if name in self.fields else None
                self.add_error(field, fields.validation_error(problem))
        return self.cleaned_data


def parse_entry(raw_values: Any, ippool: IPPool) -> tuple[EntrySpec, list[errors.FieldProblem]]:
    """Return the typed values as an entry of an IPPool, and their problems."""
    texts = {name: str(raw_values.get(name) or "").strip() for name in core.FIELDS}
    ips = texts.pop("ips").replace(",", " ").split()
    report = object_reader.ProblemReport()
    rules = ippools.rules(ippool.network, lenient=True, observed=True)
    parsed_values: dict[str, Any] = {"mac": "", "ips": ()}
    with report.collect():
        parsed_values["mac"] = core.parse_mac(texts.pop("mac"), rules)
    with report.collect():
        parsed_values["ips"] = core.parse_ips(ips, rules)
    report.problems += core.warnings(parsed_values["ips"])  # beside the duplicates of all addresses
    body = object_reader.Fields(dict(texts), "", report)
    optional_values = {name: core.optional(body, name) or "" for name in texts}
    return EntrySpec(
        parsed_values["mac"], tuple(parsed_values["ips"]), **optional_values
    ), report.problems


def check(request: HttpRequest) -> HttpResponse:
    """Show the problems and duplicates of the values typed so far; an empty field is no problem yet.

    In a table the names of the fields begin with that of their row.
    """
    pages.require(request, "claims.view_entry")
    query = {name.rpartition("-")[2]: request.GET[name] for name in request.GET}
    rows = scoped.rows(request, IPPool)
    ippool_id = scoped.IPPOOLS.parse_name(rows, query.get("ippool", "").strip())
    ippool = rows.filter(pk=ippool_id).select_related("network").first()
    if ippool is None:
        return HttpResponse()
    spec, problems = parse_entry(query, ippool)
    lines = [
        (pages.sentence(problem.message),)
        for problem in problems
        if query.get(problem.field.split(".")[0], "").strip()
    ]
    entry_id = lists.parse_id(query.get("entry", ""))
    entry_duplicates = (
        _entry_duplicates(request, ippool, spec, entry_id) if spec.mac or spec.ips else []
    )
    warnings = vm_display.duplicate_lines(entry_duplicates, ippool.network)
    return HttpResponse(format_html_join("", '<p class="cad-error">{}</p>', lines) + warnings)


def _entry_duplicates(
    request: HttpRequest, ippool: IPPool, spec: EntrySpec, entry_id: int
) -> list[duplicates.Duplicate]:
    candidate = duplicates.Candidate(
        ippool.network,
        spec.mac or None,
        [ip.partition("/")[0] for ip in spec.ips],
        spec.vm or "",
        spec.namespace or "",
        entry_id,
    )
    return duplicates.of_candidate(candidate, scoped.request_scope(request))


def may_add(request: HttpRequest) -> bool:
    """Return True if the user may add entries, or request addresses for their own VMs."""
    user: Any = request.user
    return any(map(user.has_perm, ("claims.add_entry", "claims.request_address")))


def add_entries(request: HttpRequest, ippool: IPPool, specs: list[EntrySpec]) -> list[Entry]:
    """Add entries; those of a user who may only request addresses are recorded as requests."""
    user: Any = request.user
    source, requester = EntrySource.HAND, None
    if not (user.has_perm("claims.add_entry") and scoped.request_scope(request).everything):
        services.check_request(user, ippool, specs)
        source, requester = EntrySource.REQUEST, user
    author = pages.author(request)
    return services.add(ippool.pk, specs, source=source, author=author, requester=requester)


def warn_of_duplicates(request: HttpRequest, entries: list[Entry]) -> None:
    """Add a message for each duplicate of the saved entries, at most 10."""
    duplicates_by_entry = duplicates.of_entries(entries, scoped.request_scope(request))
    lines = dict.fromkeys(
        line
        for entry_duplicates in duplicates_by_entry.values()
        for line in vm_display.duplicate_texts(entry_duplicates)
    )
    for line in list(lines)[:10]:
        messages.warning(request, line)


def _only_suitable_ippool(request: HttpRequest) -> int | None:
    """Return the id of the IPPool if exactly one visible network can hold static VMs, else None."""
    suitable_networks = scoped.rows(request, Network).filter(
        networks.fitting_query(scoped.rows(request, NAD))
    )
    candidates = scoped.rows(request, IPPool).filter(network__in=suitable_networks)[:2]
    return candidates[0].pk if len(candidates) == 1 else None


# --- the list and the page ---


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
    label = vm_display.source_label(entry.source)
    note = f": {entry.note}" if entry.note else ""
    return format_html('<span title="{}{}">{}</span>', label, note, label)


@admin.register(Entry)
class EntryAdmin(scoped.Scoped[Entry], objects.ObjectAdmin[Entry]):
    form = EntryForm
    form_template = "entry.html"
    shows_row = True
    add_title = _("Add a MAC entry")
    deletion_texts = {
        "title": _("Delete %(name)s?"),
        "deleted": _("The entry of %(name)s was deleted."),
    }
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
            lambda entry: vm_display.vm_link(entry.namespace, entry.vm, entry.vm),
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
            lambda entry: vm_display.duplicate_chip(entry.shown_duplicates, entry.ippool.network),
        ),
    )
    found_columns = ("mac", "ips", "vm", "network", "source")
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
        filters.by_value(_("source"), "source", vm_display.SOURCE_LABELS),
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
        Page("check", check),
        bulk.ENTRIES.page(),
        bulk.ENTRY_DELETION.page(),
    )
    row_pages = (
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
            "may_add": may_add(request),
        }

    def _needs(self, verb: str) -> tuple[str, ...]:
        """Return no permission: VM owners may request addresses, and withdraw what they requested."""
        return ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_add(request)

    def has_change_permission(self, request: HttpRequest, obj: Entry | None = None) -> bool:
        everything = scoped.request_scope(request).everything
        return everything and request.user.has_perm("claims.change_entry")

    def has_delete_permission(self, request: HttpRequest, obj: Entry | None = None) -> bool:
        return obj is not None and services.may_withdraw(request.user, obj)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "ippool": _only_suitable_ippool(request),
            **super().get_changeform_initial_data(request),
        }

    def form_context(self, request: HttpRequest, row: Entry | None) -> dict[str, Any]:
        scope = scoped.request_scope(request)
        context = {
            "check_url": reverse("admin:claims_entry_check"),
            "ippools_exist": scoped.rows(request, IPPool).exists(),
            "everything": scope.everything,
        }
        if row is None:
            return context
        network = row.ippool.network
        conflicts = duplicates.of_entries([row], scope)[row.pk]
        return context | {
            "title": row.mac,
            "warnings": [pages.sentence(problem.message) for problem in core.warnings(row.ips)],
            "duplicates": vm_display.duplicate_badge(conflicts, network) if conflicts else "",
            "bar": vm_display.entry_bar(request, row),
            "source": vm_display.source_label(row.source),
            "vm_link": vm_display.vm_link(row.namespace, row.vm),
            "vm": vm_display.manifest_text(
                network,
                vm=row.vm,
                namespace=row.namespace,
                mac=row.mac,
                scope=scope,
                missing_vm_text=gettext("No VM set for this entry."),
            ),
            "withdrawal": self.has_delete_permission(request, row),
            "call": f"ippools/{row.ippool_id}/entries/{row.pk}/",
        }

    def save_row(self, row: Entry | None, form: Any, author: Author) -> Entry:
        if row is None:
            return add_entries(form.request, form.cleaned_data["ippool"], [form.spec])[0]
        return services.change(row.pk, form.spec, author=author, version=form.check_version)

    def show_saved(self, request: HttpRequest, row: Entry, _message: str) -> HttpResponse:
        text = gettext("%(mac)s has %(ips)s.") % {"mac": row.mac, "ips": ", ".join(row.ips)}
        response = pages.done(request, text, row)
        warn_of_duplicates(request, [row])
        return response

    def _names(self, row: Entry) -> dict[str, str]:
        return {**super()._names(row), "name": row.mac}

    def delete_model(self, request: HttpRequest, obj: Entry) -> None:
        services.delete([obj.pk], author=pages.author(request))

    def deletion_context(self, request: HttpRequest, row: Entry) -> dict[str, Any]:
        text = gettext("%(holder)s loses these addresses, and another VM can get them: %(ips)s.")
        holder = f"{row.vm} ({row.mac})" if row.vm else row.mac
        effects = [text % {"holder": holder, "ips": ", ".join(row.ips)}]
        running = running_workloads(request, [row]).get((row.ippool.network_id, row.mac))
        if running:
            text = gettext(
                "It is running now, as %(workload)s, and keeps its addresses until it stops."
            )
            effects.append(text % {"workload": running})
        return {"effects": effects}
