"""Leaks: held blocks that no object refers to any more, and reclaiming them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import sync_runs
from pools.admin.pools import blocks
from pools.models import Block, Leak, ReferenceFeed
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields
from pools.register.leaks import detection, listing
from pools.register.leaks import reclaim as leak_reclaim

MOST = 100  # blocks on one page
FEEDS = 20  # shown above the list
_KINDS = ("node", "instance", "env", "vm", "pod")


class LeakStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("leaked", gettext("leaked")), ("suspected", gettext("suspected"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Leak]) -> QuerySet[Leak]:
        return rows.filter(confirmed_at__isnull=self.value() == "suspected")


class LeakHolderTypeFilter(lists.ChoiceFilter):
    title = _("holder type")
    parameter_name = "kind"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        # Known and reported kinds: distinct kinds of all rows would cost a scan per page.
        reported_kinds = (
            ReferenceFeed.objects.order_by().values_list("holder_kind", flat=True).distinct()[:50]
        )
        return [(kind, kind) for kind in sorted({*_KINDS, *reported_kinds})]

    def queryset(self, request: HttpRequest, rows: QuerySet[Leak]) -> QuerySet[Leak]:
        return rows.filter(holder_kind=self.value()) if self.value() else rows


class LeakSourceFilter(lists.ChoiceFilter):
    title = _("source")
    parameter_name = "source"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [
            (name, name)
            for name in (detection.TOOLING, *(source.name for source in detection.SOURCES))
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Leak]) -> QuerySet[Leak]:
        return rows.filter(source=self.value()) if self.value() else rows


class LeakPoolFilter(blocks.BlockPoolFilter):
    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(block__pool=self.selected_id()) if self.value() else rows


@admin.register(Leak)
class LeakAdmin(lists.ReadOnlyAdmin[Leak]):
    list_display = (
        "shown_age",
        "shown_held",
        "shown_holder",
        "shown_block",
        "shown_pool",
        "shown_cluster",
        "shown_source",
        "shown_why",
    )
    list_display_links = None
    list_filter = (
        LeakStateFilter,
        sync_runs.RunClusterFilter,
        LeakHolderTypeFilter,
        LeakSourceFilter,
        LeakPoolFilter,
    )
    # `ipam reclaim --from-report` reads this export.
    exported = (
        "block_id",
        "block.cidr",
        "block.pool.name",
        "cluster.name",
        "holder_kind",
        "holder_id",
        "holder_uid",
        "org",
        "env",
        "allocated_at",
        "missed_at",
        "observed_at",
        "observations",
        "confirmed_at",
        "source",
    )
    search_fields = ("holder_id",)
    search_help_text = _("Holder, address or CIDR")
    ordering = ("id",)
    sortable_by = ()
    paginator = lists.BoundedPaginator
    actions = ("reclaim_selected",)
    list_before_template = "cadastre/leaks_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Leak]:
        return detection.current_leaks().select_related("block__pool__cluster", "cluster")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Leak], search_term: str
    ) -> tuple[QuerySet[Leak], bool]:
        if not search_term.strip():
            return queryset, False
        held_blocks = blocks.filter_blocks(Block.objects.filter(state="held"), search_term)
        return queryset.filter(block__in=held_blocks), False

    @admin.display(description=_("unreferenced since"))
    def shown_age(self, row: Leak) -> SafeString:
        return display.timestamp(row.missed_at)

    @admin.display(description=_("held since"))
    def shown_held(self, row: Leak) -> SafeString:
        return display.timestamp(row.allocated_at)

    @admin.display(description=_("holder"))
    def shown_holder(self, row: Leak) -> SafeString:
        return display.holder(row.holder_kind, row.holder_id)

    @admin.display(description=_("address or block"))
    def shown_block(self, row: Leak) -> SafeString:
        return display.address(row.block.cidr, display.url_of(row))

    @admin.display(description=_("pool"))
    def shown_pool(self, row: Leak) -> SafeString:
        return display.row_link(row.block.pool, row.block.pool.name)

    @admin.display(description=_("cluster"))
    def shown_cluster(self, row: Leak) -> SafeString:
        return display.row_link(row.cluster)

    @admin.display(description=_("source"))
    def shown_source(self, row: Leak) -> str:
        return row.source

    @admin.display(description=_("reason"))
    def shown_why(self, row: Leak) -> str:
        return listing.describe_observation(row)

    # --- reclaiming -------------------------------------------------------------------------------

    def has_reclaim_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.reclaim")

    @admin.action(description=_("Reclaim"), permissions=["reclaim"])
    def reclaim_selected(self, request: HttpRequest, rows: QuerySet[Leak]) -> HttpResponse:
        ids = list(rows.values_list("pk", flat=True)[: MOST + 1])
        if len(ids) > MOST:
            messages.warning(
                request,
                ngettext(
                    "Only the first selected block is shown.",
                    "Only the first %(number)s selected blocks are shown.",
                    MOST,
                )
                % {"number": MOST},
            )
        return lists.action_page(request, "admin:pools_leak_reclaim", id=ids[:MOST])

    def get_urls(self) -> list[URLPattern]:
        reclaim_url = path("reclaim/", pages.in_admin(reclaim), name="pools_leak_reclaim")
        return [reclaim_url, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        feeds = ReferenceFeed.objects.select_related("cluster").order_by("-reported_at")
        may_view_feeds = request.user.has_perm("pools.view_referencefeed")
        more = {"feeds": list(feeds[:FEEDS]) if may_view_feeds else [], **(extra_context or {})}
        return super().changelist_view(request, more)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_leak")
        row = self.get_queryset(request).filter(pk=lists.parse_id(object_id)).first()
        if row is None:
            raise Http404(
                gettext(
                    "This leak does not exist. Its holder may have been observed again, or "
                    "its block was released."
                )
            )
        return pages.page(
            request,
            "leak.html",
            title=display.plain_cidr(row.block.cidr),
            opts=Leak._meta,
            original=row,
            row=row,
            why=listing.describe_observation(row),
            state=state(row),
            call=f"leaks/?holder_kind={row.holder_kind}&holder_id={row.holder_id}",
        )


def state(row: Leak) -> SafeString:
    """Return the state leaked or suspected; the tooltip explains it."""
    if row.confirmed_at:
        return display.state(
            "leaked",
            gettext(
                "Two complete observations, one grace period apart, did not contain the holder."
            ),
        )
    return display.state(
        "suspected",
        gettext(
            "The next complete observation after the grace period confirms or clears the suspicion."
        ),
    )


class ReclaimForm(forms.Form):
    reason = fields.reason_field(label=_("Reason"))


def reclaim(request: HttpRequest) -> HttpResponse:
    """Show the holders; by POST, reclaim the blocks that are unchanged and show a result for each."""
    pages.require(request, "pools.view_leak", "pools.reclaim")
    form = ReclaimForm(request.POST or None)
    raw_ids = request.POST.getlist("id") or request.GET.getlist("id")
    if request.method == "POST" and form.is_valid():
        author = pages.author(request, form.cleaned_data["reason"])
        targets = [_shown_target(request, lists.parse_id(text)) for text in raw_ids[:MOST]]
        return _results(request, list(leak_reclaim.reclaim_all(targets, author=author)))
    if request.method == "POST":  # the posted form names leaks by their blocks
        chosen = _select_leaks(
            detection.confirmed_leaks().filter(block__in=map(lists.parse_id, raw_ids[:MOST]))
        )
    else:
        chosen = _select_leaks(
            detection.confirmed_leaks().filter(pk__in=map(lists.parse_id, raw_ids[:MOST]))
        )
    if not chosen:
        messages.warning(request, gettext("None of the selected blocks is leaked any more."))
        return HttpResponseRedirect(lists.list_url(request, "admin:pools_leak_changelist"))
    return pages.page(
        request,
        "leak_reclaim.html",
        title=gettext("Reclaim these blocks?")
        if len(chosen) > 1
        else gettext("Reclaim this block?"),
        opts=Leak._meta,
        form=form,
        chosen=chosen,
        holders=len({(leak.holder_kind, leak.holder_id) for leak in chosen}),
        clusters=sorted({leak.cluster.name for leak in chosen}),
    )


def _select_leaks(rows: QuerySet[Leak]) -> list[Leak]:
    return list(rows.select_related("block__pool__cluster", "cluster").order_by("id"))


def _shown_target(request: HttpRequest, block_id: int) -> leak_reclaim.ReclaimTarget:
    """Return the block with the holder that the page showed."""
    parts = ("kind", "id", "uid", "org", "since")
    kind, name, uid, org, since = (
        request.POST.get(f"holder-{part}-{block_id}", "") for part in parts
    )
    try:
        allocated_at = datetime.fromisoformat(since)
    except ValueError:
        allocated_at = None
    # The page writes times with a zone; any other value is invalid.
    allocated_at = allocated_at if allocated_at is not None and allocated_at.tzinfo else None
    return leak_reclaim.ReclaimTarget(block_id, kind, name, uid, org, allocated_at)


def _results(request: HttpRequest, results: Sequence[leak_reclaim.ReclaimResult]) -> HttpResponse:
    reclaimed = sum(not result.error for result in results)
    return pages.page(
        request,
        "leak_results.html",
        title=ngettext(
            "%(reclaimed)s of %(total)s block reclaimed",
            "%(reclaimed)s of %(total)s blocks reclaimed",
            len(results),
        )
        % {"reclaimed": reclaimed, "total": len(results)},
        opts=Leak._meta,
        rows=[_result_row(result) for result in results],
    )


def _result_message(result: leak_reclaim.ReclaimResult) -> str:
    if result.error:
        return pages.sentence(result.error.message)
    if result.repeated:
        return gettext("The block was already released.")
    return gettext("The block is in cooldown.")


def _result_row(result: leak_reclaim.ReclaimResult) -> dict[str, Any]:
    return {
        "id": result.target.block_id,
        "cidr": display.plain_cidr(result.block["cidr"]) if result.block else "",
        "kind": result.target.kind,
        "holder": result.target.id,
        "state": display.state("refused" if result.error else "succeeded"),
        "message": _result_message(result),
    }
