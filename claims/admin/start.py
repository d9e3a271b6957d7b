"""What a VM owner begins with: their VMs, what is wrong with them, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from claims.address_index import duplicates
from claims.admin import duplicate_list, scoped, tables
from claims.admin.entries import entries as entry_pages
from claims.admin.ipamclaims import page as ipamclaim_page
from claims.admin.networks import page as network_page
from claims.core.networks import udn as core
from claims.ipamclaims import states
from claims.models import NAD, Entry, IndexEntry, IPAMClaim, IPPool, Network
from claims.networks import networks
from claims.workloads import vm_manifests
from pools.admin import find
from pools.core import errors
from pools.platform import documents

MOST = 20
FIRST = 10  # entries; the list has all of them


def page(request: HttpRequest) -> Iterator[find.Section]:
    """Of their namespaces only; nothing for somebody without a membership."""
    scope = scoped.request_scope(request)
    if scope.everything or not request.user.has_perm("claims.view_network"):
        return
    network_rows = networks.with_nads(scoped.rows(request, Network), scoped.rows(request, NAD))
    shown_networks = list(network_rows.order_by("cluster__name", "name")[:MOST])
    entries = scoped.rows(request, Entry).select_related("ippool__network__cluster")
    flagged, fine = _first(entries)
    namespaces = sorted({name for names in scope.namespaces.values() for name in names})
    yield find.Section(
        "cadastre/vm_owner.html",
        {
            "namespaces": namespaces,
            "networks": [_network(network) for network in shown_networks],
            "entries": entries.count(),
            "may_add": request.user.has_perm("claims.request_address"),
            "ippools": scoped.rows(request, IPPool).exists(),
            "manifest": _manifest([*fine, *flagged], scope),
            "tables": list(_tables(request, [*flagged, *fine])),
        },
    )


def _first(entries: QuerySet[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The newest entries: those that something contradicts, and others, as many as there is room."""
    wrong = IndexEntry.objects.filter(
        Q(duplicate_mac=True) | Q(duplicate_ip=True), entry__isnull=False
    )
    flagged = list(entries.filter(pk__in=wrong.values("entry")).order_by("-pk")[:FIRST])
    flagged_ids = {entry.pk for entry in flagged}
    newest = [entry for entry in entries.order_by("-pk")[:FIRST] if entry.pk not in flagged_ids]
    return flagged, newest[: FIRST - len(flagged)]


def _tables(request: HttpRequest, entries: list[Entry]) -> Iterator[tables.AdminTable]:
    troubles = list(_troubles(request))
    if troubles:
        yield _claims(troubles)
    if entries:
        yield _entries(request, entries)


def _claims(rows: list[Any]) -> tables.AdminTable:
    """Why each did not get its addresses, or may not keep them, and what to do."""
    codes = states.finding_codes(rows)
    answered = states.clusters_with_managed_claims({row.cluster_id for row in rows})
    cells = [
        (
            tables.claim(row, str(row)),
            tables.vm(row.namespace, row.vm),
            tables.addresses(row.ips or row.ips_requested),
            ipamclaim_page.state(row.state, states.state_description(row)),
            states.next_step(row, codes.get(row.pk, ()), claims_managed=row.cluster_id in answered),
        )
        for row in rows
    ]
    head = (gettext("Claim"), "VM", "IPs", gettext("State"), gettext("What to do next"))
    return tables.AdminTable(gettext("Claims that need you"), head, cells)


def _entries(request: HttpRequest, rows: list[Entry]) -> tables.AdminTable:
    duplicates_by_entry = duplicates.of_entries(rows, scoped.request_scope(request))
    running = entry_pages.running_with(request, rows)
    cells = [
        (
            tables.linked(row, row.mac),
            tables.addresses(row.ips),
            tables.vm(row.namespace, row.vm),
            tables.linked(row.ippool.network, row.ippool.network.name),
            entry_pages.seen_in_cluster(row, running.get((row.ippool.network_id, row.mac))),
            duplicate_list.badge(duplicates_by_entry.get(row.pk, []), row.ippool.network),
        )
        for row in rows
    ]
    head = (
        "MAC",
        "IPs",
        "VM",
        gettext("Network"),
        gettext("Seen in cluster"),
        gettext("Duplicates"),
    )
    return tables.AdminTable(
        gettext("Your MAC entries"), head, cells, reverse("admin:claims_entry_changelist")
    )


def _network(network: Any) -> dict[str, Any]:
    return {
        "row": network,
        "gateways": core.gateways(network),
        "verdict": network_page.verdict(networks.static_vm_check(network, network.shown_nads)),
        "nads": ", ".join(str(nad) for nad in network.shown_nads),
    }


def _troubles(request: HttpRequest) -> Iterator[IPAMClaim]:
    rows = states.with_state(scoped.rows(request, IPAMClaim).filter(gone_at=None))
    wrong = rows.filter(state__in={states.FAILED, states.CONFLICT, states.LEAKED})
    yield from wrong.select_related("network__cluster").order_by("-pk")[:MOST]


def _manifest(entries: list[Entry], scope: Any) -> dict[str, str] | None:
    """The VM of the first entry that names one and that its cluster can start."""
    for entry in entries:
        if not entry.vm:
            continue
        try:
            manifest = vm_manifests.vm_manifest(
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
