"""Migrations of CIDRs: preview, steps, progress and remaining holders."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as form_fields, guides
from pools.admin.clusters.field import cluster_filter
from pools.admin.pools import blocks
from pools.cidr_migrations import (
    forecast as cidr_migration_forecast,
    migrations,
    progress,
    progress as cidr_migration_progress,
)
from pools.cidr_migrations.progress import (
    MigrationProgress,
    MigrationStatus,
    MigrationStep,
    is_whole,
    span_of,
)
from pools.cilium import pool_sync
from pools.core import errors
from pools.models import CIDRMigration, Pool
from pools.platform import events
from pools.platform.admin import columns, display, filters, forms as fields, lists, pages, related
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import overlaps

ENDED = {MigrationStatus.REMOVED, MigrationStatus.KEPT, MigrationStatus.ABORTED}


class BeginForm(forms.Form):
    takes_cidrs = True
    cidr = forms.ChoiceField(label=_("CIDR to retire"), widget=fields.select())
    range = fields.range_field(
        label=_("Range"),
        required=False,
        widget=fields.addresses_text(placeholder="10.20.0.0-10.20.0.99"),
        help_text=_("Empty: the whole CIDR. You can widen a range to the whole CIDR later."),
    )
    to = fields.cidr_field(
        label=_("Replacement CIDR"),
        required=False,
        widget=fields.with_free_cidrs(fields.addresses_text(placeholder="10.30.0.0/16"), 20),
        help_text=_(
            "Added to the pool in a separate step. Leave empty if the other CIDRs "
            "of the pool have enough free blocks."
        ),
    )
    reason = fields.reason_field(label=_("Reason"), required=False)

    def __init__(self, pool: Pool, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pool = pool
        cidrs = pool.cidrs.order_by("position")
        choices = [(str(row.cidr), str(row.cidr)) for row in cidrs]
        field: Any = self.fields["cidr"]
        field.choices = choices

    def plan(self) -> migrations.MigrationPlan:
        values = self.cleaned_data
        row = self.pool.cidrs.get(cidr=values["cidr"])
        return migrations.plan_migration(self.pool, row.cidr, span=values["range"], to=values["to"])


def begin(request: HttpRequest, pool: Pool) -> HttpResponse:
    """Show the form, then a preview; by POST with `_begin`, start the migration."""
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
            to = form.cleaned_data["to"]
            owner = overlaps.owner_of_pool(pool)
            accepted = form_fields.overlaps_accepted(form, [to] if to else [], owner)
            author = pages.author(request, form.cleaned_data["reason"] or "")
            with pages.errors_at_field(form):
                plan = form.plan()
                if "_begin" in request.POST and accepted:
                    return HttpResponseRedirect(
                        url_of(migrations.start_migration(plan, author=author))
                    )
                forecast = cidr_migration_forecast.forecast_migration(plan, author=author)
    return pages.page(
        request,
        "migration_begin.html",
        pool,
        title=gettext("Migrate a CIDR of %(pool)s") % {"pool": pool.name},
        form=form,
        forecast=forecast,
        findings=guides.with_titles(forecast.findings) if forecast else [],
    )


def _open_migration(pool: Pool, cidr: str) -> CIDRMigration | None:
    rows = CIDRMigration.objects.filter(pool=pool, ended_at=None, pool_cidr__isnull=False)
    return next((row for row in rows if str(row.cidr) == cidr), None)


def url_of(migration: CIDRMigration) -> str:
    return reverse("admin:pools_pool_migration", args=[migration.pool_id, migration.pk])


_MARKS = {
    "done": _("done"),
    "now": _("now"),
    "later": _("later"),
    "skipped": _("skipped"),
}


@dataclass(frozen=True)
class StepLine:
    """One step on the page. `mark` is done, now, later or skipped; `step` is that of its button."""

    mark: str
    title: str
    text: str
    step: MigrationStep | None = None
    button: str = ""
    drains: bool = False

    @property
    def mark_label(self) -> str:
        return str(_MARKS[self.mark])


def view(request: HttpRequest, pool: Pool, migration_id: int) -> HttpResponse:
    """Show the progress; by POST, take a step. Widening shows a forecast and needs a confirmation."""
    pages.require(request, "pools.view_pool")
    try:
        migration = migrations.get_migration(migration_id, pool_id=pool.pk)
    except errors.NotFound as error:
        raise Http404(error.message) from error
    forecast = None
    if request.method == "POST":
        pages.require(request, "pools.change_pool")
        step = _step(request.POST.get("step", ""))
        if step is MigrationStep.ABORT and not pages.is_confirmed(request):
            return _ask_to_abort(request, pool, migration)
        if step is not MigrationStep.WIDEN or pages.is_confirmed(request):
            return _take_step(request, migration, step)
        with pages.errors_as_messages(request):
            forecast = _forecast(migration, step, pages.author(request))
        if forecast is None:
            return HttpResponseRedirect(url_of(migration))
    progress = cidr_migration_progress.migration_progress(migration)
    return pages.page(
        request,
        "migration.html",
        pool,
        title=gettext("Migration of %(cidr)s") % {"cidr": migration.cidr},
        migration=migration,
        progress=progress,
        lines=_lines(migration, progress),
        can_abort=MigrationStep.ABORT in progress.steps,
        span=span_of(migration),
        whole=is_whole(migration),
        manifest=_manifest(migration, progress),
        waiting=pool_sync.conflicts_of_pool(pool),
        widening=forecast,
    )


def _ask_to_abort(request: HttpRequest, pool: Pool, migration: CIDRMigration) -> HttpResponse:
    effects = [
        gettext(
            "The reservation of this migration is removed, and new blocks are allocated again."
        ),
        gettext("A replacement CIDR that was added stays in the pool."),
    ]
    return pages.confirmation(
        request,
        pool,
        title=gettext("Cancel the migration of %(cidr)s?") % {"cidr": migration.cidr},
        effects=effects,
        button=gettext("Cancel migration"),
        back=url_of(migration),
    )


def _take_step(request: HttpRequest, migration: CIDRMigration, step: MigrationStep) -> HttpResponse:
    with pages.errors_as_messages(request):
        updated = migrations.take_step(migration.pk, step, author=pages.author(request))
        waits = step is MigrationStep.REMOVE and not updated.outcome
        message = _REMOVING_MESSAGE if waits else _MESSAGES[step]
        messages.success(request, message % {"old": updated.cidr, "new": updated.to})
    return HttpResponseRedirect(url_of(migration))


def _forecast(
    migration: CIDRMigration, step: MigrationStep, author: events.Author
) -> dict[str, Any]:
    """Return the forecast of a step for the confirmation. Raises the errors of the step."""
    plan = migrations.withholding_plan(migration.pk, step)
    forecast = cidr_migration_forecast.forecast_migration(plan, author=author)
    return {
        "forecast": forecast,
        "findings": guides.with_titles(forecast.findings),
        "reserves": list(migrations.unreserved_gaps(plan.cidr, plan.span)),
    }


def _step(word: str) -> MigrationStep:
    try:
        return MigrationStep(word)
    except ValueError as error:
        raise BadRequest(gettext("Unknown step.")) from error


_REMOVING_MESSAGE = _("%(old)s will be removed when the cluster no longer has it.")
_MESSAGES = {
    MigrationStep.ADD: _("%(new)s was added."),
    MigrationStep.RESERVE: _("Reserved: no new blocks are allocated from this range."),
    MigrationStep.WIDEN: _("The whole CIDR %(old)s is reserved now."),
    MigrationStep.REMOVE: _("%(old)s was removed."),
    MigrationStep.KEEP: _("The range stays reserved."),
    MigrationStep.ABORT: _("The migration was cancelled and the reservation was removed."),
}


def _lines(migration: CIDRMigration, progress: MigrationProgress) -> list[StepLine]:
    lines = [
        _reserve_line(migration, progress),
        _drain_line(progress),
        *_end_lines(migration, progress),
    ]
    if migration.to is not None:
        lines.insert(0, _add_line(migration, progress))
    return lines


def _add_line(migration: CIDRMigration, progress: MigrationProgress) -> StepLine:
    title = gettext("Add %(cidr)s") % {"cidr": migration.to}
    if progress.added:
        return StepLine(
            "done",
            title,
            gettext("Added. Its blocks are allocated after those of the other CIDRs."),
        )
    if progress.adding:
        return StepLine("now", title, gettext("Added in the register; not in the cluster yet."))
    text = gettext(
        "Optional now; can be done after reserving. Until then, allocations use the other "
        "free blocks of the pool."
    )
    return _pending_line(
        progress, MigrationStep.ADD, title, text, gettext("Add %(cidr)s") % {"cidr": migration.to}
    )


def _reserve_line(migration: CIDRMigration, progress: MigrationProgress) -> StepLine:
    reserved = migration.cidr if is_whole(migration) else span_of(migration)
    title = gettext("Reserve %(range)s") % {"range": reserved}
    if progress.status is MigrationStatus.PLANNED:
        text = gettext(
            "Stops new allocations. Blocks in use stay with their holders until they are released."
        )
        return _pending_line(progress, MigrationStep.RESERVE, title, text, gettext("Reserve"))
    if progress.status is MigrationStatus.ABORTED:
        return StepLine("skipped", title, gettext("The reservation was removed."))
    return StepLine("done", title, gettext("No new blocks are allocated here."))


def _drain_line(progress: MigrationProgress) -> StepLine:
    if progress.status is MigrationStatus.DRAINING:
        return StepLine(
            "now",
            gettext("Drain"),
            gettext("Waiting for the holders to release their blocks."),
            drains=True,
        )
    if progress.status is MigrationStatus.PLANNED:
        return StepLine("later", gettext("Drain"), "", drains=True)
    if progress.status is MigrationStatus.ABORTED:
        return StepLine("skipped", gettext("Drain"), "")
    return StepLine("done", gettext("Drain"), gettext("Drained."))


def _end_lines(migration: CIDRMigration, progress: MigrationProgress) -> list[StepLine]:
    if is_whole(migration):
        title = gettext("Remove %(cidr)s") % {"cidr": migration.cidr}
        if progress.status is MigrationStatus.REMOVED:
            return [StepLine("done", title, gettext("Removed from the pool."))]
        if progress.status is MigrationStatus.REMOVING:
            text = gettext("Removed in the register; still in the cluster.")
            return [StepLine("now", title, text)]
        text = gettext("Possible when no block is held or cooling.")
        return [_pending_line(progress, MigrationStep.REMOVE, title, text, title)]
    if progress.status is MigrationStatus.KEPT:
        return [StepLine("done", gettext("Keep it reserved"), gettext("The range stays reserved."))]
    return [
        _pending_line(
            progress,
            MigrationStep.KEEP,
            gettext("Keep it reserved"),
            gettext("Possible when the range is drained."),
            gettext("Finish"),
        ),
        _pending_line(
            progress,
            MigrationStep.WIDEN,
            gettext("Or migrate the whole CIDR %(cidr)s") % {"cidr": migration.cidr},
            gettext("Reserves the rest of the CIDR too."),
            gettext("Preview"),
        ),
    ]


def _pending_line(
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
    """Return the next manifest to apply, for a pool that follows its cluster."""
    if not progress.by_cluster:
        return ""
    try:
        return migrations.next_manifest(migration, progress)
    except errors.InvalidInput as error:
        return f"# {error.message}\n"


# --- the list of the fleet ------------------------------------------------------------------------


def _by_state(
    _request: HttpRequest, rows: QuerySet[CIDRMigration], state: str
) -> QuerySet[CIDRMigration]:
    """Return the migrations in a state: that of an open one follows from its blocks."""
    open_rows = CIDRMigration.objects.filter(ended_at=None).select_related(
        "pool", "pool_cidr__pool"
    )
    drains = progress.drains(list(open_rows))
    matching = [key for key, drain in drains.items() if drain.status.value == state]
    return rows.filter(pk__in=matching) | rows.filter(outcome=state)


def _source(migration: CIDRMigration) -> SafeString:
    whole = progress.is_whole(migration)
    text = migration.cidr if whole else progress.span_of(migration)
    return display.address(text, url_of(migration))


def _drain(migration: Any) -> SafeString:
    """Return the released blocks as a bar and as numbers."""
    shown = migration.shown_progress
    text = gettext("%(done)s of %(total)s blocks released") % {
        "done": display.digits(shown.done),
        "total": display.digits(shown.total),
    }
    return display.two_lines(
        display.share_bar(shown.done / shown.total if shown.total else 1), text
    )


@admin.register(CIDRMigration)
class MigrationAdmin(lists.ListAdmin[CIDRMigration]):
    list_display = (
        Column("cidr", _("from"), _source, ordering="cidr"),
        columns.address("to", _("to"), ordering="to"),
        Column("state", _("state"), lambda row: display.state(row.shown_progress.status.value)),
        Column("drain", _("drain"), _drain, ordering="in_use"),
        columns.related("pool", _("pool"), text="name", ordering="pool__name"),
        columns.related("pool.cluster", _("cluster"), ordering="pool__cluster__name"),
        columns.text("started_by", _("started by"), ordering="started_by"),
        columns.timestamp("started_at", _("since"), ordering="started_at"),
    )
    more_columns = (
        columns.text("reason", _("reason")),
        columns.timestamp("ended_at", _("ended"), ordering="ended_at"),
    )
    live_columns = ("state", "drain")
    list_filter = (
        filters.custom(
            _("state"),
            "state",
            lambda _request: [
                (status.value, display.state_label(status.value)) for status in MigrationStatus
            ],
            _by_state,
        ),
        cluster_filter("pool__cluster_id"),
        related.by_key(_("pool"), "pool", blocks.POOLS, "pool_id"),
    )
    exported = (
        "id", "pool.cluster.name", "pool.name", "cidr", "first", "last", "to", "in_use", "started_by",
        "started_at", "ended_at", "outcome", "reason",
    )  # fmt: skip
    search_help_text = _("CIDR, pool, user or reason")
    list_per_page = 50
    ordering = ("-id",)
    list_select_related = ("pool__cluster", "pool_cidr__pool__cluster")
    list_before_template = "cadastre/migrations_intro.html"
    empty_text = _("No migrations. Open a pool and choose Migrate beside the CIDR to retire.")
    row_pages = (
        Page("change", lambda _request, row: HttpResponseRedirect(url_of(row))),
        lists.history(lambda row: {"pool": row.pool_id}, "pools.view_event"),
    )

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        drains = progress.drains(rows)
        for row in rows:
            row.shown_progress = drains[row.pk]

    def has_view_permission(self, request: HttpRequest, obj: CIDRMigration | None = None) -> bool:
        return request.user.has_perm("pools.view_pool")

    def require_view(self, request: HttpRequest) -> None:
        pages.require(request, "pools.view_pool")
