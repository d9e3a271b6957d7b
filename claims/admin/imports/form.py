"""The form of a new import (a file, a pasted list or one VM), and the check of one VM while typing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from django import forms
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_protect
from django_stubs_ext import StrOrPromise
from unfold import widgets

from claims.access import namespaces
from claims.address_index import duplicates
from claims.admin import duplicate_list, scoped
from claims.admin.imports.destination import Destination, DestinationField
from claims.core import entries as core
from claims.core import macs
from claims.entries import ippools
from claims.imports import drafts
from claims.imports import mapping as import_networks
from claims.imports.drafts import Upload
from claims.imports.files import formats
from claims.imports.mapping import ImportOptions
from claims.models import NAD, Network, VMImport
from claims.models.imports import ImportTarget
from claims.networks import networks
from pools import tasks
from pools.core import errors, holders, object_reader
from pools.models import Cluster
from pools.models.imports import ImportStatus
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields

FILE, TEXT, VM = "file", "text", "vm"
_FORM_OVERHEAD = 64 * 1024  # bytes of a form in addition to its file
_MIB = formats.LARGEST // (1024 * 1024)
TOO_LARGE = format_lazy(_("The file is larger than {mib} MiB. Split it."), mib=_MIB)
PASTED_TOO_LARGE = _("The pasted list is larger than 10 MiB. Upload it as a file.")


class VMImportForm(forms.Form):
    how = forms.ChoiceField(
        choices=[(FILE, _("File")), (TEXT, _("Pasted list")), (VM, _("One VM"))], initial=FILE
    )
    file = forms.FileField(required=False, widget=widgets.UnfoldAdminFileFieldWidget())
    text = forms.CharField(
        label=_("List"),
        required=False,
        strip=False,
        widget=fields.lines(
            12,
            placeholder="web-01  00:50:56:aa:00:01  10.0.0.21, fd00::21",  # no text: an example
        ),
    )
    vm = forms.CharField(
        label=_("VM"), required=False, max_length=253, widget=fields.text(placeholder="web-01")
    )
    mac = forms.CharField(
        label=_("MAC address"),
        required=False,
        max_length=60,
        widget=fields.addresses_text(placeholder="00:50:56:aa:00:01"),
    )
    ips = forms.CharField(
        label=_("IP addresses"),
        required=False,
        max_length=500,
        widget=fields.addresses_text(placeholder="10.0.0.21, fd00::21"),
        help_text=_(
            "At most one of each family. Leave empty to get the next free addresses in the draft."
        ),
    )
    where = DestinationField(
        label=_("Network"),
        required=False,
        help_text=_(
            "Default: the only network with static VM support whose subnets contain all addresses."
        ),
    )
    namespace = forms.CharField(
        required=False,
        widget=fields.text(placeholder="shop", list="import-namespaces"),
        help_text=_("For VMs whose source has no namespace."),
    )
    target = forms.ChoiceField(
        label=_("Target objects"),
        choices=[
            (
                ImportTarget.IPPOOL,
                _("IPPool entries: addresses by MAC address, for VMs that MTV migrates"),
            ),
            (
                ImportTarget.IPAMCLAIMS,
                _("IPAMClaims: addresses requested by VM name and assigned by OVN-Kubernetes"),
            ),
        ],
        initial=ImportTarget.IPPOOL,
    )

    network: Network | None = None
    cluster: Cluster
    notes: tuple[dict[str, str], ...] = ()

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._user = request.user
        if not self.is_bound and "where" not in self.initial:
            suitable_networks = scoped.rows(request, Network).filter(
                networks.fitting_query(scoped.rows(request, NAD))
            )[:2]
            self.initial["where"] = (
                f"network-{suitable_networks[0].pk}" if len(suitable_networks) == 1 else ""
            )
        where: Any = self.fields["where"]
        where.offer(request)

    def clean_where(self) -> Destination | str:
        chosen: Destination | str = self.cleaned_data["where"]
        if isinstance(chosen, Network):
            self.network, self.cluster = chosen, chosen.cluster
        elif isinstance(chosen, Cluster):
            self.cluster = chosen
        return chosen

    def clean_namespace(self) -> str:
        namespace: str = self.cleaned_data["namespace"].strip()
        with pages.errors_at_field(self, "namespace"):
            return holders.parse_label(namespace) if namespace else ""
        return ""

    def clean(self) -> dict[str, Any]:
        """Report each missing value beside its field."""
        cleaned_data = self.cleaned_data
        how = cleaned_data.get("how")
        if cleaned_data.get("where") == "":
            self._find_network(cleaned_data)
        if how == FILE and not cleaned_data.get("file") and "file" not in self.errors:
            self.add_error("file", gettext("Choose a file."))
        elif (
            how == FILE
            and "file" not in self.errors
            and cleaned_data["file"].size > formats.LARGEST
        ):
            self.add_error("file", forms.ValidationError(TOO_LARGE, code="too_large"))
        elif how == TEXT and not cleaned_data.get("text", "").strip():
            self.add_error("text", gettext("Paste a list here."))
        elif how == VM:
            self._check_vm(cleaned_data)
        return cleaned_data

    def _find_network(self, cleaned_data: dict[str, Any]) -> None:
        """Choose the network by the addresses; a note in the draft names it."""
        is_complete = not self.errors and (
            cleaned_data.get("how") != FILE or cleaned_data.get("file")
        )
        with contextlib.suppress(
            errors.InvalidInput
        ):  # reported beside the file when the draft is created
            if is_complete and (
                network := import_networks.find_by_addresses(self.upload(), self._user)
            ):
                self.network, self.cluster = network, network.cluster
                self.notes = (import_networks.network_note(network),)
        if self.network is None:
            self.add_error("where", gettext("Choose the target network."))

    def _check_vm(self, cleaned_data: dict[str, Any]) -> None:
        if not cleaned_data.get("vm", "").strip() and "vm" not in self.errors:
            self.add_error("vm", gettext("Enter the name of the VM."))
        if cleaned_data.get("where") and self.network is None:
            self.add_error("where", gettext("Choose a network: one VM has no port group."))
        if self.network is None:
            return
        rules = ippools.rules(self.network, lenient=True)
        if cleaned_data.get("mac", "").strip():
            with pages.errors_at_field(self, "mac"):
                core.parse_mac(cleaned_data["mac"].strip(), rules)
        elif "mac" not in self.errors:
            self.add_error("mac", gettext("Enter the MAC address of the interface."))
        if ips := _split_addresses(cleaned_data.get("ips", "")):
            with pages.errors_at_field(self, "ips"):
                core.parse_ips(ips, rules)

    def upload(self) -> Upload:
        cleaned_data = self.cleaned_data
        if cleaned_data["how"] == TEXT:
            return Upload(TEXT, cleaned_data["text"])
        if cleaned_data["how"] == VM:
            row = {name: cleaned_data[name].strip() for name in ("vm", "mac")}
            return Upload("rows", [{**row, "ips": _split_addresses(cleaned_data["ips"])}])
        return Upload(FILE, cleaned_data["file"].file, cleaned_data["file"].name or "")


def _split_addresses(text: str) -> list[str]:
    return text.replace(",", " ").split()


def add(request: HttpRequest) -> HttpResponse:
    """Show the form and create a draft of what is submitted.

    The size of the request is checked before its body is read.
    """
    if request.method == "POST":
        if int(request.META.get("CONTENT_LENGTH") or 0) > formats.LARGEST + _FORM_OVERHEAD:
            return _reject_too_large(request, "file", TOO_LARGE)
        try:
            _ = request.POST
        except RequestDataTooBig:
            return _reject_too_large(request, "text", PASTED_TOO_LARGE)
    protected_view: Callable[[HttpRequest], HttpResponse] = csrf_protect(_add)
    return protected_view(request)


def _reject_too_large(request: HttpRequest, field: str, message: StrOrPromise) -> HttpResponse:
    """Show an empty form with the error; the submitted values are in the body, which is not read."""
    form = VMImportForm(request, data={"how": field, "target": ImportTarget.IPPOOL})
    form.errors.clear()
    form.add_error(field, forms.ValidationError(message, code="too_large"))
    return _page(request, form, status=413)


def _add(request: HttpRequest) -> HttpResponse:
    initial = {name: request.GET[name] for name in ("how", "target", "vm") if name in request.GET}
    if network := lists.parse_id(request.GET.get("network", "")):
        initial["where"] = f"network-{network}"
    scope = namespaces.owner_scope(request.user)
    names = sorted(
        {name for cluster_namespaces in scope.namespaces.values() for name in cluster_namespaces}
    )
    if len(names) == 1:
        initial["namespace"] = names[0]
    form = VMImportForm(request, request.POST or None, request.FILES or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        vm_import = _create_import(request, form)
        if vm_import is not None:
            if vm_import.status == ImportStatus.QUEUED:
                tasks.notify_import_worker(vm_import.pk)
            return HttpResponseRedirect(display.url_of(vm_import))
    return _page(request, form, names=names)


def _create_import(request: HttpRequest, form: VMImportForm) -> VMImport | None:
    cleaned_data = form.cleaned_data
    try:
        options = ImportOptions(
            form.cluster,
            target=cleaned_data["target"],
            network=form.network,
            namespace=cleaned_data["namespace"],
            user=request.user,
            limited=drafts.is_limited(request.user, cleaned_data["target"]),
            notes=form.notes,
        )
        return drafts.create(form.upload(), options, author=pages.author(request))
    except errors.NotAllowed as error:
        pages.add_errors(form, error, lambda _problem: "target")
    except errors.IpamError as error:
        pages.add_errors(form, error, lambda _problem: cleaned_data["how"])
    return None


def _page(
    request: HttpRequest, form: VMImportForm, *, names: list[str] | None = None, status: int = 200
) -> HttpResponse:
    return pages.page(
        request,
        "import_new.html",
        title=gettext("New import"),
        opts=VMImport._meta,
        form=form,
        names=names or [],
        networks_exist=not form.fields["where"].is_empty,  # type: ignore[attr-defined]
        everything=scoped.request_scope(request).everything,
        largest=formats.LARGEST,
        largest_mib=_MIB,
        most_rows=formats.MOST_ROWS,
        check_url=reverse("admin:claims_vmimport_check"),
        status=status,
    )


def check(request: HttpRequest) -> HttpResponse:
    """Answer `{"problems", "warnings", "duplicates"}` for one VM, as typed so far."""
    pages.require(request, "claims.add_vmimport")
    query = request.GET
    destination = DestinationField(required=False)
    destination.look_among(request)
    network = destination.find(query.get("where", "").strip())
    if not isinstance(network, Network):
        return JsonResponse({"problems": [], "warnings": [], "duplicates": []})
    rules = ippools.rules(network, lenient=True, observed=True)
    report = object_reader.ProblemReport()
    mac, ips = "", list[str]()
    if query.get("mac", "").strip():
        with report.collect():
            mac = macs.parse_mac(query["mac"].strip(), lenient=True)
    if ip_texts := _split_addresses(query.get("ips", "")):
        with report.collect():
            ips = list(core.parse_ips(ip_texts, rules))
            report.problems += core.warnings(ips)  # beside the duplicates of all addresses
    vm_duplicates = []
    if mac or ips:
        vm_duplicates = duplicates.of_candidate(
            network,
            mac=mac or None,
            addresses=[ip.partition("/")[0] for ip in ips],
            vm=query.get("vm", ""),
            namespace=query.get("namespace", ""),
            scope=scoped.request_scope(request),
        )
    return JsonResponse(
        {
            "problems": [
                {"field": problem.field, "message": pages.sentence(problem.message)}
                for problem in report.problems
            ],
            "warnings": [],
            "duplicates": duplicate_list.as_json(vm_duplicates, network),
        }
    )
