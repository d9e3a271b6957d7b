"""Integrity checks: their results, starting a run, and repairing violations."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools import tasks
from pools.models import CheckRun, Pool
from pools.platform import database
from pools.platform.admin import display, lists, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.checks import registry, reports, runs

_STATE_LABELS = {reports.NOT_LOOKED: "unchecked"}


def state(run: CheckRun) -> SafeString:
    """Return the state of a run; of an ended run, its result."""
    now = runs.state(run, database.now())
    if now == "abandoned":
        return display.state("failed", gettext("The worker stopped before the run ended."))
    if now != "ended":
        return display.state("pending" if now == "waiting" else "running")
    if run.violations:
        return display.state("violated", reports.sentence(run))
    if not run.complete:
        return display.state("partial", reports.sentence(run))
    return display.state("clean")


def duration(run: CheckRun) -> str:
    """Return the duration of a run: `0.8 s`, or a larger unit; empty while it runs."""
    if run.ended_at is None or run.started_at is None:
        return ""
    seconds = (run.ended_at - run.started_at).total_seconds()
    return f"{seconds:.1f} s" if seconds < 60 else display.duration(seconds)


def violations(run: CheckRun) -> SafeString:
    """Return the number of violations of a run; a dash for none while the run has not ended."""
    if run.ended_at is None and not run.violations:
        return display.DASH
    return display.number(run.violations)


def _count(entry: reports.Entry | None) -> SafeString:
    """Return the number of violations of a check; a dash if none was found and the check has not finished."""
    if entry is None or not (entry["complete"] or entry["count"]):
        return display.DASH
    return display.number(entry["count"])


def with_pools(statuses: list[reports.CheckStatus]) -> list[dict[str, Any]]:
    """Return the template values of each check: its result, and examples with their pools."""
    ids = {
        example["pool_id"]
        for status in statuses
        if status.entry is not None
        for example in status.entry["examples"]
        if example["pool_id"]
    }
    pools = Pool.objects.select_related("cluster").in_bulk(ids)
    return [
        {
            "check": status.check,
            "entry": status.entry,
            "run": status.run,
            "count": _count(status.entry),
            "state": display.state(_STATE_LABELS.get(status.entry["state"], status.entry["state"]))
            if status.entry
            else display.DASH,
            "examples": [
                (example["text"], pools.get(example["pool_id"] or 0))
                for example in status.entry["examples"]
            ]
            if status.entry
            else [],
            "more": max(0, status.entry["count"] - len(status.entry["examples"]))
            if status.entry
            else 0,
        }
        for status in statuses
    ]


def run_now(request: HttpRequest) -> HttpResponse:
    """Queue a run of all checks without repairs."""
    pages.require(request, "pools.view_checkrun", "pools.run_checks")
    return _start_run(request) if request.method == "POST" else _back()


def repair(request: HttpRequest) -> HttpResponse:
    """Show which violations are repaired and which are not; by POST, queue the repair."""
    pages.require(request, "pools.view_checkrun", "pools.run_checks", "pools.repair")
    violated = [status for status in reports.latest_statuses() if status.bad]
    chosen = [status.check.code for status in violated if status.check.mend]
    if not chosen:
        messages.warning(request, gettext("No known violation can be repaired."))
        return _back()
    if request.method == "POST":
        return _start_run(request, repair=True, only=chosen)
    return pages.page(
        request,
        "check_repair.html",
        CheckRun,
        title=gettext("Repair these violations?"),
        repairable=with_pools([status for status in violated if status.check.mend]),
        undecided=with_pools([status for status in violated if not status.check.mend]),
    )


def _start_run(request: HttpRequest, **options: Any) -> HttpResponse:
    run = runs.request_run(author=pages.author(request), **options)
    tasks.nudge_checks()
    return pages.done(
        request, gettext("The check run is queued. A worker starts it within a minute."), run
    )


def _back() -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:pools_checkrun_changelist"))


def _page(request: HttpRequest, run: CheckRun) -> HttpResponse:
    statuses = [
        reports.CheckStatus(registry.get(entry["code"]), entry, run)
        for entry in run.report
        if entry["code"] in registry.codes()
    ]
    return pages.page(
        request,
        "check.html",
        run,
        title=gettext("Check run %(id)s") % {"id": run.pk},
        run=run,
        state=state(run),
        is_pending=runs.state(run, database.now()) in {"waiting", "running"},
        duration=duration(run),
        violations=violations(run),
        sentence=reports.sentence(run),
        statuses=with_pools(statuses),
        call=f"checks/{run.pk}/",
    )


@admin.register(CheckRun)
class CheckRunAdmin(lists.ListAdmin[CheckRun]):
    list_display = (
        Column(
            "requested_at",
            _("requested"),
            lambda run: display.link(display.url_of(run), display.timestamp(run.requested_at)),
        ),
        "actor",
        Column("state", _("state"), state),
        Column("checks", _("checks"), lambda run: ", ".join(run.only) or gettext("all")),
        Column("violations", _("violations"), violations),
        Column(
            "repaired",
            _("repaired"),
            lambda run: display.number(run.repaired) if run.repair else display.DASH,
        ),
        Column("duration", _("duration"), duration),
    )
    exported = (
        "id", "requested_at", "started_at", "ended_at", "actor", "repair", "only", "complete",
        "violations", "repaired",
    )  # fmt: skip
    ordering = ("-id",)
    list_before_template = "cadastre/checks_intro.html"
    list_pages = (Page("run", run_now), Page("repair", repair))
    row_pages = (Page("change", _page),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[CheckRun]:
        return super().get_queryset(request).defer("report")

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        statuses = reports.latest_statuses()
        started = [
            status.run.started_at for status in statuses if status.run and status.run.started_at
        ]
        return {
            "statuses": with_pools(statuses),
            "checked_at": min(started, default=None),  # each check has run since
            "unchecked": len(statuses) - len(started),
            "violated": [status for status in statuses if status.bad],
            "repairable": any(status.bad and status.check.mend for status in statuses),
        }
