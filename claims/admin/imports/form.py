"""A new import: a file, a pasted list, or one VM; and what is told of one VM while somebody types."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from django import forms
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_protect
from unfold import widgets

from claims import tasks
from claims.access import namespaces
from claims.address_index import duplicates
from claims.admin import duplicate_list, scoped
from claims.core import entries as core
from claims.core import macs
from claims.entries import ippools
from claims.imports import drafts
from claims.imports import networks as import_networks
from claims.imports.files import formats
from claims.imports.mapping import ImportOptions
from claims.imports.uploads import Upload
from claims.models import NAD, Network, VMImport
from claims.models.imports import ImportTarget, Status
from claims.networks import networks
from pools.core import errors, holders, object_reader
from pools.models import Cluster
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields

FILE, TEXT, VM = "file", "text", "vm"
_AROUND = 64 * 1024  # bytes of a form beside its file
_MIB = formats.LARGEST // (1024 * 1024)
TOO_LARGE = f"A file has at most {_MIB} MiB; divide it."
PASTED_TOO_LARGE = "A pasted list has at most 10 MiB; send it as a file."


class VMImportForm(forms.Form):
    """`where` is a network, or a cluster whose port groups say the network: `network-1`, `cluster-1`."""

    how = forms.ChoiceField(
        choices=[(FILE, "A file"), (TEXT, _("A pasted list")), (VM, _("One VM"))], initial=FILE
    )
    file = forms.FileField(required=False, widget=widgets.UnfoldAdminFileFieldWidget())
    text = forms.CharField(
        label=_("List"),
        required=False,
        strip=False,
        widget=fields.lines(12, placeholder="web-01  00:50:56:aa:00:01  10.0.0.21, fd00::21"),
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
        help_text=_("One of each family; empty: the draft offers the next free ones."),
    )
    where = forms.ChoiceField(
        label=_("Network"),
        widget=fields.select(),
        required=False,
        help_text=_(
            "Without a choice: the only network whose subnets contain all addresses, if"
            " it supports static VMs."
        ),
    )
    namespace = forms.CharField(
        required=False,
        widget=fields.text(placeholder="shop", list="import-namespaces"),
        help_text=_("Of the VMs for which the source names none."),
    )
    target = forms.ChoiceField(
        label=_("Written as"),
        choices=[
            (
                ImportTarget.IPPOOL,
                _("IPPool entries: a MAC and its addresses, for VMs that move with MTV"),
            ),
            (
                ImportTarget.IPAMCLAIMS,
                _("IPAMClaims: requests of VMs by name, which OVN-Kubernetes grants"),
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
            fit = scoped.rows(request, Network).filter(
                networks.fitting_query(scoped.rows(request, NAD))
            )[:2]
            self.initial["where"] = f"network-{fit[0].pk}" if len(fit) == 1 else ""
        self._networks = self._visible_networks(request)
        self._clusters = {
            cluster.pk: cluster for cluster in scoped.rows(request, Cluster).order_by("name")
        }
        where: Any = self.fields["where"]
        choices = list(self._choices())
        where.choices = [("", gettext("Choose a network")), *choices] if choices else []

    def _visible_networks(self, request: HttpRequest) -> dict[int, Network]:
        """Those that a choice has room for, and the one that was named."""
        network_rows = scoped.rows(request, Network).filter(gone_at=None).select_related("cluster")
        choice = self.data.get("where") if self.is_bound else self.initial.get("where")
        chosen_networks = network_rows.filter(
            pk=lists.number(str(choice or "").removeprefix("network-"))
        )
        first = network_rows.order_by("cluster__name", "name")[: scoped.MOST]
        return {network.pk: network for network in (*first, *chosen_networks)}

    def _choices(self) -> Any:
        for cluster in self._clusters.values():
            cluster_choices = [
                (f"network-{network.pk}", _network_label(network))
                for network in self._networks.values()
                if network.cluster_id == cluster.pk
            ]
            if cluster_choices:
                by_name = (
                    f"cluster-{cluster.pk}",
                    (gettext("%(cluster)s: map by port group") % {"cluster": cluster.name}),
                )
                yield cluster.name, [*cluster_choices, by_name]

    def clean_where(self) -> str:
        choice: str = self.cleaned_data["where"]
        kind, _, number = choice.partition("-")
        if not choice:
            return ""
        if kind == "network":
            self.network = self._networks[int(number)]
            self.cluster = self.network.cluster
        else:
            self.cluster = self._clusters[int(number)]
        return choice

    def clean_namespace(self) -> str:
        namespace: str = self.cleaned_data["namespace"].strip()
        with pages.errors_at_field(self, "namespace"):
            return holders.parse_name(namespace, kind="label") if namespace else ""
        return ""

    def clean(self) -> dict[str, Any]:
        """Each thing that lacks, beside its field."""
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
        """The one that the addresses tell, which the draft then says."""
        is_complete = not self.errors and (
            cleaned_data.get("how") != FILE or cleaned_data.get("file")
        )
        with contextlib.suppress(errors.InvalidInput):  # told beside the file when it is read
            if is_complete and (
                network := import_networks.find_by_addresses(self.upload(), self._user)
            ):
                self.network, self.cluster = network, network.cluster
                self.notes = (import_networks.network_note(network),)
        if self.network is None:
            self.add_error("where", gettext("Choose the network that the VMs go to."))

    def _check_vm(self, cleaned_data: dict[str, Any]) -> None:
        if not cleaned_data.get("vm", "").strip() and "vm" not in self.errors:
            self.add_error("vm", gettext("Enter the VM."))
        if cleaned_data.get("where") and self.network is None:
            self.add_error("where", gettext("Choose the network: one VM has no port group."))
        if self.network is None:
            return
        rules = ippools.rules(self.network, lenient=True)
        if cleaned_data.get("mac", "").strip():
            with pages.errors_at_field(self, "mac"):
                core.parse_mac(cleaned_data["mac"].strip(), rules)
        elif "mac" not in self.errors:
            self.add_error("mac", gettext("The MAC address names the interface."))
        if ips := _split(cleaned_data.get("ips", "")):
            with pages.errors_at_field(self, "ips"):
                core.parse_ips(ips, rules)

    def upload(self) -> Upload:
        cleaned_data = self.cleaned_data
        if cleaned_data["how"] == TEXT:
            return Upload(TEXT, cleaned_data["text"])
        if cleaned_data["how"] == VM:
            row = {name: cleaned_data[name].strip() for name in ("vm", "mac")}
            return Upload("rows", [{**row, "ips": _split(cleaned_data["ips"])}])
        return Upload(FILE, cleaned_data["file"].file, cleaned_data["file"].name or "")


def _network_label(network: Network) -> str:
    subnets = ", ".join(network.subnets)
    return f"{network.name} ({subnets})" if subnets else network.name


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()


def add(request: HttpRequest) -> HttpResponseBase:
    """The form; what is sent to it becomes a draft. Looks at the size before a byte is read."""
    if request.method == "POST":
        if int(request.META.get("CONTENT_LENGTH") or 0) > formats.LARGEST + _AROUND:
            return _refused(request, "file", TOO_LARGE)
        try:
            _ = request.POST
        except RequestDataTooBig:
            return _refused(request, "text", PASTED_TOO_LARGE)
    checked: Callable[[HttpRequest], HttpResponseBase] = csrf_protect(_add)
    return checked(request)


def _refused(request: HttpRequest, field: str, message: str) -> HttpResponseBase:
    """What was typed is lost with the body that nobody reads."""
    form = VMImportForm(request, data={"how": field, "target": ImportTarget.IPPOOL})
    form.errors.clear()
    form.add_error(field, forms.ValidationError(message, code="too_large"))
    return _page(request, form, status=413)


def _add(request: HttpRequest) -> HttpResponseBase:
    initial = {name: request.GET[name] for name in ("how", "target", "vm") if name in request.GET}
    if network := lists.number(request.GET.get("network", "")):
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
            if vm_import.status == Status.QUEUED:
                tasks.ring(vm_import.pk)
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
) -> HttpResponseBase:
    return pages.page(
        request,
        "import_new.html",
        title=gettext("New import"),
        opts=VMImport._meta,
        form=form,
        names=names or [],
        networks_exist=bool(form.fields["where"].choices),  # type: ignore[attr-defined]
        everything=scoped.request_scope(request).everything,
        largest=formats.LARGEST,
        largest_mib=_MIB,
        most_rows=formats.MOST_ROWS,
        check_url=reverse("admin:claims_vmimport_check"),
        status=status,
    )


def check(request: HttpRequest) -> HttpResponseBase:
    """What the form tells of one VM while somebody types: `{"problems", "warnings", "duplicates"}`."""
    pages.require(request, "claims.add_vmimport")
    query = request.GET
    kind, _, number = query.get("where", "").partition("-")
    network_rows = scoped.rows(request, Network).filter(pk=lists.number(number))
    network = network_rows.first() if kind == "network" else None
    if network is None:
        return JsonResponse({"problems": [], "warnings": [], "duplicates": []})
    rules = ippools.rules(network, lenient=True)
    report = object_reader.ProblemReport()
    mac, ips = "", list[str]()
    if query.get("mac", "").strip():
        with report.collecting():
            mac = macs.parse_mac(query["mac"].strip(), lenient=True)
    if typed := _split(query.get("ips", "")):
        with report.collecting():
            ips = list(core.parse_ips(typed, rules))
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
            "warnings": [pages.sentence(warning.message) for warning in core.warnings(ips)],
            "duplicates": duplicate_list.as_json(vm_duplicates, network),
        }
    )
