"""The register in the form of NetBox's CSV import: aggregates, prefixes, IP ranges and IP addresses.

The columns are those of NetBox's import forms (netbox/ipam/forms/bulk_import.py). VRFs, tenants and roles are named;
NetBox takes a row only if it has them. An address space of a VRF is this VRF. Columns of tags and custom fields follow
if any object of the file has them.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pools.core import spreadsheet_cells
from pools.core.register_import import attributes as core
from pools.core.register_import.attributes import Definitions
from pools.platform import database
from pools.register.imports import attributes
from pools.sql import statements

COLUMNS = {
    "aggregates": ("prefix", "rir", "tenant", "description", "comments"),
    "prefixes": ("prefix", "vrf", "tenant", "status", "role", "is_pool", "description", "comments"),
    "ip-ranges": (
        *("start_address", "end_address", "vrf", "tenant", "status", "role"),
        *("description", "comments"),
    ),
    "ip-addresses": (
        *("address", "vrf", "tenant", "status", "role", "dns_name", "description", "comments"),
    ),
}
# What NetBox takes as the DNS name of an address.
_DNS_NAME = re.compile(r"(?=.*[A-Za-z])(?:[0-9A-Za-z_-]+|\*)(?:\.[0-9A-Za-z_-]+)*\.?")
_STATES = {"active", "reserved", "deprecated"}
_ROLES = {"loopback", "secondary", "anycast", "vip", "vrrp", "hsrp", "glbp", "carp"}

Values = dict[str, str]


def write(kind: str, cluster_id: int | None) -> bytes:
    """Return the objects of a kind (COLUMNS) as NetBox's import form takes them."""
    rows = list(_objects(kind, cluster_id))
    names = {name for row in rows for name in row if core.is_attribute(name)}
    names |= {name for row in rows for name in row if name == "mark_utilized"}
    more = sorted(names, key=lambda name: (name != "tags", name))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, (*COLUMNS[kind], *more), restval="", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: spreadsheet_cells.escape(text) for name, text in row.items()})
    return stream.getvalue().encode()


def _objects(kind: str, cluster_id: int | None) -> Iterator[Values]:
    """Yield the texts of each object by column, with those of its tags and custom fields."""
    definitions = attributes.definitions()
    if kind in {"aggregates", "prefixes"}:
        for row, details in _rows(_PREFIXES, cluster_id, definitions):
            if ("rir" in details) is (kind == "aggregates"):
                status = details.get("status", row["status"])
                yield {**row, "status": _choice(status, {*_STATES, "container"}, "active")}
        return
    if kind == "ip-addresses":
        for row, details in _rows(_ADDRESSES, cluster_id, definitions):
            yield {**row, **_address(row, details)}
    for row, details in _rows(_RANGES, cluster_id, definitions):
        is_single = row["start_address"] == row["end_address"]
        if is_single is (kind == "ip-addresses"):
            states = _STATES - {"active"} if is_single else _STATES
            status = _choice(details.get("status", ""), states, "reserved")
            # A reason that is only the status of the source is no description.
            of_source = status if is_single else details.get("status", "")
            text = "" if row["description"].lower() == of_source else row["description"]
            shown = {"status": status, "description": text}
            shown |= {"address": row["start_address"], "role": ""} if is_single else {}
            yield {**row, **shown}


def _rows(
    statement: str, cluster_id: int | None, definitions: Mapping[str, Definitions]
) -> Iterator[tuple[Values, Mapping[str, str]]]:
    """Yield the texts of each object by column, and the details that its source gave it."""
    for columns in database.fetch(statement, {"cluster": cluster_id}):
        row: dict[str, Any] = dict(columns)
        details: Mapping[str, str] = json.loads(row.pop("details"))
        current = json.loads(row.pop("attributes") or "{}")
        defined = definitions.get(current.pop("target", ""), {})
        values = core.Attributes(**current) if current else None
        texts = {name: details.get(name, "") for name in ("tenant", "role", "rir")}
        texts |= {"comments": details.get("note", "")}
        texts |= {"mark_utilized": "true"} if "mark_utilized" in details else {}
        texts |= {**row, "description": row["description"][:200]}
        yield {**texts, **core.write_back(details, values, defined)}, details


def _address(row: Mapping[str, str], details: Mapping[str, str]) -> Values:
    """Return the columns of a held address: its holder is the DNS name if NetBox takes it as one."""
    plain, holder, role = row["address"].partition("/")[0], row["holder"], row["role"].lower()
    dns_name = details.get("dns_name", "") or holder
    if not _DNS_NAME.fullmatch(dns_name) or dns_name == plain:
        dns_name = ""
    states = _STATES | {"dhcp"} | ({"slaac"} if ":" in plain else set())
    return {
        "status": _choice(details.get("status", ""), states, "active"),
        "role": role if role in _ROLES else "",
        "dns_name": dns_name,
        "description": row["description"] or ("" if holder in {dns_name, plain} else holder)[:200],
    }


def _choice(text: str, choices: set[str], default: str) -> str:
    return text.lower() if text.lower() in choices else default


_PREFIXES = statements.read("pools/export_prefixes")
_ADDRESSES = statements.read("pools/export_addresses")
_RANGES = statements.read("pools/export_ranges")
