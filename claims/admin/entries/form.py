"""The form of a MAC entry, and the check that its page calls while the user types."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import namespaces
from claims.address_index import duplicates
from claims.admin import duplicate_list, scoped, tables, time_bars
from claims.core import entries as core
from claims.core.entries import EntrySpec
from claims.entries import entries as services, ippools
from claims.models import NAD, Entry, IPPool, Network
from claims.models.networks import EntrySource
from claims.networks import networks
from pools.core import errors, object_reader
from pools.platform.admin import display, forms as fields, lists, pages, related, row_forms


class EntryForm(row_forms.RowForm):
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

    def __init__(
        self, data: Any, rows: QuerySet[IPPool], *, entry: Entry | None = None, initial: Any = None
    ) -> None:
        super().__init__(data, initial=initial)
        if entry is not None:
            self.show_row(entry, form_values)
        ippool_field: Any = self.fields["ippool"]
        ippool_field.queryset = rows.select_related("cluster", "network")
        ippool_field.disabled = entry is not None

    def clean(self) -> dict[str, Any]:
        """Parse the entry; each problem is shown beside its field."""
        ippool = self.cleaned_data.get("ippool")
        if ippool is not None and not self.errors:
            self.spec, problems = parse_entry(self.cleaned_data, ippool)
            for problem in problems:
                name = problem.field.split(".")[0]
                field = name if name in self.fields else None
                self.add_error(field, fields.validation_error(problem))
        return self.cleaned_data


def form_values(entry: Entry) -> dict[str, Any]:
    """Return the values of an entry as the form shows them."""
    values = {name: getattr(entry, name) for name in core.FIELDS}
    return {**values, "ips": ", ".join(entry.ips), "ippool": entry.ippool_id}


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
    warnings = duplicate_list.warnings(entry_duplicates, ippool.network)
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
    source = EntrySource.HAND
    if not (user.has_perm("claims.add_entry") and scoped.request_scope(request).everything):
        services.check_request(user, ippool, specs)
        source = EntrySource.REQUEST
    return services.add(ippool.pk, specs, source=source, author=pages.author(request))


def warn_of_duplicates(request: HttpRequest, entries: list[Entry]) -> None:
    """Add a message for each duplicate of the saved entries, at most 10."""
    duplicates_by_entry = duplicates.of_entries(entries, scoped.request_scope(request))
    lines = dict.fromkeys(
        line
        for entry_duplicates in duplicates_by_entry.values()
        for line in duplicate_list.warning_texts(entry_duplicates)
    )
    for line in list(lines)[:10]:
        messages.warning(request, line)


def add(request: HttpRequest) -> HttpResponse:
    """Show the form of a new entry and save it; `?ippool=` preselects its IPPool."""
    if not may_add(request):
        pages.require(request, "claims.add_entry")
    initial = {"ippool": request.GET.get("ippool") or _only_suitable_ippool(request)}
    initial |= {name: request.GET[name] for name in core.FIELDS if name in request.GET}
    form = EntryForm(request.POST or None, scoped.rows(request, IPPool), initial=initial)
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form):
            entries = add_entries(request, form.cleaned_data["ippool"], [form.spec])
            messages.success(
                request,
                (
                    gettext("%(mac)s has %(ips)s.")
                    % {"mac": entries[0].mac, "ips": ", ".join(entries[0].ips)}
                ),
            )
            warn_of_duplicates(request, entries)
            return HttpResponseRedirect(display.url_of(entries[0]))
    return _page(request, gettext("Add a MAC entry"), form)


def _only_suitable_ippool(request: HttpRequest) -> int | None:
    """Return the id of the IPPool if exactly one visible network can hold static VMs, else None."""
    suitable_networks = scoped.rows(request, Network).filter(
        networks.fitting_query(scoped.rows(request, NAD))
    )
    candidates = scoped.rows(request, IPPool).filter(network__in=suitable_networks)[:2]
    return candidates[0].pk if len(candidates) == 1 else None


def change(request: HttpRequest, entry: Entry) -> HttpResponse:
    """Show an entry with its conflicts, and the form if the user may change it."""
    user: Any = request.user
    everything = scoped.request_scope(request).everything
    may_change = everything and user.has_perm("claims.change_entry")
    rows = scoped.rows(request, IPPool)
    form = EntryForm(request.POST or None, rows, entry=entry) if may_change else None
    if request.method == "POST":
        pages.require(request, "claims.change_entry")
        if form is None:
            pages.require(request, "claims.view_every_namespace")
        elif form.is_valid():
            with pages.errors_at_field(form):
                changed = services.change(
                    entry.pk,
                    form.spec,
                    author=pages.author(request),
                    version=form.check_version,
                )
                messages.success(
                    request,
                    (
                        gettext("%(mac)s has %(ips)s.")
                        % {"mac": changed.mac, "ips": ", ".join(changed.ips)}
                    ),
                )
                warn_of_duplicates(request, [changed])
                return HttpResponseRedirect(display.url_of(changed))
    return _page(request, entry.mac, form, entry=entry)


def _page(
    request: HttpRequest, title: str, form: EntryForm | None, *, entry: Entry | None = None
) -> HttpResponse:
    entry_duplicates = []
    if entry is not None:
        entry_duplicates = duplicates.of_entries([entry], scoped.request_scope(request))[entry.pk]
    return pages.page(
        request,
        "entry.html",
        entry or Entry,
        title=title,
        form=form,
        warnings=[pages.sentence(warning.message) for warning in core.warnings(entry.ips)]
        if entry
        else [],
        duplicates=duplicate_list.badge(entry_duplicates, entry.ippool.network)
        if entry and entry_duplicates
        else "",
        check_url=reverse("admin:claims_entry_check"),
        ippools_exist=scoped.rows(request, IPPool).exists(),
        everything=scoped.request_scope(request).everything,
        bar=time_bars.of_entry(request, entry) if entry else None,
        source=tables.source_label(entry.source) if entry else "",
        vm_link=tables.vm_link(entry.namespace, entry.vm) if entry else "",
        vm=_vm_manifest(entry, scoped.request_scope(request)) if entry else None,
        withdrawal=entry is not None and services.may_withdraw(request.user, entry),
        call=f"ippools/{entry.ippool_id}/entries/{entry.pk}/" if entry else "",
    )


def _vm_manifest(entry: Entry, scope: namespaces.Scope) -> tables.VMText:
    network = entry.ippool.network
    return tables.manifest_text(
        network,
        vm=entry.vm,
        namespace=entry.namespace,
        mac=entry.mac,
        scope=scope,
        missing_vm_text=gettext("No VM set for this entry."),
    )
