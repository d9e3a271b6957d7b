"""Entries, claims, workloads, networks and IPPools as tables of pages that show several kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from claims.ipamclaims import states
from claims.models import Entry, IPAMClaim, IPPool, Network, Workload
from pools.platform.admin import display

Cell = SafeString | str
_LONG = 24  # characters


@dataclass(frozen=True)
class AdminTable:
    """For templates/cadastre/tables.html; `more` leads to the whole list."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    more: str = ""


def linked(row: Any, text: object = "") -> Cell:
    """A link where the row has a page."""
    return display.to(row, text) if admin.site.is_registered(type(row)) else str(text or row)


def addresses(ips: Iterable[str]) -> Cell:
    links = ((display.address_link(ip.partition("/")[0]),) for ip in ips)
    return format_html_join(" ", "{}", links) or display.DASH


def vm(namespace: str, name: str, shown: str = "") -> SafeString:
    """A VM's name, which leads to all that is known of the VM; in one line unless it is long."""
    text = f"{namespace}/{name}" if namespace and name else name
    link = display.search_link(text, shown)
    if len(text) > _LONG:
        return link
    return format_html('<span class="cad-nowrap">{}</span>', link)


def claim(row: IPAMClaim, text: str) -> SafeString:
    """A link; a line ends before the network's name rather than within the VM's."""
    parts = ((part,) for part in text.split("."))
    return display.to(row, format_html_join(SafeString(".<wbr>"), "{}", parts))


def mac(value: str | None) -> Cell:
    if not value:
        return display.DASH
    return display.address(value, reverse("admin:find", query={"q": value}))


def entries(rows: Iterable[Entry], *, more: str = "") -> AdminTable:
    """`rows` with their IPPool's network and cluster."""
    cells = [
        (
            linked(row, row.mac),
            addresses(row.ips),
            vm(row.namespace, row.vm),
            linked(row.ippool.network),
            row.get_source_display(),
        )
        for row in rows
    ]
    return AdminTable(
        gettext("MAC entries"),
        ("MAC", "IPs", "VM", gettext("Network"), gettext("Source")),
        cells,
        more,
    )


def claims(rows: Iterable[IPAMClaim]) -> AdminTable:
    cells = [
        (
            claim(row, str(row)),
            vm(row.namespace, row.vm),
            mac(row.mac),
            addresses(row.ips or row.ips_requested),
            states.state_description(row),
            linked(row.network),
        )
        for row in rows
    ]
    return AdminTable(
        gettext("Claims"),
        (gettext("Claim"), "VM", "MAC", "IPs", gettext("Condition"), gettext("Network")),
        cells,
    )


def workloads(rows: Iterable[Workload]) -> AdminTable:
    cells = [
        (
            format_html("{} {}", row.get_kind_display(), display.search_link(str(row))),
            mac(row.mac),
            addresses(row.ips),
            row.phase or display.DASH,
            linked(row.network),
        )
        for row in rows
    ]
    return AdminTable(
        gettext("Running workloads"),
        (gettext("Workload"), "MAC", "IPs", gettext("Phase"), gettext("Network")),
        cells,
    )


def networks(rows: Iterable[Network]) -> AdminTable:
    cells = [
        (linked(row, row.name), row.cluster.name, ", ".join(row.subnets) or display.DASH)
        for row in rows
    ]
    return AdminTable(
        gettext("Networks"), (gettext("Network"), gettext("Cluster"), gettext("Subnets")), cells
    )


def ippools(rows: Iterable[IPPool]) -> AdminTable:
    cells = [(linked(row, row.name), row.cluster.name, linked(row.network)) for row in rows]
    return AdminTable("IPPools", ("IPPool", gettext("Cluster"), gettext("Network")), cells)
