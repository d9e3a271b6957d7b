"""A new import: a file, a pasted list, or one VM; and what is told of one VM while somebody types."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from django import forms
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.urls import reverse
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
from claims.imports.mapping import Options
from claims.imports.uploads import Upload
from claims.models import NAD, Network, VMImport
from claims.models.imports import Status, Target
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


class ImportForm(forms.Form):
    """`where` is a network, or a cluster whose port groups say the network: `network-1`, `cluster-1`."""

    how = forms.ChoiceField(
        choices=[(FILE, "A file"), (TEXT, "A pasted list"), (VM, "One VM")], initial=FILE
    )
    file = forms.FileField(required=False, widget=widgets.UnfoldAdminFileFieldWidget())
    text = forms.CharField(
        label="List",
        required=False,
        strip=False,
        widget=fields.lines(12, placeholder="web-01  00:50:56:aa:00:01  10.0.0.21, fd00::21"),
    )
    vm = forms.CharField(
        label="VM", required=False, max_length=253, widget=fields.text(placeholder="web-01")
    )
    mac = forms.CharField(
        label="MAC address",
        required=False,
        max_length=60,
        widget=fields.addresses_text(placeholder="00:50:56:aa:00:01"),
    )
    ips = forms.CharField(
        label="IP addresses",
        required=False,
        max_length=500,
        widget=fields.addresses_text(placeholder="10.0.0.21, fd00::21"),
        help_text="One of each family; empty: the draft offers the next free ones.",
    )
    where = forms.ChoiceField(
        label="Network",
        widget=fields.select(),
        required=False,
        help_text="None chosen: the only one whose subnets hold all addresses, if it can hold static VMs.",
    )
    namespace = forms.CharField(
        required=False,
        widget=fields.text(placeholder="shop", list="import-namespaces"),
        help_text="Of the VMs for which the source names none.",
    )
    target = forms.ChoiceField(
        label="Written as",
        choices=[
            (Target.IPPOOL, "IPPool entries: a MAC and its addresses, for VMs that move with MTV"),
            (Target.IPAMCLAIMS, "IPAMClaims: requests of VMs by name, which OVN-Kubernetes grants"),
        ],
        initial=Target.IPPOOL,
    )

    network: Network | None = None
    cluster: Cluster
    notes: tuple[dict[str, str], ...] = ()

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._user = request.user
        if not self.is_bound and "where" not in self.initial:
            fit = scoped.rows(request, Network).filter(networks.fit(scoped.rows(request, NAD)))[:2]
            self.initial["where"] = f"network-{fit[0].pk}" if len(fit) == 1 else ""
        self._networks = self._known(request)
        self._clusters = {one.pk: one for one in scoped.rows(request, Cluster).order_by("name")}
        where: Any = self.fields["where"]
        choices = list(self._choices())
        where.choices = [("", "Choose a network"), *choices] if choices else []

    def _known(self, request: HttpRequest) -> dict[int, Network]:
        """Those that a choice has room for, and the one that was named."""
        known = scoped.rows(request, Network).filter(gone_at=None).select_related("cluster")
        said = self.data.get("where") if self.is_bound else self.initial.get("where")
        named = known.filter(pk=lists.number(str(said or "").removeprefix("network-")))
        first = known.order_by("cluster__name", "name")[: scoped.MOST]
        return {one.pk: one for one in (*first, *named)}

    def _choices(self) -> Any:
        for cluster in self._clusters.values():
            own = [
                (f"network-{one.pk}", _named(one))
                for one in self._networks.values()
                if one.cluster_id == cluster.pk
            ]
            if own:
                by_name = (f"cluster-{cluster.pk}", f"{cluster.name}: as the port groups say")
                yield cluster.name, [*own, by_name]

    def clean_where(self) -> str:
        said: str = self.cleaned_data["where"]
        kind, _, number = said.partition("-")
        if not said:
            return ""
        if kind == "network":
            self.network = self._networks[int(number)]
            self.cluster = self.network.cluster
        else:
            self.cluster = self._clusters[int(number)]
        return said

    def clean_namespace(self) -> str:
        said: str = self.cleaned_data["namespace"].strip()
        with pages.beside_field(self, "namespace"):
            return holders.parse_name(said, kind="label") if said else ""
        return ""

    def clean(self) -> dict[str, Any]:
        """Each thing that lacks, beside its field."""
        said = self.cleaned_data
        how = said.get("how")
        if said.get("where") == "":
            self._find_network(said)
        if how == FILE and not said.get("file") and "file" not in self.errors:
            self.add_error("file", "Choose a file.")
        elif how == FILE and "file" not in self.errors and said["file"].size > formats.LARGEST:
            self.add_error("file", forms.ValidationError(TOO_LARGE, code="too_large"))
        elif how == TEXT and not said.get("text", "").strip():
            self.add_error("text", "Paste a list here.")
        elif how == VM:
            self._check_vm(said)
        return said

    def _find_network(self, said: dict[str, Any]) -> None:
        """The one that the addresses tell, which the draft then says."""
        is_complete = not self.errors and (said.get("how") != FILE or said.get("file"))
        with contextlib.suppress(errors.InvalidInput):  # told beside the file when it is read
            if is_complete and (found := import_networks.by_addresses(self.upload(), self._user)):
                self.network, self.cluster = found, found.cluster
                self.notes = (import_networks.note(found),)
        if self.network is None:
            self.add_error("where", "Choose the network that the VMs go to.")

    def _check_vm(self, said: dict[str, Any]) -> None:
        if not said.get("vm", "").strip() and "vm" not in self.errors:
            self.add_error("vm", "Say which VM it is.")
        if said.get("where") and self.network is None:
            self.add_error("where", "Choose the network: one VM has no port group.")
        if self.network is None:
            return
        rules = ippools.rules(self.network, lenient=True)
        if said.get("mac", "").strip():
            with pages.beside_field(self, "mac"):
                core.parse_mac(said["mac"].strip(), rules)
        elif "mac" not in self.errors:
            self.add_error("mac", "The MAC address names the interface.")
        if ips := _split(said.get("ips", "")):
            with pages.beside_field(self, "ips"):
                core.parse_ips(ips, rules)

    def upload(self) -> Upload:
        said = self.cleaned_data
        if said["how"] == TEXT:
            return Upload(TEXT, said["text"])
        if said["how"] == VM:
            row = {name: said[name].strip() for name in ("vm", "mac")}
            return Upload("rows", [{**row, "ips": _split(said["ips"])}])
        return Upload(FILE, said["file"].file, said["file"].name or "")


def _named(network: Network) -> str:
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
    form = ImportForm(request, data={"how": field, "target": Target.IPPOOL})
    form.errors.clear()
    form.add_error(field, forms.ValidationError(message, code="too_large"))
    return _page(request, form, status=413)


def _add(request: HttpRequest) -> HttpResponseBase:
    initial = {name: request.GET[name] for name in ("how", "target", "vm") if name in request.GET}
    if network := lists.number(request.GET.get("network", "")):
        initial["where"] = f"network-{network}"
    own = namespaces.own(request.user)
    names = sorted({name for found in own.namespaces.values() for name in found})
    if len(names) == 1:
        initial["namespace"] = names[0]
    form = ImportForm(request, request.POST or None, request.FILES or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        made = _made(request, form)
        if made is not None:
            if made.status == Status.QUEUED:
                tasks.ring(made.pk)
            return HttpResponseRedirect(display.url_of(made))
    return _page(request, form, names=names)


def _made(request: HttpRequest, form: ImportForm) -> VMImport | None:
    said = form.cleaned_data
    try:
        options = Options(
            form.cluster,
            target=said["target"],
            network=form.network,
            namespace=said["namespace"],
            user=request.user,
            limited=drafts.limited(request.user, said["target"]),
            notes=form.notes,
        )
        return drafts.create(form.upload(), options, author=pages.author(request))
    except errors.NotAllowed as error:
        pages.put(form, error, lambda _problem: "target")
    except errors.IpamError as error:
        pages.put(form, error, lambda _problem: said["how"])
    return None


def _page(
    request: HttpRequest, form: ImportForm, *, names: list[str] | None = None, status: int = 200
) -> HttpResponseBase:
    return pages.page(
        request,
        "import_new.html",
        title="New import",
        opts=VMImport._meta,
        form=form,
        names=names or [],
        networks_exist=bool(form.fields["where"].choices),  # type: ignore[attr-defined]
        everything=scoped.seen(request).everything,
        largest=formats.LARGEST,
        largest_mib=_MIB,
        most_rows=formats.MOST_ROWS,
        check_url=reverse("admin:claims_vmimport_check"),
        status=status,
    )


def check(request: HttpRequest) -> HttpResponseBase:
    """What the form tells of one VM while somebody types: `{"problems", "warnings", "duplicates"}`."""
    pages.require(request, "claims.add_vmimport")
    said = request.GET
    kind, _, number = said.get("where", "").partition("-")
    known = scoped.rows(request, Network).filter(pk=lists.number(number))
    network = known.first() if kind == "network" else None
    if network is None:
        return JsonResponse({"problems": [], "warnings": [], "duplicates": []})
    rules = ippools.rules(network, lenient=True)
    report = object_reader.Report()
    mac, ips = "", list[str]()
    if said.get("mac", "").strip():
        with report.collecting():
            mac = macs.parse_mac(said["mac"].strip(), lenient=True)
    if typed := _split(said.get("ips", "")):
        with report.collecting():
            ips = list(core.parse_ips(typed, rules))
    found = []
    if mac or ips:
        found = duplicates.of_candidate(
            network,
            mac=mac or None,
            addresses=[ip.partition("/")[0] for ip in ips],
            vm=said.get("vm", ""),
            namespace=said.get("namespace", ""),
            seen=scoped.seen(request),
        )
    return JsonResponse(
        {
            "problems": [
                {"field": one.field, "message": pages.sentence(one.message)}
                for one in report.problems
            ],
            "warnings": [pages.sentence(one.message) for one in core.warnings(ips)],
            "duplicates": duplicate_list.told(found, network),
        }
    )
