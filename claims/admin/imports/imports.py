"""List and pages of imports: files of VMs as drafts, their commit and undo."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped
from claims.admin.imports import display, form, page, progress
from claims.imports import drafts
from claims.models import Network, VMImport
from claims.models.imports import ImportTarget
from pools.platform.admin import columns, filters, lists
from pools.platform.admin import display as admin_display
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page


def _search(rows: QuerySet[VMImport], text: str) -> QuerySet[VMImport]:
    if "\0" in text:
        return rows
    return rows.filter(Q(file_name__icontains=text) | Q(actor__icontains=text))


def _name(vm_import: VMImport) -> SafeString:
    name = vm_import.file_name or gettext("Import %(vm_import)s") % {"vm_import": vm_import.pk}
    return admin_display.two_lines(
        admin_display.row_link(vm_import, name), display.format_name(vm_import)
    )


def _counts(vm_import: VMImport) -> SafeString:
    return admin_display.stack(
        [
            format_html(
                '<span class="cad-nowrap">{} {}</span>',
                display.row_status_badge(name),
                admin_display.digits(vm_import.counts[name]),
            )
            for name in display.ROW_STATUS_HELP
            if vm_import.counts.get(name)
        ]
    )


def _network(vm_import: VMImport) -> SafeString:
    network = (
        admin_display.row_link(vm_import.network, vm_import.network.name)
        if vm_import.network
        else gettext("by port group")
    )
    return admin_display.two_lines(network, scoped.cluster_link(vm_import))


@admin.register(VMImport)
class ImportAdmin(lists.ListAdmin[VMImport]):
    list_display = (
        Column("name", _("import"), _name),
        Column("status", _("status"), display.import_status_badge),
        Column("rows", _("rows"), _counts),
        Column("network", _("network"), _network),
        columns.label("target", _("target objects")),
        columns.text("actor", _("user")),
        columns.timestamp("created_at", _("started")),
    )
    list_per_page = 50
    list_filter = (
        filters.by_value(_("status"), "status", display.STATUS_LABELS),
        filters.by_value(_("target"), "target", ImportTarget),
        scoped.cluster_filter(),
    )
    exported = (
        "id", "file_name", "format", "cluster.name", "target", "status", "counts", "actor",
        "created_at", "committed_at", "undone_at",
    )  # fmt: skip
    search_fields = ("file_name",)
    search_help_text = _("File name or user")
    search = staticmethod(_search)
    ordering = ("-pk",)
    list_before_template = "cadastre/imports_intro.html"
    list_pages = (
        Page("add", form.add, "claims.add_vmimport"),
        Page("check", form.check),
    )
    row_pages = (Page("change", page.view), Page("progress", progress.view))

    def get_queryset(self, request: HttpRequest) -> QuerySet[VMImport]:
        return drafts.visible_imports(request.user)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        scoped.mark_links(request, rows)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not drafts.visible_imports(request.user).exists(),
            "networks_exist": scoped.rows(request, Network).exists(),
        }

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return super().add_view(request, *arguments, **options)

    # CSRF protection would read the file to find the token: form.add checks the size first.
    add_view.csrf_exempt = True  # type: ignore[attr-defined]
