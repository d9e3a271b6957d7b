"""Held and cooling blocks: list, filters, search, and the page of a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Greatest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.admin import time_bars
from pools.admin.clusters.field import CLUSTERS, tenant_filters
from pools.admin.pools import block_actions
from pools.core import addresses
from pools.core.register_import import attributes
from pools.models import LIVE, AddressSpace, Block, BlockEvent, BlockState, Category, Event, Pool
from pools.platform.admin import (
    columns,
    display,
    filters,
    large_tables,
    lists,
    pages,
    related,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import block_lists, dns
from pools.register.history import addresses as history_addresses
from pools.register.imports import rows as import_rows
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
    tenures = [tenure for tenure in tenures if tenure.block == str(block.cidr)]
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
        imported=list(imported_facts(import_rows.record_of(block))),
        leak=detection.confirmed_leaks().filter(block=block).first(),
        tenures=tenures,
        bar=time_bars.of_tenures(request, tenures),
        events=Event.objects.filter(pk__in=ids).order_by("-id"),
    )


class BlockList(large_tables.BoundedList):
    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Block]) -> list[Any]:
        """Order addresses within their address space, as the index does."""
        order = super().get_ordering(request, queryset)
        if order[0] in {"cidr", "-cidr"}:
            sign = order[0].removesuffix("cidr")
            return [f"{sign}space_id", f"{sign}cidr"]
        return order


@admin.register(Block)
class BlockAdmin(lists.ListAdmin[Block]):
    list_display = (
        Column(
            "cidr",
            _("address or block"),
            lambda block: display.address(block.cidr, display.url_of(block)),
            ordering="cidr",
        ),
        columns.holder(ordering="holder_id"),
        columns.state("state", _("state"), ordering="state"),
        Column("since", _("since"), _since, ordering=Greatest("allocated_at", "released_at")),
        columns.timestamp("available_from", _("until"), ordering="available_from"),
        columns.related("pool", _("pool"), text="name", ordering="pool__name"),
        columns.related("pool.cluster", _("cluster"), ordering="pool__cluster__name"),
        "org",
        "env",
    )
    found_columns = ("cidr", "holder", "state", "since", "pool", "cluster", "org", "env")
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
        *tenant_filters(),
    )
    sortable_by = ("org", "env")
    exported = (
        "cidr", "holder_kind", "holder_id", "holder_uid", "state", "withheld", "allocated_at",
        "released_at", "available_from", "pool.name", "pool.cluster.name", "org", "env",
    )  # fmt: skip
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[Block]:
        # Available rows of the allocator's window have no holder.
        rows = super().get_queryset(request).filter(state__in=LIVE)
        return rows.prefetch_related("pool__cluster")


# --- what an imported register says about an address ----------------------------------------------

# Of the details that an import keeps beside an object (core/register_import/parsing.py).
_KEPT: dict[str, StrOrPromise] = {
    "status": _("Status"),
    "role": _("Role"),
    "dns_name": _("DNS name"),
    "tenant": _("Tenant"),
    "owner": _("Owner"),
    "vrf": "VRF",
    "site": _("Site"),
    "vlan": "VLAN",
    "mac": _("MAC address"),
    "interface": _("Interface"),
    "device": _("Device"),
    "note": _("Note"),
}


def imported_facts(record: Mapping[str, Any] | None) -> Iterator[tuple[StrOrPromise, str]]:
    """Yield (label, text) of what an imported register says about an address."""
    if record is None:
        return
    if record["description"]:
        yield _("Description"), record["description"]
    yield from (
        (label, record["details"][name])
        for name, label in _KEPT.items()
        if name in record["details"]
    )
    yield from attribute_facts(record["details"])


def attribute_facts(details: Mapping[str, str]) -> Iterator[tuple[StrOrPromise, str]]:
    """Yield (label, text) of the tags and custom fields of an imported register."""
    if tags := details.get("tags"):
        yield _("Tags"), tags.replace(",", ", ")
    for name in filter(attributes.is_custom, details):
        yield name.removeprefix(attributes.PREFIX), details[name]
