"""Start page of VM owners: their VMs, what these VMs wait for, their problems, and what to do next."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from claims.admin import scoped
from claims.admin.networks import networks as network_admin
from claims.core.networks import udn as core
from claims.ipamclaims import states
from claims.models import NAD, Entry, IndexEntry, IPAMClaim, IPPool, Network
from claims.networks import networks
from claims.workloads import vm_lookup
from pools.admin import find
from pools.core import errors
from pools.platform import documents

MOST = 20  # networks and claims
_UNDONE = {states.PENDING, states.FAILED, states.CONFLICT, states.LEAKED}
MOST_ENTRIES = 10  # the list shows all of them


def page(request: HttpRequest) -> Iterator[find.Section]:
    """Yield the section with the VMs of the user's namespaces; none for users without a membership."""
    scope = scoped.request_scope(request)
    if scope.everything or not request.user.has_perm("claims.view_network"):
        return
    network_rows = networks.with_nads(scoped.rows(request, Network), scoped.rows(request, NAD))
    shown_networks = list(network_rows.order_by("cluster__name", "name")[:MOST])
    entries = scoped.rows(request, Entry).select_related("ippool__network__cluster")
    flagged, clean = _newest_entries(entries)
    namespaces = sorted({name for names in scope.namespaces.values() for name in names})
    yield find.Section(
        "cadastre/vm_owner.html",
        {
            "namespaces": namespaces,
            "networks": [_network_row(network) for network in shown_networks],
            "entries": entries.count(),
            "may_add": request.user.has_perm("claims.request_address"),
            "ippools": scoped.rows(request, IPPool).exists(),
            "manifest": _first_manifest([*clean, *flagged], scope),
            "tables": list(_owner_tables(request, [*flagged, *clean])),
        },
    )


def _newest_entries(entries: QuerySet[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the newest entries with conflicts and the newest without, at most MOST_ENTRIES together."""
    conflicting_index_rows = IndexEntry.objects.filter(
        Q(duplicate_mac=True) | Q(duplicate_ip=True), entry__isnull=False
    )
    flagged = list(
        entries.filter(pk__in=conflicting_index_rows.values("entry")).order_by("-pk")[:MOST_ENTRIES]
    )
    flagged_ids = {entry.pk for entry in flagged}
    newest = [
        entry for entry in entries.order_by("-pk")[:MOST_ENTRIES] if entry.pk not in flagged_ids
    ]
    return flagged, newest[: MOST_ENTRIES - len(flagged)]


def _owner_tables(request: HttpRequest, entries: list[Entry]) -> Iterator[find.AdminTable]:
    if claims := list(_unfinished_claims(request)):
        yield find.list_table(
            request,
            IPAMClaim,
            claims,
            ("name", "vm", "assigned", "state", "next_step"),
            title=gettext("Claims that wait or have problems"),
        )
    if entries:
        yield find.list_table(
            request,
            Entry,
            entries,
            ("mac", "ips", "vm", "network", "seen", "duplicates"),
            title=gettext("Your MAC entries"),
            more=reverse("admin:claims_entry_changelist"),
        )


def _network_row(network: Any) -> dict[str, Any]:
    return {
        "row": network,
        "gateways": core.gateways(network),
        "static_vm_badge": network_admin.static_vm_badge(
            networks.static_vm_check(network, network.shown_nads)
        ),
        "nads": ", ".join(str(nad) for nad in network.shown_nads),
    }


def _unfinished_claims(request: HttpRequest) -> Iterator[IPAMClaim]:
    rows = states.with_state(scoped.rows(request, IPAMClaim).filter(gone_at=None))
    unfinished = rows.filter(state__in=_UNDONE)
    yield from unfinished.select_related("network__cluster").order_by("-pk")[:MOST]


def _first_manifest(entries: list[Entry], scope: Any) -> dict[str, str] | None:
    """Return the manifest of the first entry's VM that its cluster can start, or None."""
    for entry in entries:
        if not entry.vm:
            continue
        try:
            manifest = vm_lookup.vm_manifest(
                entry.ippool.network,
                vm=entry.vm,
                namespace=entry.namespace,
                mac=entry.mac,
                scope=scope,
            )
        except errors.IpamError:
            continue
        return {"vm": f"{entry.namespace}/{entry.vm}", "text": documents.dump_yaml(manifest)}
    return None
