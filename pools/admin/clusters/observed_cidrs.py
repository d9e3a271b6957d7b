"""The list of CIDRs that objects of clusters use, and the page of one."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters.field import cluster_filter
from pools.core.cilium import ciliumnode
from pools.models import ObservedCIDR, ObservedObject
from pools.models.observed import ROLE_LABELS
from pools.observed import handlers
from pools.platform.admin import columns, display, filters, lists, pages, search_text
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page

MOST_OTHERS = 100
NAD_KIND = "NetworkAttachmentDefinition"  # its handler is that of VM networks
_KINDS = [*(handler.kind for handler in handlers.ALL), ciliumnode.KIND, NAD_KIND]


def _search(rows: QuerySet[ObservedCIDR], text: str) -> QuerySet[ObservedCIDR]:
    searched = search_text.parse(text)
    if searched.network is not None:
        return rows.filter(cidr__net_overlaps=str(searched.network))
    return rows.filter(Q(name__icontains=searched.text) | Q(namespace=searched.text))


def _page(request: HttpRequest, row: ObservedCIDR) -> HttpResponse:
    observed_object = ObservedObject.objects.filter(
        cluster=row.space.cluster_id, kind=row.kind, uid=row.uid
    )
    others = ObservedCIDR.objects.filter(space=row.space_id, kind=row.kind, uid=row.uid)
    return pages.page(
        request,
        "observed_cidr.html",
        row,
        title=str(row),
        object=observed_object.defer("manifest").first(),
        others=others.exclude(pk=row.pk)[:MOST_OTHERS],
        call=f"observed-cidrs/{row.pk}/",
    )


@admin.register(ObservedCIDR)
class ObservedCIDRAdmin(lists.ListAdmin[ObservedCIDR]):
    list_display = (
        Column("cidr", "CIDR", lambda row: display.row_link(row, str(row.cidr)), ordering="cidr"),
        columns.label("role", _("used for")),
        columns.text("kind", _("kind")),
        columns.text("object_name", _("object")),
        Column("cluster", _("cluster"), lambda row: display.row_link(row.cluster)),
        columns.text("detail", _("detail")),
    )
    list_filter = (
        cluster_filter("space__cluster_id"),
        filters.by_value(
            _("used for"),
            "role",
            lambda _request: [(role.value, ROLE_LABELS[role]) for role in ROLE_LABELS],
        ),
        filters.by_value(_("kind"), "kind", lambda _request: [(kind, kind) for kind in _KINDS]),
    )
    exported = ("id", "cidr", "role", "kind", "namespace", "name", "space", "detail")
    search_fields = ("name",)
    search_help_text = _("Name of the object, address or CIDR")
    search = staticmethod(_search)
    ordering = ("cidr", "id")
    list_select_related = ("space__cluster",)
    list_before_template = "cadastre/observed_cidrs_intro.html"
    row_pages = (Page("change", _page),)
