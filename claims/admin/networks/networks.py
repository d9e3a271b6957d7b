"""VM networks: list and page; the settings, whether a network can hold static VMs, its map and its manifest."""

from ipaddress import ip_network
from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.admin import bulk, scoped
from claims.admin.entries import entries as entry_admin
from claims.admin.networks import form as network_form, topology
from claims.core.networks import udn
from claims.core.networks.static_vms import StaticVMCheck
from claims.ipamclaims import ipamclaims
from claims.models import NAD, Entry, IPPool, Network
from claims.models.networks import NetworkKind
from claims.networks import handlers, networks as services, pools as network_pools
from pools.admin.pools import page as pool_page, usage_bars
from pools.core import errors
from pools.models import Cluster, Pool
from pools.platform import documents, search
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
from pools.register import overlaps, usage

# --- the page ---


_KIND_LABELS = {
    NetworkKind.CUDN: "ClusterUDN",
    NetworkKind.UDN: "UDN",
    NetworkKind.NAD: "NAD",
    NetworkKind.UNKNOWN: "?",
}
_MOST_OVERLAPS = 8  # shown on the page


# Why a network cannot hold static VMs, short enough for a list.
_SHORT_REASONS = {
    "gone": _("deleted"),
    "not_layer2": _("not layer2"),
    "not_primary": _("not primary"),
    "ipam_disabled": _("no IPAM"),
    "not_persistent": _("not Persistent"),
    "no_subnets": _("no subnets"),
    "nad_not_persistent": _("no persistent IPs"),
}


def kind_label(network: Network) -> SafeString:
    """Return the short name of a network's kind; its tooltip is the kind of the object."""
    return format_html(
        '<span title="{}">{}</span>',
        network.get_kind_display(),
        _KIND_LABELS[NetworkKind(network.kind)],
    )


def static_vm_badge(check: StaticVMCheck) -> SafeString:
    """Return a badge (yes, no or unknown) with the short reasons; its tooltip has the full reasons."""
    if check.ok:
        return display.badge("ok", "●", gettext("yes"))
    unknown = [reason.code for reason in check.reasons] == ["not_seen"]
    brief = [
        _SHORT_REASONS[reason.code] for reason in check.reasons if reason.code in _SHORT_REASONS
    ]
    return format_html(
        '<span class="cad-stack" title="{}"><span class="cad-state {}">'
        '<span aria-hidden="true">{}</span> {}</span>{}</span>',
        " ".join(reason.message for reason in check.reasons),
        "cad-dim" if unknown else "cad-state-refused",
        "?" if unknown else "✕",
        gettext("unknown") if unknown else gettext("no"),
        format_html_join("", '<span class="cad-dim">{}</span>', ((text,) for text in brief)),
    )


def network_page(request: HttpRequest, network: Network) -> HttpResponse:
    everything = scoped.request_scope(request).everything
    annotated_network: Any = network
    return pages.page(
        request,
        "network.html",
        network,
        title=network.name,
        everything=everything,
        kind=kind_label(network),
        check=services.static_vm_check(network, annotated_network.shown_nads),
        gateways=udn.gateways(network),
        management_addresses=udn.management_addresses(network),
        advertisements=handlers.of_networks([network])[network.pk],
        nads=annotated_network.shown_nads,
        uses=list(topology.usage_counts(request, network)),
        ippool=scoped.rows(request, IPPool).filter(network=network).first(),
        may_add=entry_admin.may_add(request),
        manifest=_manifest(network, everything=everything),
        call=f"networks/{network.pk}/",
        managed=everything and services.is_managed(network.cluster),
        **(_pool_context(request, network.pool) if everything and network.pool else {}),
        overlaps=_overlaps(network) if everything else [],
    )


def _manifest(network: Network, *, everything: bool) -> str:
    if network.kind == NetworkKind.CUDN and not everything:  # its selector names other namespaces
        return ""
    try:
        return documents.dump_yaml(services.applicable_manifest(network))
    except errors.NotFound:
        return ""


def _pool_context(request: HttpRequest, pool: Pool) -> dict[str, Any]:
    return {
        "pool": pool,
        "families": usage.usage_by_pool([pool])[pool.pk],
        **pool_page.map_context(request, pool, allocating=False),
    }


def _overlaps(network: Network) -> list[tuple[str, str, Any]]:
    """Return (subnet, overlapping CIDR, its owner) outside the network's own pool; overlaps are allowed."""
    return [
        (subnet, str(other), owner)
        for subnet in network.subnets
        for other, owner in overlaps.find_overlapping_networks(
            ip_network(subnet), most=_MOST_OVERLAPS, other_than=network.pool_id
        )
    ][:_MOST_OVERLAPS]


def free_view(request: HttpRequest) -> HttpResponse:
    """Answer with the next free address of each family, `{"addresses"}`, or why there is none, `{"problem"}`.

    The query names a network, for a claim, or an IPPool, for an entry, as a field of a form has it.
    """
    network = _queried_network(request)
    if network is None:
        return JsonResponse({"problem": gettext("Choose a network first.")})
    try:
        if "network" in request.GET:
            ipamclaims.require_fit(network)
        return JsonResponse({"addresses": network_pools.next_addresses(network)})
    except errors.IpamError as error:
        return JsonResponse({"problem": pages.sentence(error.message)})


def _queried_network(request: HttpRequest) -> Network | None:
    networks = scoped.rows(request, Network).select_related("cluster", "pool")
    if "network" in request.GET:
        key = scoped.NETWORKS.parse_name(networks, request.GET["network"].strip())
        return networks.filter(pk=key).first()
    ippools = scoped.rows(request, IPPool)
    key = scoped.IPPOOLS.parse_name(ippools, request.GET.get("ippool", "").strip())
    return networks.filter(ippool__in=ippools.filter(pk=key)).first()


# --- the list ---


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
        kind_label(network),
        gone,
    )


def _addresses(values: list[str]) -> SafeString:
    return display.stack([display.address(value) for value in values], most=4)


def _static_vms(network: Any) -> SafeString:
    return static_vm_badge(services.static_vm_check(network, network.shown_nads))


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
        Page("free", free_view, "claims.view_network"),
        bulk.NETWORKS.page(),
    )
    row_pages = (
        Page("change", network_page),
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
