"""Held and cooling blocks: list, filters, search, and the page of a block."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.pools import block_actions, pools
from pools.core import addresses
from pools.models import AddressSpace, Block, BlockEvent, Event, Pool
from pools.models.blocks import LIVE, BlockState
from pools.platform.admin import display, lists, pages, search_text
from pools.register import block_lists
from pools.register.history import addresses as history_addresses
from pools.register.leaks import detection


class BlockPoolFilter(lists.ChoiceFilter):
    title = _("pool")
    parameter_name = "pool"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        pools_by_name = Pool.objects.order_by("cluster__name", "name").values_list(
            "pk", "cluster__name", "name"
        )
        return [(str(pk), f"{cluster}/{name}") for pk, cluster, name in pools_by_name]

    def queryset(self, request: HttpRequest, rows: QuerySet[Block]) -> QuerySet[Block]:
        return block_lists.filter_by_pool(rows, self.selected_id()) if self.value() else rows


class _ByPools(lists.ChoiceFilter):
    """A filter by a column of pools: selects the pools first, since blocks have no index for it."""

    def queryset(self, request: HttpRequest, rows: QuerySet[Block]) -> QuerySet[Block]:
        if not self.value():
            return rows
        return rows.filter(pool_id__in=list(self.pools().values_list("pk", flat=True)))

    def pools(self) -> QuerySet[Pool]:
        raise NotImplementedError


class BlockClusterFilter(_ByPools):
    title = _("cluster")
    parameter_name = "cluster"

    options = pools.PoolClusterFilter.options

    def pools(self) -> QuerySet[Pool]:
        return Pool.objects.filter(cluster_id=self.selected_id())


class BlockCategoryFilter(_ByPools):
    title = _("category")
    parameter_name = "category"

    options = pools.PoolCategoryFilter.options

    def pools(self) -> QuerySet[Pool]:
        return Pool.objects.filter(category=self.value())


class BlockStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(str(state), str(state.label)) for state in LIVE]

    def queryset(self, request: HttpRequest, rows: QuerySet[Block]) -> QuerySet[Block]:
        return rows.filter(state=self.value()) if self.value() else rows


class BlockList(lists.BoundedList):
    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Block]) -> list[Any]:
        """Order by address space and address, ascending or descending, as the index does."""
        backwards = str(self.params.get(ORDER_VAR, "")).startswith("-")
        return ["-space_id", "-cidr"] if backwards else ["space_id", "cidr"]


@admin.register(Block)
class BlockAdmin(lists.ReadOnlyAdmin[Block]):
    list_display = (
        "shown_cidr",
        "shown_holder",
        "shown_state",
        "shown_since",
        "shown_until",
        "shown_pool",
        "shown_cluster",
        "org",
        "env",
    )
    list_display_links = None
    list_filter = (BlockStateFilter, BlockCategoryFilter, BlockClusterFilter, BlockPoolFilter)
    exported = (
        "cidr",
        "holder_kind",
        "holder_id",
        "holder_uid",
        "state",
        "withheld",
        "allocated_at",
        "released_at",
        "available_from",
        "pool.name",
        "pool.cluster.name",
        "org",
        "env",
    )
    search_fields = ("holder_id",)
    search_help_text = _("Address, CIDR, holder or environment")
    ordering = ("space_id", "cidr")
    sortable_by = ("shown_cidr",)
    paginator = lists.BoundedPaginator
    actions = ("release_selected", "end_cooldown_selected")
    list_before_template = "cadastre/blocks_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Block]:
        # Available rows of the allocator's window have no holder.
        rows = super().get_queryset(request).filter(state__in=LIVE)
        return rows.prefetch_related("pool__cluster")

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return BlockList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Block], search_term: str
    ) -> tuple[QuerySet[Block], bool]:
        return filter_blocks(queryset, search_term) if search_term else queryset, False

    @admin.display(description=_("address or block"), ordering="cidr")
    def shown_cidr(self, block: Block) -> SafeString:
        return display.address(block.cidr, display.url_of(block))

    @admin.display(description=_("holder"))
    def shown_holder(self, block: Block) -> SafeString:
        return display.holder(block.holder_kind, block.holder_id)

    @admin.display(description=_("state"))
    def shown_state(self, block: Block) -> SafeString:
        return display.state(block.state)

    @admin.display(description=_("since"))
    def shown_since(self, block: Block) -> SafeString:
        held = block.state == BlockState.HELD
        return display.timestamp(block.allocated_at if held else block.released_at)

    @admin.display(description=_("until"))
    def shown_until(self, block: Block) -> SafeString:
        return display.timestamp(block.available_from)

    @admin.display(description=_("pool"))
    def shown_pool(self, block: Block) -> SafeString:
        return display.row_link(block.pool, block.pool.name)

    @admin.display(description=_("cluster"))
    def shown_cluster(self, block: Block) -> SafeString:
        return display.row_link(block.pool.cluster)

    # --- actions and pages ------------------------------------------------------------------------

    def has_allocate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.allocate")

    def has_force_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.force_release")

    @admin.action(description=_("Release"), permissions=["allocate"])
    def release_selected(self, request: HttpRequest, rows: QuerySet[Block]) -> HttpResponse:
        return _action_page(request, rows, "release")

    @admin.action(description=_("End cooldown"), permissions=["force"])
    def end_cooldown_selected(self, request: HttpRequest, rows: QuerySet[Block]) -> HttpResponse:
        return _action_page(request, rows, "end_cooldown")

    def get_urls(self) -> list[URLPattern]:
        urls = [
            path("release/", pages.in_admin(block_actions.release), name="pools_block_release"),
            path(
                "end-cooldown/",
                pages.in_admin(block_actions.end_cooldown),
                name="pools_block_end_cooldown",
            ),
        ]
        return urls + super().get_urls()

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_block")
        number = lists.parse_id(object_id)
        block = self.get_queryset(request).filter(pk=number).first()
        if block is None:
            raise Http404(gettext("This block is not allocated."))
        return block_page(request, block)

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_block")
        return HttpResponseRedirect(reverse("admin:pools_block_change", args=[object_id]))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        more = {"estimated": lists.estimated_rows(Block), **(extra_context or {})}
        return super().changelist_view(request, more)


def _action_page(request: HttpRequest, rows: QuerySet[Block], page: str) -> HttpResponse:
    ids = rows.values_list("pk", flat=True)[: block_actions.MOST]
    return lists.action_page(request, f"admin:pools_block_{page}", id=list(ids))


def filter_blocks(rows: QuerySet[Block], text: str) -> QuerySet[Block]:
    """Return the blocks of an address, CIDR (inside or around it), environment, or holder.

    Holders of this name, else those whose names begin with the text, else those whose names contain it.
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
        # This one reads all blocks: 0.1 s for a million.
        return beginning if beginning.exists() else rows.filter(holder_id__contains=searched.text)
    spaces = list(AddressSpace.objects.values_list("pk", flat=True))
    return rows.filter(_overlapping(searched.network), space_id__in=spaces)


