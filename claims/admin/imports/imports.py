"""List and pages of imports: files of VMs as drafts, their commit and undo."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped
from claims.admin.imports import display, form
from claims.admin.imports.page import PAGES
from claims.imports import drafts
from claims.models import Network, VMImport
from claims.models.imports import ImportTarget
from pools.platform.admin import columns, filters, imports
from pools.platform.admin import display as admin_display
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page


def _network(vm_import: VMImport) -> SafeString:
    network = (
        admin_display.row_link(vm_import.network, vm_import.network.name)
        if vm_import.network
        else gettext("by port group")
    )
    return admin_display.two_lines(network, scoped.cluster_link(vm_import))


@admin.register(VMImport)
class VMImportAdmin(imports.ImportAdmin[VMImport]):
    list_display = (
        Column("name", _("import"), PAGES.name_and_format),
        Column("status", _("status"), PAGES.badge),
        Column("rows", _("rows"), PAGES.counts_stack),
        Column("network", _("network"), _network),
        columns.label("target", _("target objects")),
        columns.text("actor", _("user")),
        columns.timestamp("created_at", _("started")),
    )
    list_filter = (
        filters.by_value(_("status"), "status", display.STATUS_LABELS),
        filters.by_value(_("target"), "target", ImportTarget, "options__target"),
        scoped.cluster_filter(),
    )
    exported = (
        "id", "file_name", "format", "cluster.name", "target", "status", "counts", "actor",
        "created_at", "committed_at", "undone_at",
    )  # fmt: skip
    search_help_text = _("File name or user")
    list_before_template = "cadastre/imports_intro.html"
    list_pages = (
        Page("add", form.add, "claims.add_vmimport"),
        Page("check", form.check),
    )
    row_pages = (Page("change", PAGES.view), Page("progress", PAGES.poll))

    def get_queryset(self, request: HttpRequest) -> QuerySet[VMImport]:
        return drafts.IMPORTS.visible(request.user)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        scoped.mark_links(request, rows)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not drafts.IMPORTS.visible(request.user).exists(),
            "networks_exist": scoped.rows(request, Network).exists(),
        }
