"""The CIDR migrations of the fleet: list, filters and the drain of each."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters.field import cluster_filter
from pools.admin.pools import blocks, cidr_migrations
from pools.cidr_migrations import progress
from pools.cidr_migrations.progress import MigrationStatus
from pools.models import CIDRMigration
from pools.platform.admin import columns, display, filters, lists, pages, related
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page


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
    return display.address(text, cidr_migrations.url_of(migration))


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
        Page("change", lambda _request, row: HttpResponseRedirect(cidr_migrations.url_of(row))),
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
