"""Held and cooling blocks: their list and page, their release, the end of their cooldown, and their DNS name."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.db.models.functions import Greatest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext
from django_stubs_ext import StrOrPromise

from pools import tasks
from pools.admin import time_bars
from pools.admin.clusters.field import CLUSTERS, tenant_filters
from pools.core import addresses, dns_names, errors, holders
from pools.core.register_import import attributes
from pools.models import LIVE, AddressSpace, Block, BlockEvent, BlockState, Category, Event, Pool
from pools.platform.admin import (
    columns,
    display,
    filters,
    forms as fields,
    large_tables,
    lists,
    pages,
    related,
    row_forms,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import block_lists, dns
from pools.register.allocator import allocation
from pools.register.history import addresses as history_addresses
from pools.register.imports import rows as import_rows
from pools.register.leaks import detection

MOST_CHOSEN = 100  # blocks on one page


class BlockReleaseForm(forms.Form):
    force = forms.BooleanField(
        label=_("Force: release even if the holder has changed"),
        required=False,
        widget=fields.tick(),
        help_text=_("If not selected, a block whose holder has changed is skipped."),
    )
    reason = fields.reason_field(
        label=_("Reason"),
        required=False,
        help_text=_("Recorded in the history. Required for a forced release."),
    )

    def __init__(self, *args: Any, may_force: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if not may_force:
            del self.fields["force"]
            self.fields["reason"].help_text = gettext("Recorded in the history.")

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("force") and not values.get("reason") and "reason" not in self.errors:
            self.add_error("reason", gettext("Enter a reason. A forced release requires one."))
        return values


def release(request: HttpRequest) -> HttpResponse:
    """Release each block if its holder is still the one that the page showed.

    A forced release ignores the holder; it requires a permission and a reason.
    """
    pages.require(request, "pools.allocate")
    may_force = request.user.has_perm("pools.force_release")
    form = BlockReleaseForm(request.POST or None, may_force=may_force)
    chosen = _chosen_blocks(request, BlockState.HELD)
    if request.method == "POST" and form.is_valid():
        reason = form.cleaned_data.get("reason") or ""
        force = bool(form.cleaned_data.get("force"))
        author = pages.author(request, reason)
        pools = set()
        for block in chosen:
            shown, org = shown_holder(request, block.pk)
            with pages.errors_as_messages(request):
                result = allocation.release(block.pk, shown, author=author, org=org, force=force)
                messages.success(request, _release_message(result))
                if result.has_pending_requests:
                    pools.add(block.pool_id)
        for pool_id in pools:
            tasks.nudge(pool_id)
        return HttpResponseRedirect(_return_url(request, chosen))
    text = ngettext("Release %(number)s block?", "Release %(number)s blocks?", len(chosen))
    effect = gettext("Another holder can get the addresses after the cooldown of the pool.")
    return _ask(request, form, chosen, text, effect, button=gettext("Release"))


def end_cooldown(request: HttpRequest) -> HttpResponse:
    pages.require(request, "pools.force_release")
    form = fields.ReasonForm(request.POST or None)
    chosen = _chosen_blocks(request, BlockState.COOLING)
    if request.method == "POST" and form.is_valid():
        author = pages.author(request, form.cleaned_data["reason"])
        for block in chosen:
            with pages.errors_as_messages(request):
                freed_block = allocation.skip_cooldown(block.pk, author=author)
                address = display.plain_cidr(freed_block["cidr"])
                messages.success(
                    request, gettext("%(address)s can be allocated again.") % {"address": address}
                )
        for pool_id in {block.pool_id for block in chosen}:
            tasks.nudge(pool_id)
        return HttpResponseRedirect(_return_url(request, chosen))
    text = ngettext(
        "End the cooldown of %(number)s block?",
        "End the cooldown of %(number)s blocks?",
        len(chosen),
    )
    effect = gettext(
        "Another holder can get the addresses immediately, while caches and firewalls may still refer to"
        " the last holder."
    )
    return _ask(request, form, chosen, text, effect, button=gettext("End cooldown"))


def end_cooldown_url(request: HttpRequest, pool: Pool) -> str:
    """Return the URL of the page that ends the cooldowns of a pool, the first ones; "" if none is or the user may not."""
    if not request.user.has_perm("pools.force_release"):
        return ""
    cooling = block_lists.filter_by_pool(Block.objects.filter(state=BlockState.COOLING), pool.pk)
    ids = list(cooling.order_by("space_id", "cidr").values_list("pk", flat=True)[:MOST_CHOSEN])
    return reverse("admin:pools_block_end_cooldown", query={"id": ids}) if ids else ""


def _chosen_blocks(request: HttpRequest, state: BlockState) -> list[Block]:
    """Return up to 100 blocks of the parameter `id` that are in the given state."""
    rows = Block.objects.filter(pk__in=lists.chosen_ids(request, MOST_CHOSEN), state=state)
    return list(rows.select_related("pool__cluster").order_by("space_id", "cidr"))


def shown_holder(request: HttpRequest, block_id: int) -> tuple[allocation.Holder, str]:
    """Return the holder that the confirmation page showed for a block, and its org."""
    parts = ("kind", "id", "uid", "org")
    texts = (request.POST.get(f"holder-{part}-{block_id}", "") for part in parts)
    kind, name, uid, org = (text.replace("\0", "") for text in texts)
    return allocation.Holder(kind, name, uid), org


def _release_message(result: allocation.Release) -> str:
    address = display.plain_cidr(result.block["cidr"])
    holder = result.block["holder"]["id"]
    if result.repeated:
        return gettext("%(address)s was already released.") % {"address": address}
    if result.block["state"] == BlockState.COOLING:
        return gettext("%(address)s was released from %(holder)s and is in cooldown.") % {
            "address": address,
            "holder": holder,
        }
    return gettext("%(address)s was released from %(holder)s and is free.") % {
        "address": address,
        "holder": holder,
    }


def _return_url(request: HttpRequest, chosen: list[Block]) -> str:
    """Return the URL of the list with its filters, or of the block if the action began there."""
    if (
        lists.FILTERS not in request.GET
        and len(chosen) == 1
        and Block.objects.filter(pk=chosen[0].pk, state__in=("held", "cooling")).exists()
    ):
        return display.url_of(chosen[0])
    return lists.list_url(request, "admin:pools_block_changelist")


def _ask(
    request: HttpRequest,
    form: forms.Form,
    chosen: list[Block],
    text: str,
    effect: str,
    *,
    button: str,
) -> HttpResponse:
    if not chosen:
        messages.warning(
            request,
            str(errors.NotFound(gettext("None of the selected blocks is in the required state."))),
        )
        return HttpResponseRedirect(lists.list_url(request, "admin:pools_block_changelist"))
    return pages.confirmation(
        request,
        Block,
        title=text % {"number": display.digits(len(chosen))},
        button=button,
        effects=[effect],
        back=_return_url(request, chosen),
        form=form,
        values=[pair for block in chosen for pair in shown_values(block.pk, block)],
        details="cadastre/block_rows.html",
        blocks=chosen,
        with_pool=True,
    )


def shown_values(block_id: int, holder: Any) -> list[tuple[str, object]]:
    """Return the fields by which a page that asks names a block and its holder, as `shown_holder` reads them."""
    parts = {
        "kind": holder.holder_kind,
        "id": holder.holder_id,
        "uid": holder.holder_uid,
        "org": holder.org,
    }
    values = [(f"holder-{part}-{block_id}", value) for part, value in parts.items()]
    return [("id", block_id), *values]


class DNSNameForm(row_forms.RowForm):
    dns_name = fields.ParsedField(
        dns_names.parse_name,
        label=_("DNS name"),
        required=False,
        widget=fields.text(placeholder="web-1.example.org"),
        help_text=_(
            "Several addresses may have the same name. Empty: the name of the pool's pattern."
        ),
    )
    # The holder that the page showed: its successor does not get the name.
    kind = forms.CharField(widget=forms.HiddenInput())
    holder = forms.CharField(widget=forms.HiddenInput())


def edit_name(request: HttpRequest, block: Block) -> HttpResponse:
    """Show and save the form."""
    shown = {"kind": block.holder_kind, "holder": block.holder_id}
    form = DNSNameForm(request.POST or None, initial=shown)
    events = Event.objects.filter(table="dnsnameevent", cidr=str(block.cidr)).order_by("-id")
    form.show_row(block, lambda row: {"dns_name": dns.name_of(row)}, events={"dns_name": events})
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        holder = holders.Holder(values["kind"], values["holder"])
        with pages.errors_at_field(form):
            name = values["dns_name"] or ""
            dns.set_name(
                block.pk,
                name,
                author=pages.author(request),
                holder=holder,
                version=form.check_version,
            )
            return pages.done(request, gettext("The DNS name was saved."), block)
    return pages.form_page(
        request,
        block,
        form,
        title=gettext("DNS name of %(address)s") % {"address": display.plain_cidr(block.cidr)},
    )


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
        Page("release", release),
        Page("end_cooldown", end_cooldown, path="end-cooldown"),
    )
    row_pages = (
        Page("change", block_page),
        Page("dns_name", edit_name, "pools.allocate", path="dns-name"),
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
