"""The form of a MAC entry, and what is told while somebody types."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.urls import reverse

from claims.access import namespaces
from claims.address_index import duplicates
from claims.admin import duplicate_list, scoped, tables, vm_text
from claims.core import entries as core
from claims.core.entries import EntrySpec
from claims.entries import entries as services
from claims.entries import ippools, requests
from claims.models import NAD, Entry, IPPool, Network
from claims.models.ippools import Source
from claims.networks import networks
from pools.core import errors, object_reader
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields

_NAMES = ("mac", "ips", "vm", "namespace", "note")


class EntryForm(forms.Form):
    """`ippool` is fixed for an entry that there is."""

    ippool = forms.ModelChoiceField(IPPool.objects.none(), label="IPPool", widget=fields.select())
    mac = forms.CharField(
        label="MAC address", widget=fields.addresses_text(placeholder="00:1a:4b:12:34:56")
    )
    ips = forms.CharField(
        label="IP addresses",
        widget=fields.addresses_text(placeholder="10.0.0.5/24"),
        help_text="One of each family, with commas between them. Without a prefix length that of the"
        " subnet is meant.",
    )
    vm = forms.CharField(
        label="VM", required=False, max_length=253, widget=fields.text(placeholder="web")
    )
    namespace = forms.CharField(
        required=False, max_length=253, widget=fields.text(placeholder="shop")
    )
    note = forms.CharField(required=False, max_length=500, widget=fields.text())

    spec: EntrySpec

    def __init__(
        self, data: Any, rows: QuerySet[IPPool], *, entry: Entry | None = None, initial: Any = None
    ) -> None:
        own = {**(initial or {}), **(of_entry(entry) if entry else {})}
        super().__init__(data, initial=own)
        chosen: Any = self.fields["ippool"]
        chosen.queryset = rows.select_related("cluster", "network")
        chosen.disabled = entry is not None

    def clean(self) -> dict[str, Any]:
        """Each problem beside its field."""
        of = self.cleaned_data.get("ippool")
        if of is not None and not self.errors:
            self.spec, problems = read(self.cleaned_data, of)
            for problem in problems:
                name = problem.field.split(".")[0]
                field = name if name in self.fields else None
                self.add_error(field, pages.shown(problem))
        return self.cleaned_data


def of_entry(entry: Entry) -> dict[str, Any]:
    """An entry as the form shows it."""
    said = {name: getattr(entry, name) for name in _NAMES}
    return {**said, "ips": ", ".join(entry.ips), "ippool": entry.ippool_id}


def read(said: Any, of: IPPool) -> tuple[EntrySpec, list[errors.Problem]]:
    """What was typed as an entry of an IPPool, and what is wrong with it."""
    typed = {name: str(said.get(name) or "").strip() for name in _NAMES}
    ips = typed.pop("ips").replace(",", " ").split()
    report = object_reader.Report()
    rules = ippools.rules(of.network, lenient=True)
    found: dict[str, Any] = {"mac": "", "ips": ()}
    with report.collecting():
        found["mac"] = core.parse_mac(typed.pop("mac"), rules)
    with report.collecting():
        found["ips"] = core.parse_ips(ips, rules)
    body = object_reader.Fields(dict(typed), "", report)
    texts = {name: core.optional(body, name) or "" for name in typed}
    return EntrySpec(found["mac"], tuple(found["ips"]), **texts), report.problems


def check(request: HttpRequest) -> HttpResponseBase:
    """What the form tells while somebody types: `{"problems", "warnings", "duplicates"}`.

    Asked with what is typed so far; an empty field is no problem yet.
    """
    pages.require(request, "claims.view_entry")
    said = request.GET
    ippool_id = lists.number(said.get("ippool", ""))
    of = scoped.rows(request, IPPool).filter(pk=ippool_id).select_related("network").first()
    if of is None:
        return JsonResponse({"problems": [], "warnings": [], "duplicates": []})
    spec, problems = read(said, of)
    told = [
        {"field": problem.field.split(".")[0], "message": pages.sentence(problem.message)}
        for problem in problems
        if said.get(problem.field.split(".")[0], "").strip()
    ]
    entry_id = lists.number(said.get("entry", "")) or None
    found = _duplicates(request, of, spec, entry_id) if spec.mac or spec.ips else []
    return JsonResponse(
        {
            "problems": told,
            "warnings": [pages.sentence(one.message) for one in core.warnings(spec.ips)],
            "duplicates": duplicate_list.told(found, of.network),
        }
    )


def _duplicates(
    request: HttpRequest, of: IPPool, spec: EntrySpec, entry_id: int | None
) -> list[duplicates.Duplicate]:
    return duplicates.of_candidate(
        of.network,
        mac=spec.mac or None,
        addresses=[ip.partition("/")[0] for ip in spec.ips],
        vm=spec.vm or "",
        namespace=spec.namespace or "",
        entry_id=entry_id,
        seen=scoped.seen(request),
    )


def may_add(request: HttpRequest) -> bool:
    """Whether somebody may add entries, or ask for addresses of their own VMs."""
    user: Any = request.user
    return any(map(user.has_perm, ("claims.add_entry", "claims.request_address")))


def add_all(request: HttpRequest, of: IPPool, wanted: list[EntrySpec]) -> list[Entry]:
    """Add what somebody typed: as a request when that is all they may."""
    user: Any = request.user
    source = Source.HAND
    if not (user.has_perm("claims.add_entry") and scoped.seen(request).everything):
        requests.check(user, of, wanted)
        source = Source.REQUEST
    return services.add(of.pk, wanted, source=source, author=pages.author(request))


def warn(request: HttpRequest, entries: list[Entry]) -> None:
    """A message for each duplicate of what was just saved."""
    told = duplicates.of_entries(entries, scoped.seen(request))
    lines = dict.fromkeys(
        line for found in told.values() for line in duplicate_list.sentences(found)
    )
    for line in list(lines)[:10]:
        messages.warning(request, line)


def add(request: HttpRequest) -> HttpResponseBase:
    """A new entry, of the IPPool that is named or chosen."""
    if not may_add(request):
        pages.require(request, "claims.add_entry")
    initial = {"ippool": request.GET.get("ippool") or _only_fit(request)}
    initial |= {name: request.GET[name] for name in _NAMES if name in request.GET}
    form = EntryForm(request.POST or None, scoped.rows(request, IPPool), initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            made = add_all(request, form.cleaned_data["ippool"], [form.spec])
        except errors.IpamError as error:
            pages.put(form, error)
        else:
            messages.success(request, f"{made[0].mac} has {', '.join(made[0].ips)}.")
            warn(request, made)
            return HttpResponseRedirect(display.url_of(made[0]))
    return _page(request, "Add a MAC entry", form)


def _only_fit(request: HttpRequest) -> int | None:
    """The IPPool of the only network that can hold static VMs."""
    fit = scoped.rows(request, Network).filter(networks.fit(scoped.rows(request, NAD)))
    found = scoped.rows(request, IPPool).filter(network__in=fit)[:2]
    return found[0].pk if len(found) == 1 else None


def change(request: HttpRequest, entry: Entry) -> HttpResponseBase:
    """An entry, with what contradicts it; a form for who may change it."""
    user: Any = request.user
    everything = scoped.seen(request).everything
    may = everything and user.has_perm("claims.change_entry")
    rows = scoped.rows(request, IPPool)
    form = EntryForm(request.POST or None, rows, entry=entry) if may else None
    if request.method == "POST":
        pages.require(request, "claims.change_entry")
        if form is None:
            pages.require(request, "claims.view_every_namespace")
        elif form.is_valid():
            try:
                changed = services.change(entry.pk, form.spec, author=pages.author(request))
            except errors.IpamError as error:
                pages.put(form, error)
            else:
                messages.success(request, f"{changed.mac} has {', '.join(changed.ips)}.")
                warn(request, [changed])
                return HttpResponseRedirect(display.url_of(changed))
    return _page(request, entry.mac, form, entry=entry)


def _page(
    request: HttpRequest, title: str, form: EntryForm | None, *, entry: Entry | None = None
) -> HttpResponseBase:
    found = []
    if entry is not None:
        found = duplicates.of_entries([entry], scoped.seen(request))[entry.pk]
    return pages.page(
        request,
        "entry.html",
        title=title,
        opts=Entry._meta,
        original=entry,
        entry=entry,
        form=form,
        warnings=[pages.sentence(one.message) for one in core.warnings(entry.ips)] if entry else [],
        duplicates=duplicate_list.badge(found, entry.ippool.network) if entry and found else "",
        check_url=reverse("admin:claims_entry_check"),
        ippools_exist=scoped.rows(request, IPPool).exists(),
        everything=scoped.seen(request).everything,
        vm_link=tables.vm(entry.namespace, entry.vm) if entry else "",
        vm=_vm(entry, scoped.seen(request)) if entry else None,
        withdrawal=entry is not None and requests.may_withdraw(request.user, entry),
        call=f"ippools/{entry.ippool_id}/entries/{entry.pk}/" if entry else "",
    )


def _vm(entry: Entry, seen: namespaces.Scope) -> vm_text.VMText:
    network = entry.ippool.network
    return vm_text.of(
        network, vm=entry.vm, namespace=entry.namespace, mac=entry.mac, seen=seen, what="the entry"
    )
