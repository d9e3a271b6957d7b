"""Observed objects of clusters, and the findings of sync runs."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import sync_runs
from pools.clusters.reconcile import registry
from pools.models import Drift, Finding, ObservedObject
from pools.models.observed import Severity
from pools.platform.admin import display, lists, pages

_STATES = {
    "problem": ~Q(problem_code=""),
    "pending": Q(pending=True),
    "missed": Q(missed_at__isnull=False),
}


class ObjectKindFilter(lists.ChoiceFilter):
    title = _("kind")
    parameter_name = "kind"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        # The kinds of the handlers: distinct kinds of all rows would cost a scan per page.
        return [(handler.kind, handler.kind) for handler in registry.HANDLERS]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(kind=self.value()) if self.value() else rows


class ObjectStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [
            ("problem", gettext("invalid")),
            ("pending", gettext("pending")),
            ("missed", gettext("missing")),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        which = _STATES.get(self.value() or "")
        return rows.filter(which) if which else rows


@admin.register(ObservedObject)
class ObjectAdmin(lists.ReadOnlyAdmin[ObservedObject]):
    list_display = ("shown_name", "shown_cluster", "shown_problem", "shown_changed", "shown_missed")
    list_display_links = None
    list_filter = (sync_runs.RunClusterFilter, ObjectKindFilter, ObjectStateFilter)
    exported = (
        "cluster.name",
        "kind",
        "namespace",
        "name",
        "uid",
        "problem_code",
        "problem",
        "changed_at",
    )
    search_fields = ("name",)
    search_help_text = _("Name of the object")
    ordering = ("cluster_id", "kind", "namespace", "name", "id")
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/objects_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ObservedObject]:
        return super().get_queryset(request).select_related("cluster").defer("manifest")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ObservedObject], search_term: str
    ) -> tuple[QuerySet[ObservedObject], bool]:
        term = search_term.strip()
        return (queryset.filter(name__icontains=term) if term else queryset), False

    @admin.display(description=_("object"))
    def shown_name(self, row: ObservedObject) -> SafeString:
        name = f"{row.namespace}/{row.name}" if row.namespace else row.name
        return format_html(
            '<span class="cad-kind">{}</span> {}', row.kind, display.row_link(row, name)
        )

    @admin.display(description=_("cluster"))
    def shown_cluster(self, row: ObservedObject) -> SafeString:
        return display.row_link(row.cluster)

    @admin.display(description=_("problem"))
    def shown_problem(self, row: ObservedObject) -> SafeString:
        if not row.problem_code:
            return display.DASH
        return format_html(
            '<span class="cad-bad" title="{}">{}</span>', row.problem_code, row.problem
        )

    @admin.display(description=_("changed"))
    def shown_changed(self, row: ObservedObject) -> SafeString:
        return display.timestamp(row.changed_at)

    @admin.display(description=_("missing since"))
    def shown_missed(self, row: ObservedObject) -> SafeString:
        return display.timestamp(row.missed_at)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_observedobject")
        rows = ObservedObject.objects.select_related("cluster")
        row = rows.filter(pk=lists.parse_id(object_id)).first()
        if row is None:
            raise Http404(gettext("This object does not exist."))
        drift = Drift.objects.filter(
            cluster=row.cluster, kind=row.kind, namespace=row.namespace, name=row.name
        )
        return pages.page(
            request,
            "object.html",
            title=str(row),
            opts=ObservedObject._meta,
            original=row,
            row=row,
            drift=drift.first(),
            manifest=json.dumps(row.manifest, indent=2, ensure_ascii=False),
            call=f"clusters/{row.cluster.name}/objects/{row.pk}/",
        )


class SeverityFilter(lists.ChoiceFilter):
    title = _("severity")
    parameter_name = "severity"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in Severity.choices]

    def queryset(self, request: HttpRequest, rows: QuerySet[Finding]) -> QuerySet[Finding]:
        return rows.filter(severity=self.value()) if self.value() else rows


@admin.register(Finding)
class FindingAdmin(lists.ReadOnlyAdmin[Finding]):
    list_display = ("shown_severity", "shown_cluster", "shown_subject", "message", "shown_since")
    list_display_links = None
    list_filter = (sync_runs.RunClusterFilter, SeverityFilter)
    exported = ("cluster.name", "kind", "code", "subject", "severity", "message", "since")
    search_fields = ("subject", "message")
    search_help_text = _("Subject or message")
    ordering = ("-since", "-id")
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/findings_intro.html"
    fields = ("cluster", "kind", "code", "subject", "severity", "message", "details", "since")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Finding]:
        return super().get_queryset(request).select_related("cluster")

    @admin.display(description=_("severity"))
    def shown_severity(self, row: Finding) -> SafeString:
        return display.state(row.severity, row.code)

    @admin.display(description=_("cluster"))
    def shown_cluster(self, row: Finding) -> SafeString:
        return display.row_link(row.cluster)

    @admin.display(description=_("subject"))
    def shown_subject(self, row: Finding) -> SafeString:
        return format_html(
            '<span class="cad-kind">{}</span> {}', row.kind, display.row_link(row, row.subject)
        )

    @admin.display(description=_("since"))
    def shown_since(self, row: Finding) -> SafeString:
        return display.timestamp(row.since)
