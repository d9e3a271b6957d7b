"""List and pages of imports: files of VMs as drafts, their commit and undo."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped
from claims.admin.imports import display, form, page
from claims.admin.imports import progress as import_progress
from claims.imports import drafts
from claims.models import Network, VMImport
from claims.models.imports import ImportTarget
from pools.platform.admin import display as admin_display
from pools.platform.admin import lists, pages


class ImportList(lists.BoundedList):
    """Marks whether the imports of a page may link to their clusters."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        vm_imports: list[Any] = list(self.result_list)
        for vm_import in vm_imports:
            vm_import.shown_links = scoped.request_scope(request).everything
        self.result_list = vm_imports


class StatusFilter(lists.ChoiceFilter):
    title = _("status")
    parameter_name = "status"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(status, str(label)) for status, label in display.STATUS_LABELS.items()]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(status=self.value()) if self.value() else rows


class TargetFilter(lists.ChoiceFilter):
    title = _("target")
    parameter_name = "target"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in ImportTarget.choices]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(target=self.value()) if self.value() else rows


@admin.register(VMImport)
class ImportAdmin(lists.ReadOnlyAdmin[VMImport]):
    list_display = (
        "shown_name",
        "shown_status",
        "shown_counts",
        "shown_where",
        "shown_target",
        "shown_by",
        "shown_when",
    )
    list_display_links = None
    list_per_page = 50
    list_filter = (StatusFilter, TargetFilter, scoped.ScopedClusterFilter)
    exported = (
        "id",
        "file_name",
        "format",
        "cluster.name",
        "target",
        "status",
        "counts",
        "actor",
        "created_at",
        "committed_at",
        "undone_at",
    )
    search_fields = ("file_name",)
    search_help_text = _("File name or user")
    ordering = ("-pk",)
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/imports_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[VMImport]:
        return drafts.visible_imports(request.user)

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ImportList]:
        return ImportList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[VMImport], search_term: str
    ) -> tuple[QuerySet[VMImport], bool]:
        search_text = search_term.strip()
        if not search_text or "\0" in search_text:
            return queryset, False
        matches_by_name = queryset.filter(file_name__icontains=search_text)
        return matches_by_name | queryset.filter(actor__icontains=search_text), False

    @admin.display(description=_("import"))
    def shown_name(self, vm_import: VMImport) -> SafeString:
        return format_html(
            '<span class="cad-stack">{}<span class="cad-dim">{}</span></span>',
            admin_display.row_link(
                vm_import,
                vm_import.file_name
                or (gettext("Import %(vm_import)s") % {"vm_import": vm_import.pk}),
            ),
            display.format_name(vm_import),
        )

    @admin.display(description=_("status"))
    def shown_status(self, vm_import: VMImport) -> SafeString:
        return display.import_status_badge(vm_import)

    @admin.display(description=_("rows"))
    def shown_counts(self, vm_import: VMImport) -> SafeString:
        status_counts = [
            (display.row_status_badge(name), admin_display.digits(vm_import.counts[name]))
            for name in display.ROW_STATUS_HELP
            if vm_import.counts.get(name)
        ]
        if not status_counts:
            return admin_display.DASH
        lines = format_html_join("", '<span class="cad-nowrap">{} {}</span>', status_counts)
        return format_html('<span class="cad-stack">{}</span>', lines)

    @admin.display(description=_("network"))
    def shown_where(self, vm_import: Any) -> SafeString:
        cluster = (
            admin_display.row_link(vm_import.cluster)
            if vm_import.shown_links
            else vm_import.cluster.name
        )
        network = (
            admin_display.row_link(vm_import.network, vm_import.network.name)
            if vm_import.network
            else gettext("by port group")
        )
        return format_html(
            '<span class="cad-stack"><span>{}</span><span class="cad-dim">{}</span></span>',
            network,
            cluster,
        )

    @admin.display(description=_("target objects"))
    def shown_target(self, vm_import: VMImport) -> str:
        return vm_import.get_target_display()

    @admin.display(description=_("user"))
    def shown_by(self, vm_import: VMImport) -> str | SafeString:
        return vm_import.actor or admin_display.DASH

    @admin.display(description=_("started"))
    def shown_when(self, vm_import: VMImport) -> SafeString:
        return admin_display.timestamp(vm_import.created_at)

    # --- pages ------------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        more = {
            "nothing_yet": not drafts.visible_imports(request.user).exists(),
            "networks_exist": scoped.rows(request, Network).exists(),
            **(extra_context or {}),
        }
        return super().changelist_view(request, more)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("claims.add_vmimport")

    def get_urls(self) -> list[URLPattern]:
        check = pages.in_admin(form.check)
        progress = pages.in_admin(self.progress_view)
        return [
            path("check/", check, name="claims_vmimport_check"),
            path("<int:import_id>/progress/", progress, name="claims_vmimport_progress"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        pages.require(request, "claims.add_vmimport")
        return form.add(request)

    # CSRF protection would read the file to find the token: form.add checks the size first.
    add_view.csrf_exempt = True  # type: ignore[attr-defined]

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_vmimport")
        vm_import = scoped.row_or_404(drafts.visible_imports(request.user), object_id)
        return page.view(request, vm_import)

    def progress_view(self, request: HttpRequest, import_id: int) -> HttpResponse:
        pages.require(request, "claims.view_vmimport")
        return import_progress.view(
            scoped.row_or_404(drafts.visible_imports(request.user), import_id)
        )
