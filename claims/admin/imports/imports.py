"""The list of all imports, and the page of a new one; here, because `pools` does not know VMs.

What is sent, files, a pasted text or one VM, is recognised, unless the form says what it is.
"""

import contextlib
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy as _
from django.views.decorators.csrf import csrf_protect
from django_stubs_ext import StrOrPromise

from claims.access import namespaces
from claims.admin import scoped
from claims.admin.imports.mapping import Destination, DestinationField, only_network
from claims.admin.imports.page import ImportPage
from claims.admin.imports.register import RegisterImportPage
from claims.admin.imports.vm import VMImportPage
from claims.imports import formats, mapping
from claims.models import Network, VMImport
from claims.models.imports import ImportTarget
from pools import tasks
from pools.admin.netbox_sources import RegisterOptions
from pools.core import errors, holders
from pools.models import Cluster, Import, ImportStatus, RegisterImport
from pools.platform.admin import (
    columns,
    display,
    filters,
    forms as fields,
    import_texts,
    lists,
    pages,
    related,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.imports.lifecycle import Recognition
from pools.register.imports import files as register_files

VM, REGISTER = VMImport.KIND, RegisterImport.KIND
ONE = "one"  # a VM that is typed
PAGES: dict[str, type[ImportPage]] = {VM: VMImportPage, REGISTER: RegisterImportPage}

LARGEST = formats.LARGEST  # bytes of all files
_FORM_OVERHEAD = 64 * 1024  # bytes of a form in addition to its files
_MIB = LARGEST // (1024 * 1024)
TOO_LARGE = format_lazy(_("The files are larger than {mib} MiB. Import them in parts."), mib=_MIB)
PASTED_TOO_LARGE = _("The pasted text is larger than 10 MiB. Upload it as a file.")
_POOL_MANIFESTS = (
    b"CiliumPodIPPool"  # of manifests, and in autoCreateCiliumPodIPPools of Helm values
)


class ImportForm(RegisterOptions):
    """`kind` is that of an import, `ONE`, or "" to recognise it; the form offers what its user may import."""

    kind = forms.ChoiceField(label=_("What do you have?"), required=False)
    file = forms.FileField(label=_("Files"), required=False)
    text = forms.CharField(
        label=_("Or paste it"),
        required=False,
        strip=False,
        widget=fields.lines(6, placeholder="web-01  00:50:56:aa:00:01  10.0.0.21, fd00::21"),
        help_text=_("A table with its header, copied from a spreadsheet, or one VM per line."),
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
        help_text=_("At most one of each family. The draft can give the next free addresses."),
    )
    where = DestinationField(label=_("Where it goes"), required=False)
    namespace = forms.CharField(
        label=_("Namespace"),
        required=False,
        widget=related.name_widget(scoped.OFFERED_NAMESPACES, placeholder="shop"),
        help_text=_("For VMs whose source has no namespace."),
    )
    target = forms.ChoiceField(
        label=_("Target objects"),
        required=False,
        choices=[
            (ImportTarget.IPPOOL, _("IPPool entries, by MAC address: for VMs that MTV migrates")),
            (ImportTarget.IPAMCLAIMS, _("IPAMClaims, by VM name: assigned by OVN-Kubernetes")),
        ],
        initial=ImportTarget.IPPOOL,
        widget=fields.select(),
    )
    holder_kind = fields.ParsedField(
        lambda text: holders.parse_label(text.strip()),
        label=_("Kind of the holders"),
        required=False,
        initial="host",
    )
    field_order = (
        *("kind", "file", "text", "vm", "mac", "ips", "where"),
        *("namespace", "target", "mapping", "holder_kind", "cooldown"),
    )
    vm_options = ("namespace", "target")
    only_register_options = ("mapping", "holder_kind", "cooldown")

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._user = request.user
        self.kinds = permitted(request)
        labels = {
            "": _("A file, whatever it is"),
            VM: _("VMs"),
            REGISTER: _("A register of addresses"),
            ONE: _("One VM, typed by hand"),
        }
        offered = [VM, ONE] if self.kinds == [VM] else self.kinds
        if len(self.kinds) > 1:
            offered = ["", VM, REGISTER, ONE]
        kind: Any = self.fields["kind"]
        kind.choices = [(value, labels[value]) for value in offered]
        kind.initial = offered[0]
        where: Any = self.fields["where"]
        where.offer(request, has_registers=REGISTER in self.kinds)
        are_vms = REGISTER not in self.kinds or self.initial.get("kind") in {VM, ONE}
        if are_vms and not self.is_bound and "where" not in self.initial:
            self.initial["where"] = only_network(request)

    @property
    def options(self) -> list[forms.BoundField]:
        """The fields of *More options*."""
        names = self.vm_options if VM in self.kinds else ()
        more = self.only_register_options if REGISTER in self.kinds else ()
        return [self[name] for name in (*names, *more)]

    @property
    def has_wrong_option(self) -> bool:
        return any(field.errors for field in self.options)

    def clean_namespace(self) -> str:
        namespace: str = self.cleaned_data["namespace"].strip()
        with pages.errors_at_field(self, "namespace"):
            return holders.parse_label(namespace) if namespace else ""
        return ""

    def clean(self) -> dict[str, Any]:
        """Read what was sent, recognise it, and find where it goes; each error is beside its field."""
        self.notes: list[dict[str, str]] = []
        self.uploads: list[tuple[str, bytes]] = []
        kind = self.cleaned_data.get("kind", "")
        if kind == ONE:
            self._clean_vm()
        elif not self.errors.keys() & {"kind", "file", "text"}:
            self._clean_files(kind)
        if not self.errors:
            self._clean_destination()
        return self.cleaned_data

    def _clean_vm(self) -> None:
        self.import_kind = VM
        self.field = "vm"
        values = self.cleaned_data
        row = {name: values.get(name, "").strip() for name in ("vm", "mac")}
        ips = values.get("ips", "").replace(",", " ").split()
        self.uploads = [formats.rows_upload([{**row, "ips": ips}])]
        if not row["vm"] and "vm" not in self.errors:
            self.add_error("vm", gettext("Enter the name of the VM."))

    def _clean_files(self, kind: str) -> None:
        chosen: list[Any] = self.files.getlist("file") if self.files else []
        text = self.cleaned_data.get("text", "")
        self.field = "file" if chosen or not text.strip() else "text"
        if sum(file.size for file in chosen) > LARGEST:
            self.add_error("file", forms.ValidationError(TOO_LARGE, code="too_large"))
            return
        self.uploads = [(file.name or "", file.read()) for file in chosen]
        if not chosen and text.strip():
            with contextlib.suppress(UnicodeEncodeError):
                self.uploads = [("", text.encode())]
        if not self.uploads:
            self.add_error("file", gettext("Choose a file, or paste a text."))
            return
        if any(_POOL_MANIFESTS in content for _, content in self.uploads):
            self.add_error(self.field, _pools_answer())
            return
        with pages.errors_at_field(self, self.field):
            self.import_kind = kind or self._recognise()

    def _recognise(self) -> str:
        """Return the kind that all files are, and note why. Raises InvalidInput."""
        # Of a kind, the first file says why.
        readings = [_recognise(self.kinds, *upload) for upload in self.uploads]
        found = dict(reversed(readings))
        if len(found) > 1:
            message = gettext("Some of the files are VMs and some a register: import them apart.")
            raise errors.InvalidInput.for_field("file", "different_kinds", message)
        ((kind, recognition),) = found.items()
        words = {
            "format": PAGES[kind].formats.get(recognition.format, recognition.format),
            "evidence": recognition.evidence,
        }
        message = gettext("Read as %(format)s, because of %(evidence)s") % words
        self.notes.append({"code": "recognised", "message": message})
        return kind

    def _clean_destination(self) -> None:
        where: Destination | str = self.cleaned_data["where"]
        self.network = where if isinstance(where, Network) else None
        if self.import_kind == REGISTER:
            clusters = [where] if isinstance(where, Cluster) else []
            if not where:
                clusters = list(Cluster.objects.all()[:2])
            if len(clusters) != 1:
                text = gettext("Choose a cluster: a register fills its address space.")
                self.add_error("where", text)
                return
            self.cluster = clusters[0]
            return
        if not where:
            with contextlib.suppress(errors.InvalidInput):  # said beside the file afterwards
                self.network = mapping.find_by_addresses(self.uploads[0], self._user)
            if self.network is None:
                self.add_error("where", gettext("Choose the target network."))
                return
            self.notes.append(mapping.network_note(self.network))
        self.cluster = self.network.cluster if self.network else where  # type: ignore[assignment]

    def create(self, request: HttpRequest) -> Import | None:
        """Create the draft; None, with errors beside their fields, if it is refused."""
        values = {"cluster": self.cluster, "user": request.user, "notes": self.notes}
        new: Import
        if self.import_kind == REGISTER:
            holder_kind = self.cleaned_data["holder_kind"] or "host"
            new = RegisterImport.new(**values, holder_kind=holder_kind, **self.register_options())
        else:
            target = self.cleaned_data["target"] or ImportTarget.IPPOOL.value
            namespace = self.cleaned_data["namespace"]
            new = VMImport.new(**values, target=target, network=self.network, namespace=namespace)
        engine = PAGES[self.import_kind].engine
        try:
            row: Import = engine.create(self.uploads, new, author=pages.author(request))
        except errors.NotAllowed as error:
            pages.add_errors(self, error, "target")
        except errors.IpamError as error:
            pages.add_errors(self, error, self.field)
        else:
            return row
        return None


def permitted(request: HttpRequest) -> list[str]:
    """Return the kinds of imports that the user may add."""
    return [kind for kind, page in PAGES.items() if page.engine.permits(request.user, "add")]


def _pools_answer() -> StrOrPromise:
    text = gettext("These are manifests of pools: {link} has a preview of them.")
    link = display.link(reverse("admin:import"), gettext("Import pools"))
    return format_html(text, link=link)


def _recognise(kinds: list[str], name: str, content: bytes) -> tuple[str, Recognition]:
    """Return the kind of imports that reads a file, and what it knows it by. Raises InvalidInput."""
    found: dict[str, Recognition] = {}
    problems: dict[str, str] = {}  # by message
    for kind in kinds:
        try:
            found[kind] = PAGES[kind].engine.recognise(name, content)
        except errors.InvalidInput as error:
            problems.setdefault(error.problems[0].message, str(PAGES[kind].what))
    best = max((recognition.certainty for recognition in found.values()), default=None)
    fitting = [kind for kind, recognition in found.items() if recognition.certainty == best]
    if len(fitting) == 1:
        return fitting[0], found[fitting[0]]
    place = f"{name}: " if name else ""
    if fitting:
        words = {"place": place} | {kind: found[kind].evidence for kind in fitting}
        text = gettext(
            "%(place)sthese can be VMs (%(vm)s) or a register (%(register)s): choose above what it is"
        )
        raise errors.InvalidInput.for_field("file", "ambiguous", text % words)
    looked = "; ".join(
        message if len(problems) == 1 else f"{what}: {message}"
        for message, what in problems.items()
    )
    raise errors.InvalidInput.for_field("file", "unknown_content", f"{place}{looked}")


def add(request: HttpRequest) -> HttpResponse:
    """Show the form and create a draft of what is submitted.

    The size of the request is checked before its body is read: the protection against CSRF would read the files
    to find its token.
    """
    if not permitted(request):
        raise PermissionDenied
    if request.method == "POST":
        if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST + _FORM_OVERHEAD:
            return _reject_too_large(request, "file", TOO_LARGE)
        try:
            _ = request.POST
        except RequestDataTooBig:
            return _reject_too_large(request, "text", PASTED_TOO_LARGE)
    protected_view: Callable[[HttpRequest], HttpResponse] = csrf_protect(_add)
    return protected_view(request)


def _reject_too_large(request: HttpRequest, field: str, message: StrOrPromise) -> HttpResponse:
    """Show an empty form with the error; the submitted values are in the body, which is not read."""
    form = ImportForm(request, data={})
    form.errors.clear()
    form.add_error(field, forms.ValidationError(message, code="too_large"))
    return _page(request, form, status=413)


def _add(request: HttpRequest) -> HttpResponse:
    initial = {name: request.GET[name] for name in ("target", "vm") if name in request.GET}
    if request.GET.get("kind") in {VM, REGISTER, ONE}:
        initial["kind"] = request.GET["kind"]
    for name in ("network", "cluster"):
        if number := lists.parse_id(request.GET.get(name, "")):
            initial["where"] = f"{name}-{number}"
    scope = namespaces.owner_scope(request.user)
    names = sorted({name for of_cluster in scope.namespaces.values() for name in of_cluster})
    if len(names) == 1:
        initial["namespace"] = names[0]
    form = ImportForm(request, request.POST or None, request.FILES or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        draft = form.create(request)
        if draft is not None:
            if draft.status == ImportStatus.QUEUED:
                tasks.notify_import_worker(draft.pk)
            return HttpResponseRedirect(display.url_of(draft))
    return _page(request, form)


def _page(request: HttpRequest, form: ImportForm, *, status: int = 200) -> HttpResponse:
    return pages.page(
        request,
        "import_new.html",
        title=gettext("New import"),
        opts=Import._meta,
        form=form,
        nowhere=form.fields["where"].is_empty,  # type: ignore[attr-defined]
        has_vms=VM in form.kinds,
        has_registers=REGISTER in form.kinds,
        everything=scoped.request_scope(request).everything,
        largest=LARGEST,
        largest_mib=_MIB,
        too_large=TOO_LARGE,
        most_vm_rows=formats.MOST_ROWS,
        most_register_rows=register_files.MOST_ROWS,
        status=status,
    )


# --- the list -------------------------------------------------------------------------------------


def _name(row: Import) -> SafeString:
    link = display.row_link(row, import_texts.name(row))
    return display.two_lines(link, str(PAGES[row.kind].formats.get(row.format, row.format)))


@admin.register(Import)
class ImportAdmin(lists.ListAdmin[Import]):
    """Users see the kinds that they may view, and of these what the kind lets them see."""

    list_display = (
        Column("name", _("import"), _name),
        Column("kind", _("what"), lambda row: PAGES[row.kind].what),
        Column("status", _("status"), import_texts.badge),
        Column("rows", _("rows"), import_texts.counts_stack),
        Column("cluster", _("cluster"), scoped.cluster_link),
        columns.text("actor", _("user")),
        columns.timestamp("created_at", _("started")),
    )
    live_columns = ("status", "rows")
    list_filter = (
        filters.by_value(_("what"), "kind", {kind: page.what for kind, page in PAGES.items()}),
        filters.by_value(_("status"), "status", ImportStatus),
        scoped.cluster_filter(),
    )
    exported = (
        "id", "kind", "file_name", "format", "cluster.name", "status", "counts", "actor", "created_at",
        "committed_at", "undone_at",
    )  # fmt: skip
    list_per_page = 50
    show_add_link = False  # the button is above the list
    search_help_text = _("File name or user")
    ordering = ("-pk",)
    list_select_related = ("cluster",)
    list_before_template = "cadastre/imports_intro.html"
    list_pages = (Page("add", add),)
    row_pages = (
        Page("change", lambda request, row: PAGES[row.kind](request, row).answer()),
        lists.history(lambda row: {"q": str(row)}, "pools.view_event"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Import]:
        visible = Q(pk__in=())
        for page in PAGES.values():
            if page.engine.permits(request.user, "view"):
                visible |= Q(pk__in=page.engine.visible(request.user).order_by().values("pk"))
        return super().get_queryset(request).filter(visible)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        scoped.mark_links(request, rows)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"nothing_yet": not self.get_queryset(request).exists()}

    def has_view_permission(self, request: HttpRequest, obj: Import | None = None) -> bool:
        return any(page.engine.permits(request.user, "view") for page in PAGES.values())

    def require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(permitted(request))

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return super().add_view(request, *arguments, **options)

    # CSRF protection would read the files to find the token: the page checks their size first.
    add_view.csrf_exempt = True  # type: ignore[attr-defined]
