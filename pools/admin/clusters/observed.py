"""Observed objects of clusters, and the findings of sync runs."""

from __future__ import annotations

import json

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters.field import cluster_filter
from pools.clusters.reconcile import registry
from pools.models import Drift, Finding, ObservedObject
from pools.models.observed import Severity
from pools.platform.admin import columns, display, filters, lists, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page

kind_filter = filters.by_value(
    # The kinds of the handlers: distinct kinds of all rows would cost a scan per page.
    _("kind"),
    "kind",
    lambda _request: [(handler.kind, handler.kind) for handler in registry.HANDLERS],
)


def object_name(row: ObservedObject | Drift) -> SafeString:
    name = f"{row.namespace}/{row.name}" if row.namespace else row.name
    return format_html('<span class="cad-kind">{}</span> {}', row.kind, display.row_link(row, name))


def _problem(row: ObservedObject) -> SafeString:
    if not row.problem_code:
        return display.DASH
    return format_html('<span class="cad-bad" title="{}">{}</span>', row.problem_code, row.problem)


def _subject(row: Finding) -> SafeString:
    return format_html(
        '<span class="cad-kind">{}</span> {}', row.kind, display.row_link(row, row.subject)
    )


def _page(request: HttpRequest, row: ObservedObject) -> HttpResponse:
    drift = Drift.objects.filter(
        cluster=row.cluster, kind=row.kind, namespace=row.namespace, name=row.name
    )
    return pages.page(
        request,
        "object.html",
        row,
        title=str(row),
        drift=drift.first(),
        manifest=json.dumps(row.manifest, indent=2, ensure_ascii=False),
        call=f"clusters/{row.cluster.name}/objects/{row.pk}/",
    )


def _finding_page(request: HttpRequest, row: Finding) -> HttpResponse:
    # A subject is the name of its object, perhaps with more behind it.
    namespace, _slash, name = row.subject.split(" ")[0].rpartition("/")
    objects = ObservedObject.objects.filter(
        cluster=row.cluster, kind=row.kind, namespace=namespace, name=name
    )
    return pages.page(
        request,
        "finding.html",
        row,
        title=row.subject,
        object=objects.only("pk").first(),
        details=json.dumps(row.details, indent=2, ensure_ascii=False) if row.details else "",
        call=f"clusters/{row.cluster.name}/findings/",
    )


@admin.register(ObservedObject)
class ObjectAdmin(lists.ListAdmin[ObservedObject]):
    list_display = (
        Column("name", _("object"), object_name),
        columns.related("cluster", _("cluster")),
        Column("problem", _("problem"), _problem),
        columns.timestamp("changed_at", _("changed")),
        columns.timestamp("missed_at", _("missing since")),
    )
    list_filter = (
        cluster_filter(),
        kind_filter,
        filters.by_condition(
            _("state"),
            "state",
            {
                "problem": (_("invalid"), ~Q(problem_code="")),
                "pending": (_("pending"), Q(pending=True)),
                "missed": (_("missing"), Q(missed_at__isnull=False)),
            },
        ),
    )
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
    list_select_related = ("cluster",)
    list_before_template = "cadastre/objects_intro.html"
    row_pages = (Page("change", _page),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ObservedObject]:
        return super().get_queryset(request).defer("manifest")


@admin.register(Finding)
class FindingAdmin(lists.ListAdmin[Finding]):
    list_display = (
        Column("severity", _("severity"), lambda row: display.state(row.severity, row.code)),
        columns.related("cluster", _("cluster")),
        Column("subject", _("subject"), _subject),
        "message",
        columns.timestamp("since", _("since")),
    )
    list_filter = (cluster_filter(), filters.by_value(_("severity"), "severity", Severity))
    exported = ("cluster.name", "kind", "code", "subject", "severity", "message", "since")
    search_fields = ("subject", "message")
    search_help_text = _("Subject or message")
    ordering = ("-since", "-id")
    list_select_related = ("cluster",)
    list_before_template = "cadastre/findings_intro.html"
    row_pages = (Page("change", _finding_page),)
