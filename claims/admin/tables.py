"""Tables of entries, claims, workloads, networks and IPPools, and VM manifests, for pages that show several kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import namespaces
from claims.ipamclaims import states
from claims.models import Entry, IPAMClaim, IPPool, Network, Workload
from claims.models.networks import EntrySource
from claims.workloads import vm_lookup
from pools.admin.find import AdminTable
from pools.core import errors
from pools.platform import documents
from pools.platform.admin import display, pages

Cell = SafeString | str
SOURCE_LABELS = {
    EntrySource.HAND.value: _("manual"),
    EntrySource.API.value: _("REST API"),
    EntrySource.CLUSTER.value: _("cluster's IPPool"),
    EntrySource.IMPORT.value: _("import"),
    EntrySource.ADOPTED.value: _("adopted workload"),
    EntrySource.REQUEST.value: _("VM owner's request"),
}
_LONG_NAME = 24  # characters; a longer name may wrap


def row_link(row: Any, text: object = "") -> Cell:
    """Return a link to the row's page, or plain text if it has none."""
    return display.row_link(row, text) if admin.site.is_registered(type(row)) else str(text or row)


def address_links(ips: Iterable[str]) -> Cell:
    links = ((display.address_link(ip.partition("/")[0]),) for ip in ips)
    return format_html_join(" ", "{}", links) or display.DASH


def source_label(source: str) -> str:
    """Return the label of an entry's source."""
    return str(SOURCE_LABELS[source])


def vm_link(namespace: str, name: str, shown: str = "") -> SafeString:
    """Return a VM's name as a link to the search results of that VM; a short name does not wrap."""
    text = f"{namespace}/{name}" if namespace and name else name
    link = display.search_link(text, shown)
    if len(text) > _LONG_NAME:
        return link
    return format_html('<span class="cad-nowrap">{}</span>', link)


def claim_link(row: IPAMClaim, text: str) -> SafeString:
    """Return a link to a claim that wraps after the dots of its name."""
    parts = ((part,) for part in text.split("."))
    return display.row_link(row, format_html_join(SafeString(".<wbr>"), "{}", parts))


def shared_texts(texts: Iterable[str]) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """Return each text that occurs more than once, with its count, and by text its number in this list."""
    counts = Counter(texts)
    shared = [(text, count) for text, count in counts.items() if count > 1]
    return shared, {text: number for number, (text, _count) in enumerate(shared, 1)}


def mac_link(value: str | None) -> Cell:
    if not value:
        return display.DASH
    return display.address(value, reverse("admin:find", query={"q": value}))


def entries(rows: Iterable[Entry], *, more: str = "") -> AdminTable:
    """Return the table of entries; `rows` must have loaded their IPPool's network and cluster."""
    cells = [
        (
            display.address(row.mac, display.url_of(row)),
            address_links(row.ips),
            vm_link(row.namespace, row.vm),
            row_link(row.ippool.network),
            source_label(row.source),
        )
        for row in rows
    ]
    return AdminTable(
        gettext("MAC entries"),
        ("MAC", "IPs", "VM", gettext("Network"), gettext("Source")),
        cells,
        more,
    )


def claims(rows: Iterable[IPAMClaim], *, more: str = "") -> AdminTable:
    cells = [
        (
            claim_link(row, str(row)),
            vm_link(row.namespace, row.vm),
            mac_link(row.mac),
            address_links(row.ips or row.ips_requested),
            states.state_description(row),
            row_link(row.network),
        )
        for row in rows
    ]
    return AdminTable(
        gettext("Claims"),
        (gettext("Claim"), "VM", "MAC", "IPs", gettext("Condition"), gettext("Network")),
        cells,
        more,
    )


def _place_link(row: Workload) -> SafeString:
    query = {"workload": row.pk}
    url = reverse("admin:claims_network_topology", args=[row.network_id], query=query)
    return display.link(f"{url}#here", gettext("Where is this?"))


def workloads(rows: Iterable[Workload], *, more: str = "") -> AdminTable:
    cells = [
        (
            format_html("{} {}", row.get_kind_display(), display.search_link(str(row))),
            mac_link(row.mac),
            address_links(row.ips),
            row.phase or display.DASH,
            display.two_lines(row_link(row.network), _place_link(row)),
        )
        for row in rows
    ]
    return AdminTable(
        gettext("Workloads"),
        (gettext("Workload"), "MAC", "IPs", gettext("Phase"), gettext("Network")),
        cells,
        more,
    )


def networks(rows: Iterable[Network], *, more: str = "") -> AdminTable:
    cells = [
        (row_link(row, row.name), row.cluster.name, ", ".join(row.subnets) or display.DASH)
        for row in rows
    ]
    return AdminTable(
        gettext("Networks"),
        (gettext("Network"), gettext("Cluster"), gettext("Subnets")),
        cells,
        more,
    )


def ippools(rows: Iterable[IPPool], *, more: str = "") -> AdminTable:
    cells = [(row_link(row, row.name), row.cluster.name, row_link(row.network)) for row in rows]
    return AdminTable("IPPools", ("IPPool", gettext("Cluster"), gettext("Network")), cells, more)


@dataclass(frozen=True)
class VMText:
    """A manifest, or the reason why there is none; one of them is empty."""

    text: str = ""
    why_not: str = ""


def manifest_text(
    network: Network,
    *,
    vm: str,
    namespace: str,
    mac: str | None,
    scope: namespaces.Scope,
    missing_vm_text: str,
) -> VMText:
    """Return the manifest of a VM as YAML, or the reason why it cannot be shown.

    `missing_vm_text` is the reason if the VM or its namespace is not known.
    """
    if not vm or not namespace:
        return VMText(why_not=missing_vm_text)
    try:
        manifest = vm_lookup.vm_manifest(network, vm=vm, namespace=namespace, mac=mac, scope=scope)
    except errors.IpamError as error:
        return VMText(why_not=pages.sentence(error.message))
    return VMText(text=documents.dump_yaml(manifest))
