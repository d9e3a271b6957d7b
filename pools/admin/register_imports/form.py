"""The guide of a new import: its files or a pasted table, and the cluster that they go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_protect

from pools import tasks
from pools.admin.clusters import field as cluster_fields
from pools.core import errors, holders
from pools.models import Cluster, RegisterImport
from pools.models.imports import ImportStatus as Status
from pools.models.pools import DAY
from pools.platform.admin import display, pages
from pools.platform.admin import forms as fields
from pools.register.imports import drafts, files

_FORM_OVERHEAD = 64 * 1024  # bytes of a form in addition to its files


def parse_mapping(text: str) -> dict[str, dict[str, int]]:
    """Return `{"vrf": {name: cluster id}, "site": {…}}` of lines `vrf NAME = CLUSTER`. Raises InvalidInput."""
    clusters = dict(Cluster.objects.values_list("name", "pk"))
    mapping: dict[str, dict[str, int]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        left, equals, cluster = line.rpartition("=")
        kind, _blank, name = left.strip().partition(" ")
        if not equals or kind.lower() not in {"vrf", "site"} or not name.strip():
            message = gettext(
                "write “vrf NAME = CLUSTER” or “site NAME = CLUSTER”, not “%(line)s”"
            ) % {"line": line}
            raise errors.InvalidInput.for_field("mapping", "mapping_syntax", message, line)
        if cluster.strip() not in clusters:
            message = gettext("there is no cluster “%(cluster)s”") % {"cluster": cluster.strip()}
            raise errors.InvalidInput.for_field("mapping", "unknown_cluster", message, line)
        mapping.setdefault(kind.lower(), {})[name.strip()] = clusters[cluster.strip()]
    return mapping


def mapping_field() -> fields.ParsedField:
    return fields.ParsedField(
        parse_mapping,
        label=_("VRFs and sites of other clusters"),
        required=False,
        widget=fields.lines(3),
        help_text=_(
            "One per line: vrf NAME = CLUSTER, or site NAME = CLUSTER. Without a line, a VRF becomes an "
            "address space of its own in the cluster above."
        ),
    )


class RegisterImportForm(forms.Form):
    text = forms.CharField(
        label=_("Table"),
        required=False,
        strip=False,
        widget=fields.lines(8),
        help_text=_("Instead of a file: a table with a header, copied from a spreadsheet."),
    )
    cluster = cluster_fields.cluster_field()
    mapping = mapping_field()
    holder_kind = fields.ParsedField(
        lambda text: holders.parse_label(text.strip()),
        label=_("Kind of the holders"),
        initial="host",
    )
    cooldown = fields.DurationField(
        label=_("Cooldown of new pools"),
        initial="1d",
        help_text=_("A released address is not given to another holder for this time."),
    )

    def uploads(self, uploaded: MultiValueDict[str, Any]) -> list[tuple[str, bytes]]:
        """Return the files as (name, content), else the pasted table."""
        chosen = [(file.name or "", file.read()) for file in uploaded.getlist("file")]
        text = self.cleaned_data.get("text", "")
        return chosen or ([("", text.encode())] if text.strip() else [])


def add(request: HttpRequest) -> HttpResponse:
    """Check the size first: the protection against CSRF would read the files to find its token."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > files.LARGEST + _FORM_OVERHEAD:
        form = RegisterImportForm({})
        form.errors.clear()
        form.add_error(None, gettext("The files are larger than 20 MiB. Import them in parts."))
        return _page(request, form, status=413)
    protected: Callable[[HttpRequest], HttpResponse] = csrf_protect(_add)
    return protected(request)


def _add(request: HttpRequest) -> HttpResponse:
    initial = {"cluster": request.GET.get("cluster", "")}
    form = RegisterImportForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        uploads = form.uploads(request.FILES)
        if not uploads:
            form.add_error("text", gettext("Choose a file, or paste a table here."))
        else:
            try:
                made = _create(request, form.cleaned_data, uploads)
            except errors.IpamError as error:
                pages.add_errors(form, error, lambda _problem: None)
            else:
                if made.status == Status.QUEUED:
                    tasks.notify_import_worker(made.pk)
                return HttpResponseRedirect(display.url_of(made))
    return _page(request, form)


def _create(
    request: HttpRequest, values: dict[str, Any], uploads: list[tuple[str, bytes]]
) -> RegisterImport:
    cooldown = values["cooldown"]
    options = drafts.ImportOptions(
        values["cluster"],
        mapping=values["mapping"] or {},
        holder_kind=values["holder_kind"],
        cooldown_seconds=DAY if cooldown is None else cooldown,
        user=request.user,
    )
    return drafts.create(uploads, options, author=pages.author(request))


def _page(request: HttpRequest, form: RegisterImportForm, status: int = 200) -> HttpResponse:
    return pages.page(
        request,
        "register_import_new.html",
        title=gettext("Import a register"),
        opts=RegisterImport._meta,
        form=form,
        status=status,
        largest=files.LARGEST,
        largest_mib=files.LARGEST // 1024**2,
        most_rows=files.MOST_ROWS,
        clusters_exist=Cluster.objects.exists(),
    )