def _overlapping(network: addresses.Network) -> Q:
    """Return the condition for blocks that contain the network (exact values) or lie in it (a range)."""
    family = network.version
    sizes = Pool.objects.values_list(f"mask_size_v{family}", flat=True).distinct()
    around = [
        str(ip_network((network.network_address, size), strict=False))
        for size in sizes
        if size is not None and size <= network.prefixlen
    ]
    last = f"{network.broadcast_address}/{network.max_prefixlen}"
    inside = Q(cidr__gte=str(network), cidr__lte=last)
    return Q(cidr__in=around) | inside if around else inside


def block_page(request: HttpRequest, block: Block) -> HttpResponse:
    address = block.cidr.network_address
    _, tenures = history_addresses.find_holders(address, cluster_id=block.pool.cluster_id)
    events = BlockEvent.objects.filter(cidr=str(block.cidr), space_id=block.space_id)
    ids = list(events.order_by("-pgh_id").values_list("pgh_id", flat=True)[:50])
    return pages.page(
        request,
        "block.html",
        title=display.plain_cidr(block.cidr),
        opts=Block._meta,
        original=block,
        row=block,
        call=f"blocks/{block.pk}/",
        held=block.state == BlockState.HELD,
        leak=detection.confirmed_leaks().filter(block=block).first(),
        tenures=[tenure for tenure in tenures if tenure.block == str(block.cidr)],
        events=Event.objects.filter(pk__in=ids).order_by("-id"),
    )
