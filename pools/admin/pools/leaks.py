"""Leaks: held blocks that no object refers to any more, and reclaiming them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.admin.clusters.field import cluster_filter
from pools.admin.pools import blocks
from pools.models import Leak, ReferenceFeed
from pools.platform.admin import columns, display, filters, forms as fields, lists, pages, related
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register.leaks import detection, reclaim as leak_reclaim, reports

MOST = 100  # blocks on one page
FEEDS = 20  # shown above the list
_KINDS = ("node", "instance", "env", "vm", "pod")


def _kind_choices(_request: HttpRequest) -> list[tuple[str, str]]:
    # Known and reported kinds: distinct kinds of all rows would cost a scan per page.
    reported_kinds = (
        ReferenceFeed.objects.order_by().values_list("holder_kind", flat=True).distinct()[:50]
    )
    return [(kind, kind) for kind in sorted({*_KINDS, *reported_kinds})]


def _source_choices(_request: HttpRequest) -> list[tuple[str, str]]:
    names = (detection.TOOLING, *(source.name for source in detection.SOURCES))
    return [(name, name) for name in names]


def _page(request: HttpRequest, row: Leak) -> HttpResponse:
    return pages.page(
        request,
        "leak.html",
        row,
        title=display.plain_cidr(row.block.cidr),
        why=reports.describe_observation(row),
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


def reclaim(request: HttpRequest) -> HttpResponse:
    """Show the holders; by POST, reclaim the blocks that are unchanged and show a result for each."""
    pages.require(request, "pools.view_leak", "pools.reclaim")
    form = fields.ReasonForm(request.POST or None)
    ids = lists.chosen_ids(request, MOST)
    if request.method == "POST" and form.is_valid():
        author = pages.author(request, form.cleaned_data["reason"])
        targets = [_shown_target(request, block_id) for block_id in ids]
        return _results(request, list(leak_reclaim.reclaim_all(targets, author=author)))
    # The posted form names leaks by their blocks.
    condition = {"block__in" if request.method == "POST" else "pk__in": ids}
    rows = detection.confirmed_leaks().filter(**condition)
    chosen = list(rows.select_related("block__pool__cluster", "cluster").order_by("id"))
    if not chosen:
        messages.warning(request, gettext("None of the selected blocks is leaked any more."))
        return HttpResponseRedirect(lists.list_url(request, "admin:pools_leak_changelist"))
    text = ngettext("Reclaim %(number)s block?", "Reclaim %(number)s blocks?", len(chosen))
    return pages.confirmation(
        request,
        Leak,
        title=text % {"number": display.digits(len(chosen))},
        button=gettext("Reclaim"),
        effects=_reclaim_effects(chosen),
        back=lists.list_url(request, "admin:pools_leak_changelist"),
        form=form,
        values=[pair for leak in chosen for pair in _shown_values(leak)],
        details="cadastre/leak_rows.html",
        leaks=chosen,
    )


def _reclaim_effects(leaks: Sequence[Leak]) -> list[str]:
    holders = len({(leak.holder_kind, leak.holder_id) for leak in leaks})
    text = ngettext(
        "%(number)s holder in %(clusters)s loses its addresses, even if it still exists; others can get"
        " them after the cooldown.",
        "%(number)s holders in %(clusters)s lose their addresses, even if they still exist; others can get"
        " them after the cooldown.",
        holders,
    )
    clusters = sorted({leak.cluster.name for leak in leaks})
    return [
        text % {"number": display.digits(holders), "clusters": ", ".join(clusters)},
        gettext(
            "A block is skipped if its holder was observed again or if it changed since this page was loaded."
        ),
        gettext("Reclaiming one address of an IPAMClaim releases all its addresses."),
    ]


def _shown_values(leak: Leak) -> list[tuple[str, object]]:
    since = f"holder-since-{leak.block_id}", leak.allocated_at.isoformat()
    return [*blocks.shown_values(leak.block_id, leak), since]


def _shown_target(request: HttpRequest, block_id: int) -> leak_reclaim.ReclaimTarget:
    """Return the block with the holder that the page showed."""
    holder, org = blocks.shown_holder(request, block_id)
    try:
        allocated_at = datetime.fromisoformat(request.POST.get(f"holder-since-{block_id}", ""))
    except ValueError:
        allocated_at = None
    # The page writes times with a zone; any other value is invalid.
    allocated_at = allocated_at if allocated_at is not None and allocated_at.tzinfo else None
    return leak_reclaim.ReclaimTarget(
        block_id, holder.kind, holder.id, holder.uid, org, allocated_at
    )


def _results(request: HttpRequest, results: Sequence[leak_reclaim.ReclaimResult]) -> HttpResponse:
    reclaimed = sum(not result.error for result in results)
    return pages.page(
        request,
        "leak_results.html",
        Leak,
        title=ngettext(
            "%(reclaimed)s of %(total)s block reclaimed",
            "%(reclaimed)s of %(total)s blocks reclaimed",
            len(results),
        )
        % {"reclaimed": reclaimed, "total": len(results)},
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


@admin.register(Leak)
class LeakAdmin(lists.ListAdmin[Leak]):
    list_display = (
        columns.timestamp("missed_at", _("unreferenced since")),
        columns.timestamp("allocated_at", _("held since")),
        columns.holder(),
        Column(
            "block",
            _("address or block"),
            lambda row: display.address(row.block.cidr, display.url_of(row)),
        ),
        columns.related("block.pool", _("pool"), text="name"),
        columns.related("cluster", _("cluster")),
        columns.text("source", _("source")),
        Column("reason", _("reason"), reports.describe_observation),
    )
    more_columns = (
        columns.text("holder_uid", _("holder UID")),
        columns.timestamp("confirmed_at", _("confirmed")),
        columns.number("observations", _("observations")),
    )
    list_filter = (
        filters.custom(
            _("state"),
            "state",
            {"leaked": _("leaked"), "suspected": _("suspected")},
            lambda _request, rows, state: rows.filter(confirmed_at__isnull=state == "suspected"),
            has_default=True,
        ),
        cluster_filter(),
        filters.by_value(_("holder type"), "kind", _kind_choices, "holder_kind"),
        filters.by_value(_("source"), "source", _source_choices),
        related.by_key(_("pool"), "pool", blocks.POOLS, "block__pool"),
    )
    # `ipam reclaim --from-report` reads this export.
    exported = (
        "block_id", "block.cidr", "block.pool.name", "cluster.name", "holder_kind", "holder_id",
        "holder_uid", "org", "env", "allocated_at", "missed_at", "observed_at", "observations",
        "confirmed_at", "source",
    )  # fmt: skip
    search_help_text = _("Holder, address or CIDR")
    ordering = ("id",)
    list_select_related = ("block__pool__cluster", "cluster")
    actions = (
        lists.action(
            "reclaim_selected", _("Reclaim"), "admin:pools_leak_reclaim", "pools.reclaim", most=MOST
        ),
    )
    list_before_template = "cadastre/leaks_intro.html"
    empty_text = _(
        "No leaks. A held block is a leak when two complete observations, some time apart, "
        "do not contain its holder: full syncs of a cluster, or complete inventory reports "
        "(POST /api/v1/references/)."
    )
    list_pages = (Page("reclaim", reclaim),)
    row_pages = (Page("change", _page),)
    missing = _(
        "This leak does not exist. Its holder may have been observed again, or its block was released."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Leak]:
        return detection.current_leaks()

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        feeds = ReferenceFeed.objects.select_related("cluster").order_by("-reported_at")
        may_view_feeds = request.user.has_perm("pools.view_referencefeed")
        return {"feeds": list(feeds[:FEEDS]) if may_view_feeds else []}
