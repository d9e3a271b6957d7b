"""Pending and ended allocation requests: list and page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from pools.admin.pools import pools
from pools.models import AllocationRequest, Block
from pools.models.blocks import LIVE
from pools.models.requests import RequestState
from pools.platform.admin import display, lists, pages
from pools.register.allocator import requests


class RequestStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in RequestState.choices]

    def queryset(
        self, request: HttpRequest, rows: QuerySet[AllocationRequest]
    ) -> QuerySet[AllocationRequest]:
        return rows.filter(state=self.value()) if self.value() else rows


class RequestClusterFilter(pools.PoolClusterFilter):
    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(pool__cluster_id=self.selected_id()) if self.value() else rows


@admin.register(AllocationRequest)
class RequestAdmin(lists.ReadOnlyAdmin[AllocationRequest]):
    list_display = (
        "shown_holder",
        "shown_state",
        "shown_pool",
        "org",
        "env",
        "shown_age",
        "shown_next",
        "attempts",
        "last_error",
    )
    list_display_links = None
    list_filter = (RequestStateFilter, RequestClusterFilter)
    exported = (
        "id",
        "pool.cluster.name",
        "pool.name",
        "holder_kind",
        "holder_id",
        "org",
        "env",
        "state",
        "attempts",
        "created_at",
        "next_try_at",
        "ended_at",
        "last_error",
    )
    search_fields = ("holder_id", "env", "org")
    search_help_text = _("Holder, environment or organization")
    ordering = ("-id",)
    sortable_by = ()
    paginator = lists.BoundedPaginator
    actions = ("cancel",)
    list_before_template = "cadastre/requests_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[AllocationRequest]:
        return super().get_queryset(request).select_related("pool__cluster")

    @admin.display(description=_("holder"))
    def shown_holder(self, row: AllocationRequest) -> SafeString:
        return display.row_link(row, f"{row.holder_kind} {row.holder_id}")

    @admin.display(description=_("state"))
    def shown_state(self, row: AllocationRequest) -> SafeString:
        return display.state(row.state)

    @admin.display(description=_("pool"))
    def shown_pool(self, row: AllocationRequest) -> SafeString:
        return display.row_link(row.pool)

    @admin.display(description=_("waiting since"))
    def shown_age(self, row: AllocationRequest) -> SafeString:
        return display.timestamp(row.created_at)

    @admin.display(description=_("next attempt"))
    def shown_next(self, row: AllocationRequest) -> SafeString:
        return (
            display.timestamp(row.next_try_at)
            if row.state == RequestState.PENDING
            else display.DASH
        )

    def has_allocate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.allocate")

    @admin.action(description=_("Cancel"), permissions=["allocate"])
    def cancel(self, request: HttpRequest, rows: QuerySet[AllocationRequest]) -> None:
        pending = list(rows.filter(state=RequestState.PENDING))
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

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_allocationrequest")
        row = self.get_queryset(request).filter(pk=lists.parse_id(object_id)).first()
        if row is None:
            raise Http404(gettext("This request does not exist."))
        demand = requests.demand_from_json(row.demand)
        blocks = Block.objects.filter(pk__in=row.block_ids, state__in=LIVE)
        return pages.page(
            request,
            "request.html",
            title=str(row),
            opts=AllocationRequest._meta,
            original=row,
            row=row,
            pending=row.state == RequestState.PENDING,
            count=max(demand.count, len(demand.holders)),
            exact=demand.cidr,
            blocks=blocks.select_related("pool__cluster"),
            call=f"requests/{row.pk}/",
        )
