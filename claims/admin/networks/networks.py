"""List and pages of VM networks, and whether each can hold static VMs."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.admin import bulk, scoped
from claims.admin.networks import form as network_form, page, topology
from claims.core.networks import udn
from claims.models import NAD, Entry, Network
from claims.models.networks import NetworkKind
from claims.networks import networks as services
from pools.admin.pools import usage_bars
from pools.core import errors
from pools.models import Cluster
from pools.platform import search
from pools.platform.admin import (
    attributes,
    columns,
    display,
    filters,
    lists,
    objects,
    pages,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.events import Author
from pools.register import usage


def _by_static(request: HttpRequest, rows: QuerySet[Network], value: str) -> QuerySet[Network]:
    suitable = services.fitting_query(scoped.rows(request, NAD))
    if value == "yes":
        return rows.filter(suitable)
    return rows.exclude(suitable) if value == "no" else rows


def _by_presence(_request: HttpRequest, rows: QuerySet[Network], value: str) -> QuerySet[Network]:
    """By default hides networks that are only named by an IPPool or a claim."""
    if value == "all":
        return rows
    if value == "false":
        return rows.filter(kind="")
    rows = rows.exclude(kind="")
    return rows.exclude(gone_at=None) if value == "gone" else rows


def _name(network: Network) -> SafeString:
    gone = display.state("removed", gettext("deleted in the cluster")) if network.gone_at else ""
    return format_html(
        '<span class="cad-stack">{}<span class="cad-dim">{} {}</span></span>',
        display.row_link(network, network.name),
        page.kind_label(network),
        gone,
    )


def _addresses(values: list[str]) -> SafeString:
    return display.stack([display.address(value) for value in values], most=4)


def _static_vms(network: Any) -> SafeString:
    return page.static_vm_badge(services.static_vm_check(network, network.shown_nads))


def _namespaces(network: Any) -> SafeString:
    return display.number(len({nad.namespace for nad in network.shown_nads}))


@admin.register(Network)
class NetworkAdmin(
    attributes.AttributedList[Network], scoped.Scoped[Network], objects.ObjectAdmin[Network]
):
    form = network_form.NetworkChangeForm
    form_template = "network_edit.html"
    list_display = (
        Column("name", _("logical name"), _name, ordering="name"),
        Column("cluster", _("cluster"), scoped.cluster_link, ordering="cluster__name"),
        Column("subnets", _("subnets"), lambda network: _addresses(network.subnets)),
        Column("gateways", _("gateways"), lambda network: _addresses(udn.gateways(network))),
        columns.text("lifecycle", _("lifecycle"), ordering="lifecycle"),
        Column("static_vms", _("static VMs"), _static_vms),
        Column("namespaces", _("namespaces"), _namespaces),
        Column("entries", _("entries"), lambda network: display.number(network.shown_number)),
        usage_bars.column(),
    )
    found_columns = ("name", "cluster", "subnets")
    more_columns = (
        columns.text("topology", _("topology"), ordering="topology"),
        columns.text("role", _("role"), ordering="role"),
        columns.text("mtu", _("MTU")),
        columns.timestamp("created_at", _("created"), ordering="created_at"),
    )
    list_per_page = 50
    list_filter = (
        scoped.cluster_filter(),
        filters.by_value(_("kind"), "kind", NetworkKind),
        filters.custom(
            _("static VMs"),
            "static",
            {"yes": _("supported"), "no": _("not supported")},
            _by_static,
        ),
        filters.custom(
            _("in the cluster"),
            "known",
            {"false": _("never seen"), "gone": _("deleted in the cluster"), "all": _("all")},
            _by_presence,
            has_default=True,
        ),
    )
    exported = (
        "id", "cluster.name", "name", "kind", "namespace", "topology", "role", "lifecycle",
        "subnets", "default_gateways", "reserved_subnets", "infrastructure_subnets", "applied",
        "description",
    )  # fmt: skip
    search_help_text = _("Name, address or CIDR")
    ordering = ("cluster__name", "name")
    list_before_template = "cadastre/networks_intro.html"
    actions = (bulk.NETWORKS.action(),)
    list_pages = (
        Page("add", network_form.add, "claims.add_network"),
        Page("free", page.free_view, "claims.view_network"),
        bulk.NETWORKS.page(),
    )
    row_pages = (
        Page("change", page.view),
        Page("topology", topology.view),
        lists.history(
            lambda network: {"q": network.name, "type": "network"}, "claims.view_network"
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Network]:
        return services.with_nads(super().get_queryset(request), scoped.rows(request, NAD))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Network], search_term: str
    ) -> tuple[QuerySet[Network], bool]:
        """Find networks by the NADs that the user may see, too."""
        nads = search.matching(scoped.rows(request, NAD), search_term)
        matches, distinct = super().get_search_results(request, queryset, search_term)
        by_nad = queryset.filter(pk__in=[*nads.values_list("network_id", flat=True)])
        return (matches | by_nad if search_term else matches), distinct

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        scope = scoped.request_scope(request)
        entries = scoped.rows(request, Entry).filter(ippool__network__in=rows).order_by()
        counts = dict(entries.values_list("ippool__network").annotate(number=Count("pk")))
        pools = [row.pool for row in rows if row.pool is not None and scope.everything]
        usage_by_pool = usage.usage_by_pool(pools)
        scoped.mark_links(request, rows)
        for network in rows:
            network.shown_usage = usage_by_pool.get(network.pool_id, {})
            network.shown_number = counts.get(network.pk, 0)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not scoped.rows(request, Network).exists(),
            "clusters_exist": scoped.rows(request, Cluster).exists(),
            "everything": scoped.request_scope(request).everything,
        }

    def field_of_problem(self, problem: errors.FieldProblem) -> str:
        return "applied" if problem.code == errors.NotManaged.code else problem.field

    def save_row(self, row: Any, form: Any, author: Author) -> Network:
        return services.change(row, form.changes(), author=author, version=form.check_version)

    def delete_model(self, request: HttpRequest, obj: Network) -> None:
        services.delete(obj, author=pages.author(request))

    def deletion_effects(self, row: Network) -> list[str]:
        return [
            gettext(
                "It and its pool are deleted from the register. Nothing is deleted in the cluster."
            ),
            gettext(
                "It cannot be deleted while an IPPool, claims, workloads or used addresses refer to it, or while it"
                " exists in the cluster."
            ),
        ]
