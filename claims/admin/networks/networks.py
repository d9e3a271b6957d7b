"""List and pages of VM networks, and whether each can hold static VMs."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import bulk, scoped
from claims.admin.networks import form, page
from claims.core.networks import udn
from claims.models import NAD, Entry, Network
from claims.models.networks import NetworkKind
from claims.networks import networks as services
from pools.admin.pools import usage_bars
from pools.core import errors
from pools.models import Cluster
from pools.platform.admin import display, lists, pages
from pools.register import usage

LIST = "admin:claims_network_changelist"


class NetworkList(lists.BoundedList):
    """Adds utilization and entry counts to the networks of a page, with a few queries for all of them."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        networks: list[Any] = list(self.result_list)
        scope = scoped.request_scope(request)
        entries = scoped.rows(request, Entry).filter(ippool__network__in=networks)
        entry_counts = dict(
            entries.order_by().values_list("ippool__network").annotate(number=Count("pk"))
        )
        pools = [
            network.pool for network in networks if network.pool is not None and scope.everything
        ]
        usage_by_pool = usage.usage_by_pool(pools)
        for network in networks:
            network.shown_usage = usage_by_pool.get(network.pool_id, {})
            network.shown_number = entry_counts.get(network.pk, 0)
            network.shown_links = scope.everything
        self.result_list = networks


class NetworkClusterFilter(scoped.ScopedClusterFilter):
    pass


class NetworkKindFilter(lists.ChoiceFilter):
    title = _("kind")
    parameter_name = "kind"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in NetworkKind.choices if value]

    def queryset(self, request: HttpRequest, rows: QuerySet[Network]) -> QuerySet[Network]:
        return rows.filter(kind=self.value()) if self.value() else rows


class StaticFilter(lists.ChoiceFilter):
    title = _("static VMs")
    parameter_name = "static"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("yes", gettext("supported")), ("no", gettext("not supported"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Network]) -> QuerySet[Network]:
        suitable = services.fitting_query(scoped.rows(request, NAD))
        if self.value() == "yes":
            return rows.filter(suitable)
        return rows.exclude(suitable) if self.value() == "no" else rows


class SeenFilter(lists.ChoiceFilter):
    """By default hides networks that are only named by an IPPool or a claim."""

    title = _("in the cluster")
    parameter_name = "known"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [
            ("false", gettext("never seen")),
            ("gone", gettext("deleted in the cluster")),
            ("all", gettext("all")),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Network]) -> QuerySet[Network]:
        if self.value() == "all":
            return rows
        if self.value() == "false":
            return rows.filter(kind="")
        rows = rows.exclude(kind="")
        return rows.exclude(gone_at=None) if self.value() == "gone" else rows


