"""What a VM owner begins with: their VMs, what is wrong with them, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest

from claims.admin import network_page, scoped, tables
from claims.core import networks as core
from claims.models import NAD, Entry, IPAMClaim, IPPool, Network
from claims.services import claim_states, network_manifests, networks, vm_manifests
from pools.admin import find, overview
from pools.core import errors

MOST = 20


def page(request: HttpRequest) -> Iterator[find.Section]:
    """Of their namespaces only; nothing for somebody without a membership."""
    seen = scoped.seen(request)
    if seen.everything or not request.user.has_perm("claims.view_network"):
        return
    own = networks.with_nads(scoped.rows(request, Network), scoped.rows(request, NAD))
    found = list(own.order_by("cluster__name", "name")[:MOST])
    entries = scoped.rows(request, Entry).select_related("ippool__network__cluster")
    newest = list(entries.order_by("-pk")[:MOST])
    namespaces = sorted({name for names in seen.namespaces.values() for name in names})
    yield find.Section(
        "cadastre/vm_owner.html",
        {
            "namespaces": namespaces,
            "networks": [_network(one) for one in found],
            "entries": entries.count(),
            "may_add": request.user.has_perm("claims.request_address"),
            "ippools": scoped.rows(request, IPPool).exists(),
            "manifest": _manifest(newest, seen),
        },
    )
    troubles = list(_troubles(request))
    if troubles:
        yield find.Section("cadastre/tables.html", {"tables": [tables.claims(troubles)]})
    if newest:
        yield find.Section("cadastre/tables.html", {"tables": [tables.entries(newest)]})


def _network(network: Any) -> dict[str, Any]:
    return {
        "row": network,
        "gateways": core.gateways(network),
        "verdict": network_page.verdict(networks.verdict(network, network.shown_nads)),
        "nads": ", ".join(str(nad) for nad in network.shown_nads),
    }


def _troubles(request: HttpRequest) -> Iterator[IPAMClaim]:
    rows = claim_states.with_state(scoped.rows(request, IPAMClaim).filter(gone_at=None))
    wrong = rows.filter(state__in={claim_states.FAILED, claim_states.CONFLICT, claim_states.LEAKED})
    yield from wrong.select_related("network__cluster").order_by("-pk")[:MOST]


def _manifest(newest: list[Entry], seen: Any) -> dict[str, str] | None:
    """The VM of the newest entry that names one and that its cluster can start."""
    for entry in newest:
        if not entry.vm:
            continue
        try:
            found = vm_manifests.of(
                entry.ippool.network,
                vm=entry.vm,
                namespace=entry.namespace,
                mac=entry.mac,
                seen=seen,
            )
        except errors.IpamError:
            continue
        return {"vm": f"{entry.namespace}/{entry.vm}", "text": network_manifests.text(found)}
    return None


overview.START_PAGES.append(page)
