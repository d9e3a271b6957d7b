"""The page of a network: its settings, whether it can hold static VMs, its map, its manifest."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.admin import scoped
from claims.admin.entries import entries as entry_admin
from claims.core.networks import udn
from claims.core.networks.static_vms import StaticVMCheck
from claims.ipamclaims import ipamclaims
from claims.models import Entry, IPAMClaim, IPPool, Network, Workload
from claims.models.networks import NetworkKind
from claims.models.workloads import WorkloadKind
from claims.networks import handlers, networks as services, pools as network_pools
from pools.admin.pools import page as pool_page
from pools.core import errors
from pools.models import Pool
from pools.platform import documents
from pools.platform.admin import pages
from pools.register import overlaps, usage

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
        return format_html(
            '<span class="cad-state cad-state-ok"><span aria-hidden="true">●</span> {}</span>',
            gettext("yes"),
        )
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


def page(
    request: HttpRequest, template: str, title: str, network: Network, **more: Any
) -> HttpResponse:
    return pages.page(
        request,
        template,
        network,
        title=title,
        everything=scoped.request_scope(request).everything,
        **more,
    )


def view(request: HttpRequest, network: Network) -> HttpResponse:
    everything = scoped.request_scope(request).everything
    annotated_network: Any = network
    return page(
        request,
        "network.html",
        network.name,
        network,
        kind=kind_label(network),
        check=services.static_vm_check(network, annotated_network.shown_nads),
        gateways=udn.gateways(network),
        management_addresses=udn.management_addresses(network),
        advertisements=handlers.of_networks([network])[network.pk],
        nads=annotated_network.shown_nads,
        uses=list(usage_counts(request, network)),
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


def running(request: HttpRequest, network: Network) -> QuerySet[Any]:
    rows = scoped.rows(request, Workload).filter(network=network)
    return rows.exclude(kind=WorkloadKind.TEMPLATE)


def usage_counts(request: HttpRequest, network: Network) -> Any:
    """Yield (label, number, URL of the list) of the visible objects that use the network."""
    tables: list[tuple[str, type[Model], QuerySet[Any]]] = [
        (
            gettext("MAC entries"),
            Entry,
            scoped.rows(request, Entry).filter(ippool__network=network),
        ),
        ("IPAMClaims", IPAMClaim, scoped.rows(request, IPAMClaim).filter(network=network)),
        (gettext("Workloads"), Workload, running(request, network)),
    ]
    for label, model, rows in tables:
        url = ""
        if admin.site.is_registered(model):
            name = f"admin:claims_{model._meta.model_name}_changelist"
            url = reverse(name, query={"network": network.pk})
        yield label, rows.count(), url


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
