"""Held and cooling blocks: list, filters, search, and the page of a block."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters.field import CLUSTERS
from pools.admin.pools import block_actions
from pools.admin.register_imports.display import imported_facts
from pools.core import addresses
from pools.models import AddressSpace, Block, BlockEvent, Event, Pool
from pools.models.blocks import LIVE, BlockState
from pools.models.pools import Category
from pools.platform.admin import (
    columns,
    display,
    filters,
    large_tables,
    lists,
    pages,
    related,
    search_text,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import block_lists, dns
from pools.register.history import addresses as history_addresses
from pools.register.imports import records
from pools.register.leaks import detection

POOLS = related.RelatedRows(lambda _request: Pool.objects.all(), ("cluster__name", "name"))


def _by_pool(_request: HttpRequest, rows: QuerySet[Block], value: str) -> QuerySet[Block]:
    return block_lists.filter_by_pool(rows, lists.parse_id(value))


# Blocks have no index for a column of their pools: this filter selects the pools first.
def _by_category(_request: HttpRequest, rows: QuerySet[Block], value: str) -> QuerySet[Block]:
    pools = Pool.objects.filter(category=value).values_list("pk", flat=True)
    return rows.filter(pool__in=list(pools))


def _by_cluster(_request: HttpRequest, rows: QuerySet[Block], value: str) -> QuerySet[Block]:
    return block_lists.filter_by_cluster(rows, lists.parse_id(value))


def _since(block: Block) -> SafeString:
    held = block.state == BlockState.HELD
    return display.timestamp(block.allocated_at if held else block.released_at)


def filter_blocks(rows: QuerySet[Block], text: str) -> QuerySet[Block]:
    """Return the blocks of an address, CIDR (inside or around it), environment, or holder.

    Holders of this name, else those whose names begin with the text, else those whose names or addresses contain it.
    """
    searched = search_text.parse(text)
    if searched.network is None:
        org, slash, env = searched.text.partition("/")
        tenant = Q(env=searched.text) | (Q(org=org, env=env) if slash else Q())
        exact = rows.filter(Q(holder_id=searched.text) | tenant)
        if exact.exists():
            return exact
        # A range, because LIKE uses an index only with some collations.
        beginning = rows.filter(
            holder_id__gte=searched.text,
            holder_id__lt=f"{searched.text}\U0010fffd",
            holder_id__startswith=searched.text,
        )
        if beginning.exists():
            return beginning
        # This one reads all blocks: 0.1 s for a million.
        named = Q(holder_id__contains=searched.text)
        part = searched.part
        return search_text.containing(rows, part, named) if part else rows.filter(named)
    found = overlapping(rows, searched.network)
    if searched.part and searched.address is None and not found.exists():
        return search_text.containing(rows, searched.part)
    return found


def overlapping(rows: QuerySet[Block], network: addresses.Network) -> QuerySet[Block]:
    """Return the blocks that contain the network (exact values) or lie in it (a range)."""
    family = network.version
    sizes = Pool.objects.values_list(f"mask_size_v{family}", flat=True).distinct()
    around = [
        str(ip_network((network.network_address, size), strict=False))
        for size in sizes
        if size is not None and size <= network.prefixlen
    ]
    last = f"{network.broadcast_address}/{network.max_prefixlen}"
    inside = Q(cidr__gte=str(network), cidr__lte=last)
    condition = Q(cidr__in=around) | inside if around else inside
    spaces = list(AddressSpace.objects.values_list("pk", flat=True))  # the index begins with them
    return rows.filter(condition, space_id__in=spaces)


def block_page(request: HttpRequest, block: Block) -> HttpResponse:
    address = block.cidr.network_address
    _, tenures = history_addresses.find_holders(address, cluster_id=block.pool.cluster_id)
    events = BlockEvent.objects.filter(cidr=str(block.cidr), space_id=block.space_id)
    ids = list(events.order_by("-pgh_id").values_list("pgh_id", flat=True)[:50])
    return pages.page(
        request,
        "block.html",
        block,
        title=display.plain_cidr(block.cidr),
        call=f"blocks/{block.pk}/",
        held=block.state == BlockState.HELD,
        is_address=block.cidr.prefixlen == block.cidr.max_prefixlen,
        dns_name=dns.name_of(block),
        imported=list(imported_facts(records.record_of(block.pk))),
        leak=detection.confirmed_leaks().filter(block=block).first(),
        tenures=[tenure for tenure in tenures if tenure.block == str(block.cidr)],
        events=Event.objects.filter(pk__in=ids).order_by("-id"),
    )


class BlockList(large_tables.BoundedList):
    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Block]) -> list[Any]:
        """Order by address space and address, ascending or descending, as the index does."""
        backwards = str(self.params.get(ORDER_VAR, "")).startswith("-")
        return ["-space_id", "-cidr"] if backwards else ["space_id", "cidr"]


@admin.register(Block)
class BlockAdmin(lists.ListAdmin[Block]):
    list_display = (
        Column(
            "cidr",
            _("address or block"),
            lambda block: display.address(block.cidr, display.url_of(block)),
            ordering="cidr",
        ),
        columns.holder(),
        columns.state("state", _("state")),
        Column("since", _("since"), _since),
        columns.timestamp("available_from", _("until")),
        columns.related("pool", _("pool"), text="name"),
        columns.related("pool.cluster", _("cluster")),
        "org",
        "env",
    )
    more_columns = (
        columns.text("holder_uid", _("holder UID")),
        columns.timestamp("allocated_at", _("allocated")),
        columns.timestamp("released_at", _("released")),
        Column("withheld", _("withheld"), lambda block: _("yes") if block.withheld else _("no")),
    )
    list_filter = (
        filters.by_value(_("state"), "state", {state: state.label for state in LIVE}),
        filters.custom(_("category"), "category", Category, _by_category),
        related.by_row(_("cluster"), "cluster", CLUSTERS, _by_cluster),
        related.by_row(_("pool"), "pool", POOLS, _by_pool),
    )
    exported = (
        "cidr", "holder_kind", "holder_id", "holder_uid", "state", "withheld", "allocated_at",
        "released_at", "available_from", "pool.name", "pool.cluster.name", "org", "env",
    )  # fmt: skip
    search_fields = ("holder_id",)
    search_help_text = _("Address, CIDR, holder or environment")
    ordering = ("space_id", "cidr")
    actions = (
        lists.action(
            "release_selected", _("Release"), "admin:pools_block_release", "pools.allocate"
        ),
        lists.action(
            "end_cooldown_selected",
            _("End cooldown"),
            "admin:pools_block_end_cooldown",
            "pools.force_release",
        ),
    )
    list_before_template = "cadastre/blocks_intro.html"
    empty_text = _("No blocks allocated yet. Open a pool and allocate one, or use the API.")
    changelist = BlockList
    list_pages = (
        Page("release", block_actions.release),
        Page("end_cooldown", block_actions.end_cooldown, path="end-cooldown"),
    )
    row_pages = (
        Page("change", block_page),
        Page("dns_name", block_actions.edit_name, "pools.allocate", path="dns-name"),
        Page("history", lambda _request, block: HttpResponseRedirect(display.url_of(block))),
    )
    missing = _("This block is not allocated.")
    search = staticmethod(filter_blocks)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Block]:
        # Available rows of the allocator's window have no holder.
        rows = super().get_queryset(request).filter(state__in=LIVE)
        return rows.prefetch_related("pool__cluster")

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"estimated": large_tables.estimated_rows(Block)}
