"""Sync runs: list, outcome, duration and counts."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _, ngettext

from pools.admin.clusters.field import cluster_filter
from pools.models import SyncRun
from pools.platform.admin import columns, display, filters, lists
from pools.platform.admin.columns import Column

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

    Kinds without objects are counted in the last line, which names them on hover.
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
            '<span class="cad-dim" title="{}">{}</span>',
            ", ".join(empty),
            ngettext(
                "%(number)s kind without objects", "%(number)s kinds without objects", len(empty)
            )
            % {"number": len(empty)},
        )
        if empty
        else "",
    )


OUTCOME = Column("outcome", _("outcome"), outcome)
COUNTS = Column("counts", _("observed, changed, written, failed"), counts)


@admin.register(SyncRun)
class SyncRunAdmin(lists.ListAdmin[SyncRun]):
    list_display = (
        columns.timestamp("started_at", _("started")),
        columns.related("cluster", _("cluster")),
        OUTCOME,
        "trigger",
        Column("duration", _("duration"), duration),
        COUNTS,
    )
    live_columns = ("outcome", "duration", "counts")
    list_filter = (
        cluster_filter(),
        filters.by_condition(
            _("outcome"),
            "outcome",
            {
                "succeeded": (_("succeeded"), Q(ended_at__isnull=False, succeeded=True)),
                "failed": (_("failed"), Q(ended_at__isnull=False, succeeded=False)),
            },
        ),
    )
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
    list_select_related = ("cluster",)
    list_before_template = "cadastre/runs_intro.html"
    empty_text = _(
        "No sync runs yet. A connected cluster is synced every ten minutes, and immediately "
        "when something changes."
    )
    fields: ClassVar[Any] = ("cluster", "trigger", "started_at", "ended_at", OUTCOME, COUNTS)
    readonly_fields: ClassVar[Any] = fields
