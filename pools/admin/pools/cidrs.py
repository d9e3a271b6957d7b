"""CIDRs of pools: list, and the form of their tags, owner and custom fields."""

from typing import Any

from django.contrib import admin
from django.db.models import F, Func, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.admin.pools import blocks, page, usage_bars
from pools.models import PoolCIDR
from pools.platform.admin import (
    attributes,
    columns,
    display,
    filters,
    lists,
    pages,
    related,
    row_forms,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import overlaps, pools, usage


class CIDRAttributeForm(attributes.AttributeFields, row_forms.RowForm):
    attributed = PoolCIDR


BULK = attributes.bulk_changes(
    PoolCIDR,
    lambda row, values, author: pools.change_cidr(row.pk, values, author=author),
    permission="pools.change_pool",
    rows=lambda _request: PoolCIDR.objects.select_related("pool__cluster"),
)


def edit(request: HttpRequest, cidr: PoolCIDR) -> HttpResponse:
    """Show and save the form."""
    form = CIDRAttributeForm(request.POST or None)
    form.show_row(cidr, attributes.initial)
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form):
            pools.change_cidr(
                cidr.pk, form.attributes(), author=pages.author(request), version=form.check_version
            )
            return pages.done(
                request, gettext("CIDR %(cidr)s was changed.") % {"cidr": cidr}, cidr.pool
            )
    return pages.form_page(
        request,
        cidr,
        form,
        title=gettext("Edit CIDR %(cidr)s") % {"cidr": cidr},
        intro=gettext("Tags, owner and custom fields. The pool's form changes its CIDRs."),
        back=display.url_of(cidr.pool),
    )


def _linked(cidr: Any) -> SafeString:
    """Return the CIDR as a link to its map, and a mark if it overlaps another."""
    url = f"{display.url_of(cidr.pool)}?map={cidr.cidr}#map"
    mark = ""
    if cidr.overlaps:
        within = reverse("admin:plan", query={"overlaps": "all", "parent": str(cidr.cidr)})
        mark = format_html(
            ' <a class="cad-state cad-state-warning" href="{}">{}</a>', within, gettext("overlap")
        )
    return format_html(
        '<span class="cad-nowrap">{}{}</span>', display.address(cidr.cidr, url), mark
    )


def _size(cidr: PoolCIDR) -> SafeString:
    text = display.size(cidr.cidr.num_addresses, cidr.cidr.version)
    return format_html('<span class="cad-num">{}</span>', text)


@admin.register(PoolCIDR)
class PoolCIDRAdmin(attributes.AttributedList[PoolCIDR]):
    list_display = (
        Column("cidr", "CIDR", _linked, ordering="cidr"),
        columns.related("pool", _("pool"), text="name", ordering="pool__name"),
        columns.related("pool.cluster", _("cluster"), ordering="pool__cluster__name"),
        Column("size", _("addresses"), _size, ordering=Func(F("cidr"), function="masklen")),
        usage_bars.column(),
        Column("state", _("state"), lambda cidr: display.state(page.cidr_state(cidr))),
        columns.text("owner", _("owner"), ordering="owner"),
        Column("tags", _("tags"), lambda cidr: attributes.show_tags(cidr.tags)),
    )
    more_columns = (columns.timestamp("created_at", _("created"), ordering="created_at"),)
    list_filter = (
        cluster_fields.cluster_filter("pool__cluster_id"),
        related.by_key(_("pool"), "pool", blocks.POOLS, "pool_id"),
        filters.by_condition(
            _("state"),
            "state",
            {
                "pending": (_("pending"), ~Q(pending="")),
                "orphaned": (_("orphaned"), Q(orphaned_at__isnull=False)),
            },
        ),
    )
    list_before_template = "cadastre/cidrs_intro.html"
    exported = ("id", "pool.cluster.name", "pool.name", "cidr", "pending", "created_at")
    search_help_text = _("Address, CIDR or name of a pool")
    ordering = ("cidr", "id")
    list_select_related = ("pool__cluster",)
    list_pages = (BULK.page(),)
    row_pages = (
        Page("change", lambda _request, cidr: HttpResponseRedirect(display.url_of(cidr.pool))),
        Page("edit", edit, "pools.change_pool"),
        lists.history(lambda cidr: {"q": str(cidr.cidr)}, "pools.view_event"),
    )
    actions = (BULK.action(),)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        usages, overlapping = usage.usage_by_cidr(rows), overlaps.overlapping_cidrs()
        for row in rows:
            row.shown_usage = {row.cidr.version: usages[row.pk]}
            row.overlaps = row.cidr in overlapping

    def get_queryset(self, request: HttpRequest) -> QuerySet[PoolCIDR]:
        return super().get_queryset(request).prefetch_related("reserved_ranges")
