"""Checks: what is proved of the register, what is wrong, and having it repaired."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from pools import tasks
from pools.admin.overview.attention import Attention
from pools.models import CheckRun, Pool
from pools.platform import database
from pools.platform.admin import display, lists, pages
from pools.platform.checks import registry, reports, runs

_WORDS = {reports.NOT_LOOKED: "not looked at"}


@admin.register(CheckRun)
class CheckRunAdmin(lists.Listed[CheckRun]):
    list_display = ("shown_asked", "actor", "shown_state", "shown_checks", "shown_violations", "shown_repaired", "shown_took")  # fmt: skip
    list_display_links = None
    exported = ("id", "asked_at", "started_at", "ended_at", "actor", "repair", "only", "complete", "violations", "repaired")  # fmt: skip
    ordering = ("-id",)
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/checks_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[CheckRun]:
        return super().get_queryset(request).defer("report")

    @admin.display(description="asked for")
    def shown_asked(self, run: CheckRun) -> SafeString:
        return display.link(display.url_of(run), display.when(run.asked_at))

    @admin.display(description="state")
    def shown_state(self, run: CheckRun) -> SafeString:
        return state(run)

    @admin.display(description="checks")
    def shown_checks(self, run: CheckRun) -> str:
        return ", ".join(run.only) or "all"

    @admin.display(description="violations")
    def shown_violations(self, run: CheckRun) -> SafeString:
        return display.number(run.violations)

    @admin.display(description="repaired")
    def shown_repaired(self, run: CheckRun) -> SafeString:
        return display.number(run.repaired) if run.repair else display.DASH

    @admin.display(description="took")
    def shown_took(self, run: CheckRun) -> str:
        return took(run)

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("run/", pages.in_admin(run_now), name="pools_checkrun_run"),
            path("repair/", pages.in_admin(repair), name="pools_checkrun_repair"),
        ]
        return own + super().get_urls()

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        standing = reports.latest_statuses()
        more = {
            "standing": with_pools(standing),
            "bad": [one for one in standing if one.bad],
            "mendable": any(one.bad and one.check.mend for one in standing),
            **(extra_context or {}),
        }
        return super().changelist_view(request, more)

    def change_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        pages.require(request, "pools.view_checkrun")
        run = CheckRun.objects.filter(pk=lists.number(object_id)).first()
        if run is None:
            raise Http404("There is no such check.")
        known = [
            reports.CheckStatus(registry.get(one["code"]), one, run)
            for one in run.report
            if one["code"] in registry.codes()
        ]
        return pages.page(
            request,
            "check.html",
            title=f"Check {run.pk}",
            opts=CheckRun._meta,
            original=run,
            run=run,
            state=state(run),
            waits=runs.state(run, database.now()) in {"waiting", "running"},
            took=took(run),
            sentence=reports.sentence(run),
            standing=with_pools(known),
            call=f"checks/{run.pk}/",
        )


def state(run: CheckRun) -> SafeString:
    """How far a run is; of one that ended, how the register stands by it."""
    now = runs.state(run, database.now())
    if now == "abandoned":
        return display.state("failed", "Its worker ended before the run did.")
    if now != "ended":
        return display.state("pending" if now == "waiting" else "running")
    if run.violations:
        return display.state("violated", reports.sentence(run))
    if not run.complete:
        return display.state("partial", reports.sentence(run))
    return display.state("clean")


def took(run: CheckRun) -> str:
    """`0.8 s`, or a longer unit."""
    if run.ended_at is None or run.started_at is None:
        return ""
    seconds = (run.ended_at - run.started_at).total_seconds()
    return f"{seconds:.1f} s" if seconds < 60 else display.duration(seconds)


def with_pools(standing: list[reports.CheckStatus]) -> list[dict[str, Any]]:
    """Each check with its state and its examples, which lead to the pools they are about."""
    ids = {
        one["pool_id"]
        for each in standing
        if each.entry is not None
        for one in each.entry["examples"]
        if one["pool_id"]
    }
    pools = Pool.objects.select_related("cluster").in_bulk(ids)
    return [
        {
            "check": each.check,
            "entry": each.entry,
            "run": each.run,
            "state": display.state(_WORDS.get(each.entry["state"], each.entry["state"]))
            if each.entry
            else display.DASH,
            "examples": [
                (one["text"], pools.get(one["pool_id"] or 0)) for one in each.entry["examples"]
            ]
            if each.entry
            else [],
            "more": max(0, each.entry["count"] - len(each.entry["examples"])) if each.entry else 0,
        }
        for each in standing
    ]


def run_now(request: HttpRequest) -> HttpResponseBase:
    """Ask for a run of all checks that changes nothing."""
    pages.require(request, "pools.view_checkrun", "pools.run_checks")
    return _asked(request) if request.method == "POST" else _back()


def repair(request: HttpRequest) -> HttpResponseBase:
    """Say what will be repaired and what not, then ask for it."""
    pages.require(request, "pools.view_checkrun", "pools.run_checks", "pools.repair")
    bad = [one for one in reports.latest_statuses() if one.bad]
    chosen = [one.check.code for one in bad if one.check.mend]
    if not chosen:
        messages.warning(request, "Nothing that can be repaired is known to be wrong.")
        return _back()
    if request.method == "POST":
        return _asked(request, repair=True, only=chosen)
    return pages.page(
        request,
        "check_repair.html",
        title="Repair what is safe to repair?",
        opts=CheckRun._meta,
        mended=with_pools([one for one in bad if one.check.mend]),
        left=with_pools([one for one in bad if not one.check.mend]),
    )


def _asked(request: HttpRequest, **wanted: Any) -> HttpResponseBase:
    run = runs.request_run(author=pages.author(request), **wanted)
    tasks.nudge_checks()
    messages.success(request, "Asked for: a worker begins within a minute.")
    return HttpResponseRedirect(display.url_of(run))


def _back() -> HttpResponseBase:
    return HttpResponseRedirect(reverse("admin:pools_checkrun_changelist"))


def lines(request: HttpRequest) -> Iterator[Attention]:
    """What the last checks found, on the overview."""
    if not request.user.has_perm("pools.view_checkrun"):
        return
    bad = [one for one in reports.latest_statuses() if one.bad]
    if not bad:
        return
    count = reports.count_violations()
    url = reverse("admin:pools_checkrun_changelist")
    since = min((one.run.started_at for one in bad if one.run and one.run.started_at), default=None)
    yield Attention(
        "bad",
        f"{display.digits(count)} {'violation' if count == 1 else 'violations'} of the register's invariants",
        f"Found by {', '.join(one.check.code for one in bad)}.",
        url,
        "Checks",
        url,
        since,
    )
