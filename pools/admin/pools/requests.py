"""Pending and ended allocation requests: list and page."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.admin.clusters.field import cluster_filter, tenant_filters
from pools.admin.pools import blocks as block_list
from pools.models import LIVE, AllocationRequest, Block, RequestState
from pools.platform.admin import columns, display, filters, lists, pages, related
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register.allocator import requests


def _next_try(row: AllocationRequest) -> SafeString:
    return display.next_time(row.next_try_at if row.state == RequestState.PENDING else None)


def _page(request: HttpRequest, row: AllocationRequest) -> HttpResponse:
    demand = requests.demand_from_json(row.demand)
    blocks = Block.objects.filter(pk__in=row.block_ids, state__in=LIVE)
    pending = row.state == RequestState.PENDING
    return pages.page(
        request,
        "request.html",
        row,
        title=str(row),
        pending=pending,
        end_cooldown=block_list.end_cooldown_url(request, row.pool) if pending else "",
        count=max(demand.count, len(demand.holders)),
        exact=demand.cidr,
        blocks=blocks.select_related("pool__cluster"),
        call=f"requests/{row.pk}/",
    )


@admin.register(AllocationRequest)
class RequestAdmin(lists.ListAdmin[AllocationRequest]):
    row_name, row_names = _("request"), _("requests")
    list_display = (
        Column(
            "holder",
            _("holder"),
            lambda row: display.row_link(row, f"{row.holder_kind} {row.holder_id}"),
        ),
        columns.state("state", _("state"), ordering="state"),
        columns.related("pool", _("pool"), ordering="pool__name"),
        "org",
        "env",
        columns.timestamp("created_at", _("waiting since"), ordering="created_at"),
        Column("next_try_at", _("next attempt"), _next_try),
        "last_error",
    )
    list_filter = (
        filters.by_value(_("state"), "state", RequestState),
        cluster_filter("pool__cluster_id"),
        related.by_key(_("pool"), "pool", block_list.POOLS, "pool_id"),
        *tenant_filters(),
    )
    sortable_by = ("org", "env")
    exported = (
        "id", "pool.cluster.name", "pool.name", "holder_kind", "holder_id", "org", "env", "state",
        "attempts", "created_at", "next_try_at", "ended_at", "last_error",
    )  # fmt: skip
    search_help_text = _("Holder, environment or organization")
    ordering = ("-id",)
    list_select_related = ("pool__cluster",)
    actions = ("cancel",)
    list_before_template = "cadastre/requests_intro.html"
    empty_text = _("No pending requests.")
    row_pages = (Page("change", _page),)

    def has_allocate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.allocate")

    @admin.action(description=_("Cancel"), permissions=["allocate"])
    def cancel(
        self, request: HttpRequest, rows: QuerySet[AllocationRequest]
    ) -> HttpResponse | None:
        pending = list(rows.filter(state=RequestState.PENDING))
        if pending and not pages.is_confirmed(request):
            number = {"number": len(pending)}
            text = ngettext(
                "Cancel %(number)s request?", "Cancel %(number)s requests?", len(pending)
            )
            effect = gettext("%(request)s gets no block when one becomes free.")
            return pages.confirmation(
                request,
                AllocationRequest,
                title=text % number,
                effects=[effect % {"request": row} for row in pending],
                button=gettext("Cancel the request"),
                back=display.url_of(pending[0]) if len(pending) == 1 else request.get_full_path(),
            )
        for row in pending:
            with pages.errors_as_messages(request):
                requests.cancel(row.pk, author=pages.author(request))
        messages.success(
            request,
            ngettext(
                "%(number)s pending request was cancelled.",
                "%(number)s pending requests were cancelled.",
                len(pending),
            )
            % {"number": len(pending)},
        )
        return None
