"""The list of all imports, of VMs and of registers, and their pages; here, because `pools` does not know VMs."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped
from claims.admin.imports import form
from claims.admin.imports.form import PAGES
from pools.models.imports import Import, ImportStatus
from pools.platform.admin import columns, display, filters, import_texts, lists
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page


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
    list_pages = (Page("add", form.add),)
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
        return bool(form.permitted(request))

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return super().add_view(request, *arguments, **options)

    # CSRF protection would read the files to find the token: the page checks their size first.
    add_view.csrf_exempt = True  # type: ignore[attr-defined]
