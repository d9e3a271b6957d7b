"""Which column of a table of prefixes or addresses is which field, by the names of its header.

One list of names serves NetBox's exports and its import form, phpIPAM and plain spreadsheets; an Infoblox file
has a header for each kind of object, in any row. docs/how-to/bring-your-register.md shows the same as tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PREFIX, ADDRESS, RANGE = KINDS = ("prefix", "address", "range")

# The field of a row -> the names of its column, in small letters and with single blanks.
_NAMES = {
    "prefix": ("prefix", "cidr", "network", "subnet", "aggregate", "network address", "prefix (flat)"),
    "mask": ("mask", "netmask", "subnet mask", "prefix length", "prefixlen", "cidr mask", "bitmask"),
    "address": (
        "ip address", "address", "ip", "ip addr", "ipv4 address", "ipv6 address", "ipaddress", "host address",
    ),
    "first": ("start address", "start ip", "range start", "first address", "first ip"),
    "last": ("end address", "end ip", "range end", "last address", "last ip"),
    "status": ("status", "ip state", "state", "ip status"),
    "role": ("role",),
    "vrf": ("vrf", "vrf name", "network view"),
    "tenant": ("tenant", "customer", "organization", "organisation", "org"),
    "site": ("site", "location", "scope", "scope name", "section"),
    "cluster": ("cluster",),
    "dns_name": ("dns name", "hostname", "fqdn", "host name", "dns"),
    "holder": ("holder", "owner", "used by", "assigned to", "device", "virtual machine", "parent"),
    "interface": ("interface", "port"),
    "pool": ("pool name", "name"),
    "description": ("description", "comment", "notes"),
    "note": ("note", "comments", "remark"),
    "mac": ("mac", "mac address"),
    "vlan": ("vlan", "vlan number", "vlan id"),
    "gateway": ("gateway", "is gateway", "ip is gateway", "is gw"),
    "rir": ("rir",),
    "folder": ("is folder", "folder"),
    "external_id": ("id",),
}  # fmt: skip
_FIELDS = {name: field for field, names in _NAMES.items() for name in names}
# Of NetBox's prefix tables: columns that it computes, and says nothing of the prefix itself.
_COMPUTED = {
    "children", "utilization", "depth", "prefixes", "size", "pool", "marked utilized", "family", "created",
    "last updated", "assigned", "tags", "contacts", "url", "marked populated", "added", "date added",
}  # fmt: skip
_CLEAN = re.compile(r"[^a-z0-9()]+")


@dataclass(frozen=True)
class Layout:
    """The kind of a table's rows, the column (from 0) of each field, and the columns that are not read."""

    kind: str
    format: str
    columns: Mapping[str, int]
    ignored: tuple[str, ...] = ()

    def values(self, cells: Sequence[str]) -> dict[str, str]:
        """Return the texts of a row by field, without the empty ones."""
        texts = {
            name: cells[column].strip()
            for name, column in self.columns.items()
            if column < len(cells)
        }
        return {name: text for name, text in texts.items() if text}


def recognise(header: Sequence[str]) -> Layout | None:
    """Return the layout of a table with this header; None if it names neither prefixes nor addresses."""
    names = [_CLEAN.sub(" ", cell.lower().rstrip("*")).strip() for cell in header]
    columns: dict[str, int] = {}
    ignored = []
    for column, name in enumerate(names):
        field = _FIELDS.get(name)
        if field is not None and field not in columns:
            columns[field] = column
        elif name and name not in _COMPUTED and name != "prefix (flat)":
            ignored.append(header[column].strip())
    kind = _kind(columns)
    if kind is None:
        return None
    return Layout(kind, _format(names), columns, tuple(ignored))


def _kind(columns: Mapping[str, int]) -> str | None:
    if "first" in columns and "last" in columns:
        return RANGE
    if "address" in columns and not (
        "prefix" in columns and columns["prefix"] < columns["address"]
    ):
        return ADDRESS
    if "prefix" in columns:
        return PREFIX
    # A network is often written as an address beside its mask.
    return ADDRESS if "address" in columns else None


