"""A network as one reads it: what it is, whether it can hold static VMs, its map, its manifest."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from claims.admin import scoped
from claims.admin.entries import form
from claims.core.networks import udn
from claims.core.networks.static_vms import StaticVMCheck
from claims.models import Entry, IPAMClaim, IPPool, Network, Workload
from claims.models.networks import NetworkKind
from claims.networks import manifests, route_advertisements
from claims.networks import networks as services
from pools.admin.pools import page as pool_page
from pools.core import errors
from pools.models import Pool
from pools.platform import documents
from pools.platform.admin import pages
from pools.register import overlaps, usage

_SHORT = {
    NetworkKind.CUDN: "ClusterUDN",
    NetworkKind.UDN: "UDN",
    NetworkKind.NAD: "NAD",
    NetworkKind.UNKNOWN: "?",
}
_FIRST = 8  # overlaps that are told


# Why not, as short as a list has room for.
_BRIEF = {
    "gone": "gone",
    "not_layer2": "not layer2",
    "not_primary": "not primary",
    "ipam_disabled": "no IPAM",
    "not_persistent": "not Persistent",
    "no_subnets": "no subnets",
    "nad_not_persistent": "no persistent IPs",
}


def kind(network: Network) -> SafeString:
    """Short, the kind of the object on hover."""
    return format_html(
        '<span title="{}">{}</span>', network.get_kind_display(), _SHORT[NetworkKind(network.kind)]
    )


def verdict(check: StaticVMCheck) -> SafeString:
    """yes or no, by word, shape and colour, and why not; all of it on hover."""
    if check.ok:
        return SafeString(
            '<span class="cad-state cad-state-ok"><span aria-hidden="true">●</span> yes</span>'
        )
    unknown = [reason.code for reason in check.reasons] == ["not_seen"]
    brief = [_BRIEF[reason.code] for reason in check.reasons if reason.code in _BRIEF]
    return format_html(
        '<span class="cad-stack" title="{}"><span class="cad-state {}">'
        '<span aria-hidden="true">{}</span> {}</span>{}</span>',
        " ".join(reason.message for reason in check.reasons),
        "cad-dim" if unknown else "cad-state-refused",
        "?" if unknown else "✕",
        gettext("not known") if unknown else "no",
        format_html_join("", '<span class="cad-dim">{}</span>', ((text,) for text in brief)),
    )


def page(
    request: HttpRequest, template: str, title: str, network: Network, **more: Any
) -> HttpResponseBase:
    return pages.page(
        request,
        template,
        title=title,
        opts=Network._meta,
        original=network,
        network=network,
        everything=scoped.request_scope(request).everything,
        **more,
    )


def view(request: HttpRequest, network: Network) -> HttpResponseBase:
    everything = scoped.request_scope(request).everything
    shown: Any = network
    return page(
        request,
        "network.html",
        network.name,
        network,
        kind=kind(network),
        found=services.static_vm_check(network, shown.shown_nads),
        gateways=udn.gateways(network),
        announced=route_advertisements.of_networks([network])[network.pk],
        nads=shown.shown_nads,
        uses=list(_uses(request, network)),
        ippool=scoped.rows(request, IPPool).filter(network=network).first(),
        may_add=form.may_add(request),
        manifest=_manifest(network, everything=everything),
        call=f"networks/{network.pk}/",
        managed=everything and services.is_managed(network.cluster),
        **(_pool(request, network.pool) if everything and network.pool else {}),
        overlaps=_overlaps(network) if everything else [],
    )


def _manifest(network: Network, *, everything: bool) -> str:
    if network.kind == NetworkKind.CUDN and not everything:  # its selector names other namespaces
        return ""
    try:
        return documents.dump_yaml(manifests.applicable_manifest(network))
    except errors.NotFound:
        return ""


def _pool(request: HttpRequest, pool: Pool) -> dict[str, Any]:
    cidrs = list(
        pool.cidrs.select_related("pool").prefetch_related("reserved_ranges").order_by("position")
    )
    chosen = request.GET.get("map", "")
    return {
        "pool": pool,
        "families": usage.of_pools([pool])[pool.pk],
        "maps": pool_page.drawn(pool, cidrs, chosen, allocating=False),
        "chosen_map": chosen,
        "cidrs": cidrs,
    }


def _uses(request: HttpRequest, network: Network) -> Any:
    """(what, how many of them, where they are listed) of what is seen."""
    tables: list[tuple[str, type[Model], QuerySet[Any]]] = [
        (
            gettext("MAC entries"),
            Entry,
            scoped.rows(request, Entry).filter(ippool__network=network),
        ),
        ("IPAMClaims", IPAMClaim, scoped.rows(request, IPAMClaim).filter(network=network)),
        (gettext("Workloads"), Workload, scoped.rows(request, Workload).filter(network=network)),
    ]
    for words, model, rows in tables:
        url = ""
        if admin.site.is_registered(model):
            name = f"admin:claims_{model._meta.model_name}_changelist"
            url = reverse(name, query={"network": network.pk})
        yield words, rows.count(), url


def _overlaps(network: Network) -> list[tuple[str, str, Any]]:
    """(subnet, what overlaps it, whose that is) beyond the network itself; allowed, and told."""
    return describe_overlaps(network.subnets, own_pool_id=network.pool_id)[:_FIRST]


def describe_overlaps(
    subnets: list[str], *, own_pool_id: int | None = None
) -> list[tuple[str, str, Any]]:
    rows = []
    for subnet in subnets:
        cidr = ip_network(subnet)
        rows += [
            (subnet, str(other), owner)
            for other, owner in overlaps.touching(cidr)
            if own_pool_id is None or owner.pool_id != own_pool_id
        ]
    return rows
