"""List and pages of imports of registers: files of prefixes and addresses as drafts, their commit and undo."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.admin.register_imports import form
from pools.admin.register_imports.page import PAGES
from pools.models import RegisterImport
from pools.models.imports import ImportStatus
from pools.platform.admin import columns, filters, imports, lists
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page


@admin.register(RegisterImport)
class RegisterImportAdmin(imports.ImportAdmin[RegisterImport]):
    list_display = (
        Column("name", _("import"), PAGES.name_and_format),
        Column("status", _("status"), PAGES.badge),
        Column("rows", _("rows"), PAGES.counts_stack),
        columns.related("cluster", _("cluster")),
        columns.text("actor", _("user")),
        columns.timestamp("created_at", _("started")),
    )
    list_filter = (
        filters.by_value(_("status"), "status", ImportStatus),
        cluster_fields.cluster_filter(),
    )
    exported = (
        "id",
        "file_name",
        "format",
        "cluster.name",
        "status",
        "counts",
        "actor",
        "created_at",
        "committed_at",
        "undone_at",
    )
    search_help_text = _("File or user")
    list_select_related = ("cluster",)
    list_before_template = "cadastre/register_imports_intro.html"
    list_pages = (Page("add", form.add, "pools.add_registerimport"),)
    row_pages = (
        Page("change", PAGES.view),
        Page("progress", PAGES.poll),
        lists.history(lambda row: {"q": str(row)}, "pools.view_event"),
    )

    def list_context(self, _request: HttpRequest) -> dict[str, Any]:
        return {"nothing_yet": not RegisterImport.objects.exists()}