def _format(names: Sequence[str]) -> str:
    if {"section", "ip state", "ip is gateway", "master subnet", "is folder"} & set(names):
        return "phpipam"
    netbox = {"status", "vrf"} <= set(names) or "rir" in names or "scope type" in names
    return "netbox" if netbox else "spreadsheet"


# --- Infoblox -------------------------------------------------------------------------------------

_INFOBLOX_KINDS = {
    "network": PREFIX,
    "ipv6network": PREFIX,
    "networkcontainer": PREFIX,
    "ipv6networkcontainer": PREFIX,
    "hostaddress": ADDRESS,
    "ipv6hostaddress": ADDRESS,
    "fixedaddress": ADDRESS,
    "ipv6fixedaddress": ADDRESS,
    "hostrecord": ADDRESS,
    "arecord": ADDRESS,
    "aaaarecord": ADDRESS,
    "dhcprange": RANGE,
    "ipv6dhcprange": RANGE,
}
_INFOBLOX_NAMES = {
    "address": "address",
    "ip_address": "address",
    "addresses": "address",
    "netmask": "mask",
    "cidr": "mask",
    "parent": "holder",
    "fqdn": "dns_name",
    "name": "dns_name",
    "mac_address": "mac",
    "duid": "mac",
    "start_address": "first",
    "end_address": "last",
    "comment": "description",
    "network_view": "vrf",
    "ea-site": "site",
    "ea-location": "site",
    "ea-tenant": "tenant",
    "ea-customer": "tenant",
    "ea-owner": "tenant",
    "ea-organization": "tenant",
    "ea-vlan": "vlan",
    "ea-cluster": "cluster",
}


def is_infoblox_header(cells: Sequence[str]) -> bool:
    return bool(cells) and cells[0].strip().lower().startswith("header-")


def infoblox_layout(header: Sequence[str]) -> tuple[str, Layout | None]:
    """Return the type of objects that a HEADER row begins, and their layout; None for other types."""
    object_type = header[0].strip().lower().removeprefix("header-")
    kind = _INFOBLOX_KINDS.get(object_type)
    if kind is None:
        return object_type, None
    columns: dict[str, int] = {}
    ignored = []
    for column, cell in enumerate(header[1:], start=1):
        name = cell.strip().lower().rstrip("*")
        field = _INFOBLOX_NAMES.get(name)
        if field == "address" and kind == PREFIX:
            field = "prefix"
        if field is not None and field not in columns:
            columns[field] = column
        elif name.startswith("ea-"):
            ignored.append(cell.strip())
    return object_type, Layout(kind, "infoblox", columns, tuple(ignored))


def split_addresses(values: dict[str, str]) -> list[dict[str, str]]:
    """Return a row for each address of a host record, which lists them with commas."""
    listed = [text.strip() for text in values.get("address", "").split(",") if text.strip()]
    if len(listed) < 2:
        return [values]
    return [{**values, "address": address} for address in listed]


def guess(cells: Sequence[str]) -> Layout | None:
    """Return the layout of a list without header that begins with a prefix or an address; None for others."""
    first = cells[0].strip()
    if _PLAIN_PREFIX.fullmatch(first):
        return Layout(PREFIX, "spreadsheet", _positions(("prefix", "description", "tenant"), cells))
    if _PLAIN_ADDRESS.fullmatch(first):
        names = ("address", "holder", "description", "tenant")
        return Layout(ADDRESS, "spreadsheet", _positions(names, cells))
    return None


_PLAIN_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}")
_PLAIN_PREFIX = re.compile(rf"(?:{_PLAIN_ADDRESS.pattern})/[0-9.]+")


def _positions(names: Sequence[str], cells: Sequence[str]) -> dict[str, int]:
    return {name: column for column, name in enumerate(names[: len(cells)])}
