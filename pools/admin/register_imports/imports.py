"""List and pages of imports of registers: files of prefixes and addresses as drafts, their commit and undo."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.admin.register_imports import display, form, page
from pools.models import RegisterImport
from pools.models.register_imports import ImportStatus
from pools.platform.admin import columns, filters, lists
from pools.platform.admin import display as admin_display
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page


def _search(rows: QuerySet[RegisterImport], text: str) -> QuerySet[RegisterImport]:
    if "\0" in text:
        return rows.none()
    return rows.filter(Q(file_name__icontains=text) | Q(actor__icontains=text))


def _name(row: RegisterImport) -> SafeString:
    name = row.file_name or gettext("Register import %(number)s") % {"number": row.pk}
    return admin_display.two_lines(admin_display.row_link(row, name), display.format_name(row))


def _history(row: RegisterImport) -> dict[str, str]:
    """The filter of the events that name the import as their reason."""
    return {"q": str(row)}


@admin.register(RegisterImport)
class RegisterImportAdmin(lists.ListAdmin[RegisterImport]):
    list_display = (
        Column("name", _("import"), _name),
        Column("status", _("status"), display.import_status_badge),
        Column("rows", _("rows"), display.counts_stack),
        columns.related("cluster", _("cluster")),
        columns.text("actor", _("user")),
        columns.timestamp("created_at", _("started")),
    )
    list_per_page = 50
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
    search_fields = ("file_name",)
    search_help_text = _("File or user")
    search = staticmethod(_search)
    ordering = ("-id",)
    list_select_related = ("cluster",)
    list_before_template = "cadastre/register_imports_intro.html"
    list_pages = (Page("add", form.add, "pools.add_registerimport"),)
    row_pages = (
        Page("change", page.view),
        Page("progress", page.progress),
        lists.history(_history, "pools.view_event"),
    )

    def list_context(self, _request: HttpRequest) -> dict[str, Any]:
        return {"nothing_yet": not RegisterImport.objects.exists()}

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return super().add_view(request, *arguments, **options)

    # CSRF protection would read the files to find the token: form.add checks the size first.
    add_view.csrf_exempt = True  # type: ignore[attr-defined]