@admin.register(Network)
class NetworkAdmin(scoped.Scoped[Network]):
    list_display = (
        "shown_name",
        "shown_cluster",
        "shown_subnets",
        "shown_gateways",
        "shown_lifecycle",
        "shown_static_vms",
        "shown_namespaces",
        "shown_entries",
        "shown_bars",
    )
    list_display_links = None
    list_per_page = 50
    list_filter = (NetworkClusterFilter, NetworkKindFilter, StaticFilter, SeenFilter)
    exported = (
        "id",
        "cluster.name",
        "name",
        "kind",
        "namespace",
        "topology",
        "role",
        "lifecycle",
        "subnets",
        "default_gateways",
        "reserved_subnets",
        "infrastructure_subnets",
        "applied",
        "description",
    )
    search_fields = ("name",)
    search_help_text = _("Name, address or CIDR")
    ordering = ("cluster__name", "name")
    list_before_template = "cadastre/networks_intro.html"
    actions = (bulk.NETWORKS.action(),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Network]:
        return services.with_nads(super().get_queryset(request), scoped.rows(request, NAD))

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return NetworkList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Network], search_term: str
    ) -> tuple[QuerySet[Network], bool]:
        search_text = search_term.strip()
        return (queryset.filter(services.search(search_text)) if search_text else queryset), False

    @admin.display(description=_("logical name"), ordering="name")
    def shown_name(self, network: Network) -> SafeString:
        gone = (
            display.state("removed", gettext("deleted in the cluster")) if network.gone_at else ""
        )
        return format_html(
            '<span class="cad-stack">{}<span class="cad-dim">{} {}</span></span>',
            display.row_link(network, network.name),
            page.kind_label(network),
            gone,
        )

    @admin.display(description=_("cluster"), ordering="cluster__name")
    def shown_cluster(self, network: Any) -> SafeString | str:
        return display.row_link(network.cluster) if network.shown_links else network.cluster.name

    @admin.display(description=_("subnets"))
    def shown_subnets(self, network: Network) -> SafeString:
        return _address_stack(network.subnets)

    @admin.display(description=_("gateways"))
    def shown_gateways(self, network: Network) -> SafeString:
        return _address_stack(udn.gateways(network))

    @admin.display(description=_("lifecycle"), ordering="lifecycle")
    def shown_lifecycle(self, network: Network) -> SafeString | str:
        return network.lifecycle or display.DASH

    @admin.display(description=_("static VMs"))
    def shown_static_vms(self, network: Any) -> SafeString:
        return page.static_vm_badge(services.static_vm_check(network, network.shown_nads))

    @admin.display(description=_("namespaces"))
    def shown_namespaces(self, network: Any) -> SafeString:
        return display.number(len({nad.namespace for nad in network.shown_nads}))

    @admin.display(description=_("entries"))
    def shown_entries(self, network: Any) -> SafeString:
        return display.number(network.shown_number)

    @admin.display(description=_("utilization"))
    def shown_bars(self, network: Any) -> SafeString:
        if not network.shown_usage:
            return display.DASH
        return format_html(
            '<span class="cad-stack">{}</span>', usage_bars.bars(network.shown_usage)
        )

    # --- pages ------------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        more = {
            "nothing_yet": not scoped.rows(request, Network).exists(),
            "clusters_exist": scoped.rows(request, Cluster).exists(),
            "everything": scoped.request_scope(request).everything,
            **(extra_context or {}),
        }
        return super().changelist_view(request, more)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("claims.add_network")

    def get_urls(self) -> list[URLPattern]:
        edit = pages.in_admin(self.edit_view)
        return [
            bulk.NETWORKS.url(),
            path("<int:network_id>/edit/", edit, name="claims_network_edit"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        pages.require(request, "claims.add_network")
        return form.add(request)

    def edit_view(self, request: HttpRequest, network_id: int) -> HttpResponse:
        pages.require(request, "claims.change_network")
        return form.edit(request, self.row_or_404(request, network_id))

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_network")
        return page.view(request, self.row_or_404(request, object_id))

    def delete_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.delete_network")
        network = self.row_or_404(request, object_id)
        if request.method == "POST":
            try:
                services.delete(network, author=pages.author(request))
            except errors.IpamError as error:
                messages.error(request, pages.sentence(error.message))
                return HttpResponseRedirect(display.url_of(self.row_or_404(request, object_id)))
            messages.success(
                request, (gettext("%(network)s was deleted.") % {"network": network.name})
            )
            return HttpResponseRedirect(reverse(LIST))
        return page.page(
            request,
            "network_delete.html",
            (gettext("Delete %(network)s?") % {"network": network.name}),
            network,
        )

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_network")
        network = self.row_or_404(request, object_id)
        query = {"q": network.name, "type": "network"}
        return HttpResponseRedirect(reverse("admin:pools_event_changelist", query=query))


def _address_stack(values: list[str]) -> SafeString:
    if not values:
        return display.DASH
    listed = format_html_join(
        "", "<span>{}</span>", ((display.address(value),) for value in values[:4])
    )
    hidden_count = len(values) - 4
    rest = ""
    if hidden_count > 0:
        more_text = gettext("and %(count)s more") % {"count": hidden_count}
        rest = format_html("<span>{}</span>", more_text)
    return format_html('<span class="cad-stack">{}{}</span>', listed, rest)
