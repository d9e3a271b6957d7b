"""The two-step migration of a CIDR as a guide: what it would do, the steps, who is in the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from pools.admin.clusters import guides
from pools.cidr_migrations import forecast as cidr_migration_forecast
from pools.cidr_migrations import manifests, migrations
from pools.cidr_migrations import progress as cidr_migration_progress
from pools.cidr_migrations.progress import (
    MigrationProgress,
    MigrationStatus,
    MigrationStep,
    is_whole,
    span_of,
)
from pools.cilium import drift
from pools.core import errors
from pools.models import CIDRMigration, Pool
from pools.platform import events
from pools.platform.admin import forms as fields
from pools.platform.admin import pages

WATCHED_EVERY = 5  # seconds
PAST = 20  # migrations listed
ENDED = {MigrationStatus.REMOVED, MigrationStatus.KEPT, MigrationStatus.ABORTED}


class BeginForm(forms.Form):
    cidr = forms.ChoiceField(label="CIDR to empty", widget=fields.select())
    range = fields.range_field(
        label="Only this range",
        required=False,
        widget=fields.addresses_text(placeholder="10.20.0.0-10.20.0.99"),
        help_text="Empty: all of it. A range can be widened to the whole CIDR later.",
    )
    to = fields.cidr_field(
        label="CIDR in its place",
        required=False,
        widget=fields.addresses_text(placeholder="10.30.0.0/16"),
        help_text="Added to the pool in a step of its own; empty when the pool has room elsewhere.",
    )
    reason = fields.reason_field(required=False)

    def __init__(self, pool: Pool, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pool = pool
        cidrs = pool.cidrs.order_by("position")
        choices = [(str(row.cidr), str(row.cidr)) for row in cidrs]
        self.fields["cidr"].choices = choices  # type: ignore[attr-defined]

    def plan(self) -> migrations.MigrationPlan:
        values = self.cleaned_data
        row = self.pool.cidrs.get(cidr=values["cidr"])
        return migrations.plan_migration(self.pool, row.cidr, span=values["range"], to=values["to"])


def begin(request: HttpRequest, pool: Pool) -> HttpResponseBase:
    """The form, then what it would do, then the first page of the migration."""
    pages.require(request, "pools.view_pool")
    if request.method == "GET" and (
        migration := _open_migration(pool, request.GET.get("cidr", ""))
    ):
        return HttpResponseRedirect(url_of(migration))
    form = BeginForm(pool, request.POST or None, initial=dict(request.GET.items()))
    forecast = None
    if request.method == "POST":
        pages.require(request, "pools.change_pool")
        if form.is_valid():
            author = pages.author(request, form.cleaned_data["reason"] or "")
            try:
                plan = form.plan()
                if "_begin" in request.POST:
                    return HttpResponseRedirect(url_of(migrations.begin(plan, author=author)))
                forecast = cidr_migration_forecast.forecast_migration(plan, author=author)
            except errors.IpamError as error:
                pages.put(form, error)
    past = CIDRMigration.objects.filter(pool=pool).select_related(
        "pool__cluster", "pool_cidr__pool__cluster"
    )
    return pages.page(
        request,
        "migration_begin.html",
        title=f"Migrate a CIDR of {pool.name}",
        opts=Pool._meta,
        original=pool,
        pool=pool,
        form=form,
        forecast=forecast,
        findings=guides.with_titles(forecast.findings) if forecast else [],
        past=[
            (row, cidr_migration_progress.migration_progress(row, holder_limit=0), url_of(row))
            for row in past[:PAST]
        ],
    )


def _open_migration(pool: Pool, cidr: str) -> CIDRMigration | None:
    rows = CIDRMigration.objects.filter(pool=pool, ended_at=None, pool_cidr__isnull=False)
    return next((row for row in rows if str(row.cidr) == cidr), None)


def url_of(migration: CIDRMigration) -> str:
    return reverse("admin:pools_pool_migration", args=[migration.pool_id, migration.pk])


@dataclass(frozen=True)
class StepLine:
    """One step on the page; `mark` is done, now, later or skipped; `step` what its button does."""

    mark: str
    title: str
    text: str
    step: MigrationStep | None = None
    button: str = ""
    drains: bool = False


def view(request: HttpRequest, pool: Pool, migration_id: int) -> HttpResponseBase:
    """How far it is; a step by POST. To widen is confirmed after its forecast was shown."""
    pages.require(request, "pools.view_pool")
    try:
        migration = migrations.get_migration(migration_id, pool_id=pool.pk)
    except errors.NotFound as error:
        raise Http404(error.message) from error
    forecast = None
    if request.method == "POST":
        pages.require(request, "pools.change_pool")
        step = _step(request.POST.get("step", ""))
        if step is not MigrationStep.WIDEN or "_confirmed" in request.POST:
            return _take_step(request, migration, step)
        with pages.told(request):
            forecast = _forecast(migration, step, pages.author(request))
        if forecast is None:
            return HttpResponseRedirect(url_of(migration))
    progress = cidr_migration_progress.migration_progress(migration)
    watched = "watch" in request.GET and progress.status is MigrationStatus.DRAINING
    answer = pages.page(
        request,
        "migration.html",
        title=f"Migration of {migration.cidr}",
        opts=Pool._meta,
        original=pool,
        pool=pool,
        migration=migration,
        progress=progress,
        lines=_lines(migration, progress),
        can_abort=MigrationStep.ABORT in progress.steps,
        span=span_of(migration),
        whole=is_whole(migration),
        manifest=_manifest(migration, progress),
        waiting=drift.waiting_of_pool(pool),
        watched=watched,
        widening=forecast,
    )
    if watched:
        answer["Refresh"] = str(WATCHED_EVERY)
    return answer


def _take_step(
    request: HttpRequest, migration: CIDRMigration, step: MigrationStep
) -> HttpResponseBase:
    with pages.told(request):
        updated = migrations.take(migration.pk, step, author=pages.author(request))
        waits = step is MigrationStep.REMOVE and not updated.outcome
        message = _REMOVING_MESSAGE if waits else _MESSAGES[step]
        messages.success(request, message.format(old=updated.cidr, new=updated.to))
    return HttpResponseRedirect(url_of(migration))


def _forecast(
    migration: CIDRMigration, step: MigrationStep, author: events.Author
) -> dict[str, Any]:
    """What the step would do, for somebody who has to confirm it. Raises what the step raises."""
    plan = migrations.withholding(migration.pk, step)
    forecast = cidr_migration_forecast.forecast_migration(plan, author=author)
    return {
        "forecast": forecast,
        "findings": guides.with_titles(forecast.findings),
        "reserves": list(migrations.gaps(plan.cidr, plan.span)),
    }


def _step(word: str) -> MigrationStep:
    try:
        return MigrationStep(word)
    except ValueError as error:
        raise BadRequest("There is no such step.") from error


_REMOVING_MESSAGE = "{old} is removed when the cluster's object has it no more."
_MESSAGES = {
    MigrationStep.ADD: "{new} was added.",
    MigrationStep.RESERVE: "Nothing more is handed out there.",
    MigrationStep.WIDEN: "All of {old} is reserved now.",
    MigrationStep.REMOVE: "{old} was removed.",
    MigrationStep.KEEP: "The range stays reserved.",
    MigrationStep.ABORT: "What was reserved was given back.",
}


def _lines(migration: CIDRMigration, progress: MigrationProgress) -> list[StepLine]:
    lines = [_reserving(migration, progress), _draining(progress), *_ending(migration, progress)]
    if migration.to is not None:
        lines.insert(0, _adding(migration, progress))
    return lines


def _adding(migration: CIDRMigration, progress: MigrationProgress) -> StepLine:
    title = f"Add {migration.to}"
    if progress.added:
        return StepLine(
            "done", title, "The pool has it; its blocks come after those of other CIDRs."
        )
    if progress.adding:
        return StepLine(
            "now", title, "Added in the register; the cluster's object does not have it yet."
        )
    text = "It may come after the reservation too; whoever asks meanwhile gets what else is free."
    return _due(progress, MigrationStep.ADD, title, text, f"Add {migration.to}")


def _reserving(migration: CIDRMigration, progress: MigrationProgress) -> StepLine:
    what = str(migration.cidr) if is_whole(migration) else str(span_of(migration))
    if progress.status is MigrationStatus.PLANNED:
        text = "No new blocks there; what is in use stays with its holder until it is given back."
        return _due(progress, MigrationStep.RESERVE, f"Reserve {what}", text, "Reserve it")
    if progress.status is MigrationStatus.ABORTED:
        return StepLine("skipped", f"Reserve {what}", "It was given back.")
    return StepLine("done", f"Reserve {what}", "Nothing more is handed out there.")


def _draining(progress: MigrationProgress) -> StepLine:
    if progress.status is MigrationStatus.DRAINING:
        return StepLine(
            "now", "Drain", "Every block leaves when its holder gives it back.", drains=True
        )
    if progress.status is MigrationStatus.PLANNED:
        return StepLine("later", "Drain", "", drains=True)
    if progress.status is MigrationStatus.ABORTED:
        return StepLine("skipped", "Drain", "")
    return StepLine("done", "Drain", "Nothing holds or cools there any more.")


def _ending(migration: CIDRMigration, progress: MigrationProgress) -> list[StepLine]:
    if is_whole(migration):
        title = f"Remove {migration.cidr}"
        if progress.status is MigrationStatus.REMOVED:
            return [StepLine("done", title, "The pool has it no more.")]
        if progress.status is MigrationStatus.REMOVING:
            text = "Removed in the register; the cluster's object still has it."
            return [StepLine("now", title, text)]
        text = "When nothing holds or cools in it."
        return [_due(progress, MigrationStep.REMOVE, title, text, title)]
    if progress.status is MigrationStatus.KEPT:
        return [StepLine("done", "Keep it reserved", "It is not handed out.")]
    return [
        _due(progress, MigrationStep.KEEP, "Keep it reserved", "When it is drained.", "Be done"),
        _due(
            progress, MigrationStep.WIDEN, f"Or go on with all of {migration.cidr}",
            "The rest is reserved too.", "See what that would do",
        ),
    ]  # fmt: skip


def _due(
    progress: MigrationProgress, step: MigrationStep, title: str, text: str, button: str
) -> StepLine:
    if step in progress.steps:
        return StepLine("now", title, text, step, button)
    return (
        StepLine("skipped", title, "")
        if progress.status in ENDED
        else StepLine("later", title, text)
    )


def _manifest(migration: CIDRMigration, progress: MigrationProgress) -> str:
    """What to apply in the cluster, for a pool that follows it."""
    if not progress.by_cluster:
        return ""
    try:
        return manifests.following(migration, progress)
    except errors.InvalidInput as error:
        return f"# {error.message}\n"
