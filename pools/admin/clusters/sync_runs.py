"""Sync runs: list, outcome, duration and counts."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.pools import pools
from pools.models import SyncRun
from pools.platform.admin import display, lists

_COUNTS = ("seen", "changed", "written", "failed")


def outcome(run: SyncRun) -> SafeString:
    """Return the outcome of a run, with its error below."""
    if run.ended_at is None:
        return display.state("running")
    if run.succeeded:
        return display.state("succeeded")
    if not run.error_code:
        return display.state("failed")
    return format_html(
        '<span class="cad-stack">{}<span class="cad-dim" title="{}">{}</span></span>',
        display.state("failed"),
        run.error_code,
        run.error,
    )


def duration(run: SyncRun) -> str:
    """Return the duration of a run: `0.8 s`, or a larger unit; empty while it runs."""
    if run.ended_at is None:
        return ""
    seconds = (run.ended_at - run.started_at).total_seconds()
    return f"{seconds:.1f} s" if seconds < 60 else display.duration(seconds)


def counts(run: SyncRun) -> SafeString:
    """Return one line per kind: `CiliumNode 40, 2, 0, 0`, with the error if the whole kind failed.

    Kinds without objects share the last line.
    """
    lines, empty = [], []
    for kind, kind_counts in sorted(run.kinds.items()):
        numbers = [int(kind_counts.get(name, 0)) for name in _COUNTS]
        if message := kind_counts.get("message", ""):
            style = "" if kind_counts.get("not_served") else "cad-bad"
            lines.append((kind, ", ".join(map(display.digits, numbers)), style, message))
        elif any(numbers):
            lines.append((kind, ", ".join(map(display.digits, numbers)), "", ""))
        else:
            empty.append(kind)
    return format_html(
        '<span class="cad-stack">{}{}</span>',
        format_html_join(
            "",
            '<span><span class="cad-kind">{}</span> {} <span class="{}">{}</span></span>',
            lines,
        ),
        format_html(
            '<span class="cad-sub">{}</span>',
            gettext("no objects: %(kinds)s") % {"kinds": ", ".join(empty)},
        )
        if empty
        else "",
    )


class RunClusterFilter(pools.PoolClusterFilter):
    """The filter of pools."""


class RunOutcomeFilter(lists.ChoiceFilter):
    title = _("outcome")
    parameter_name = "outcome"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("succeeded", gettext("succeeded")), ("failed", gettext("failed"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[SyncRun]) -> QuerySet[SyncRun]:
        if not self.value():
            return rows
        return rows.filter(ended_at__isnull=False, succeeded=self.value() == "succeeded")


@admin.register(SyncRun)
class SyncRunAdmin(lists.ReadOnlyAdmin[SyncRun]):
    list_display = (
        "shown_began",
        "shown_cluster",
        "shown_outcome",
        "trigger",
        "shown_duration",
        "shown_counts",
    )
    list_display_links = None
    list_filter = (RunClusterFilter, RunOutcomeFilter)
    exported = (
        "id",
        "cluster.name",
        "trigger",
        "started_at",
        "ended_at",
        "succeeded",
        "error_code",
        "error",
    )
    ordering = ("-id",)
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/runs_intro.html"
    fields = ("cluster", "trigger", "started_at", "ended_at", "shown_outcome", "shown_counts")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[SyncRun]:
        return super().get_queryset(request).select_related("cluster")

    @admin.display(description=_("started"))
    def shown_began(self, run: SyncRun) -> SafeString:
        return display.timestamp(run.started_at)

    @admin.display(description=_("cluster"))
    def shown_cluster(self, run: SyncRun) -> SafeString:
        return display.row_link(run.cluster)

    @admin.display(description=_("outcome"))
    def shown_outcome(self, run: SyncRun) -> SafeString:
        return outcome(run)

    @admin.display(description=_("duration"))
    def shown_duration(self, run: SyncRun) -> str:
        return duration(run)

    @admin.display(description=_("seen, changed, written, failed"))
    def shown_counts(self, run: Any) -> SafeString:
        return counts(run)
