"""The register in the form of NetBox's CSV import: prefixes, IP ranges and IP addresses.

The columns are those of NetBox's import forms (netbox/ipam/forms/bulk_import.py). VRFs, tenants and roles are named;
NetBox takes a row only if it has them. An address space of a VRF is this VRF. Columns of tags and custom fields follow
if any object of the file has them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pools.core import spreadsheet_cells
from pools.core.register_import import attributes as core
from pools.core.register_import.attributes import Definitions
from pools.platform import database
from pools.register.imports import attributes
from pools.sql import statements

# What NetBox takes as the DNS name of an address.
_DNS_NAME = re.compile(r"(?=.*[A-Za-z])(?:[0-9A-Za-z_-]+|\*)(?:\.[0-9A-Za-z_-]+)*\.?")
_ADDRESS_STATES = {"active", "reserved", "deprecated", "dhcp", "slaac"}
_PREFIX_STATES = {"container", "active", "reserved", "deprecated"}
_ROLES = {"loopback", "secondary", "anycast", "vip", "vrrp", "hsrp", "glbp", "carp"}
_RANGE_STATES = {"active", "reserved", "deprecated"}

Row = tuple[str, ...]
Columns = dict[str, str]  # of tags and custom fields, which only some objects have


def aggregates_csv(cluster_id: int | None) -> bytes:
    """Return the containers that were aggregates as NetBox's import form takes them."""
    header = ("prefix", "rir", "tenant", "description", "comments")
    return _table(header, _rows(_PREFIXES, cluster_id, _aggregate))


def prefixes_csv(cluster_id: int | None) -> bytes:
    """Return other containers and CIDRs of pools as NetBox's import form takes prefixes."""
    header = ("prefix", "vrf", "tenant", "status", "role", "is_pool", "description", "comments")
    return _table(header, _rows(_PREFIXES, cluster_id, _prefix))


def addresses_csv(cluster_id: int | None) -> bytes:
    """Return held addresses, and reserved ranges of one address, as NetBox's import form takes IP addresses."""
    header = ("address", "vrf", "tenant", "status", "role", "dns_name", "description", "comments")
    held = _rows(_ADDRESSES, cluster_id, _address)
    single = _rows(
        _RANGES, cluster_id, lambda row: _reserved_address(row) if row[0] == row[1] else None
    )
    return _table(header, [*held, *single])


def ranges_csv(cluster_id: int | None) -> bytes:
    """Return reserved ranges of several addresses as NetBox's import form takes IP ranges."""
    header = (
        *("start_address", "end_address", "vrf", "tenant", "status", "role"),
        *("description", "comments"),
    )
    return _table(
        header, _rows(_RANGES, cluster_id, lambda row: _range(row) if row[0] != row[1] else None)
    )


def _rows(
    statement: str,
    cluster_id: int | None,
    shape: Callable[[Sequence[object]], Row | None],
) -> Iterator[tuple[Row, Columns]]:
    """Yield the rows with their further columns; the last column of a statement is the object's attributes."""
    definitions = attributes.definitions()
    for *row, details, current in database.rows(statement, {"cluster": cluster_id}, prepare=False):
        shaped = shape([*row, details])
        if shaped is not None:
            yield shaped, _columns(json.loads(str(details)), current, definitions)


def _columns(
    details: Mapping[str, str], current: object, definitions: Mapping[str, Definitions]
) -> Columns:
    utilized = {"mark_utilized": "true"} if "mark_utilized" in details else {}
    if current is None:
        return utilized | core.details_only(details)
    values = json.loads(str(current))
    defined = definitions[values.pop("target")]
    return utilized | core.write_back(details, core.Attributes(**values), defined)


def _table(header: Row, rows: Iterable[tuple[Row, Columns]]) -> bytes:
    rows = list(rows)
    more = core.names(columns for _, columns in rows)
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([*header, *more])
    for row, columns in rows:
        texts = [*row, *(columns.get(name, "") for name in more)]
        writer.writerow([spreadsheet_cells.escape(text) for text in texts])
    return stream.getvalue().encode()


def _aggregate(row: Sequence[object]) -> Row | None:
    prefix, _vrf, tenant, _status, _role, _is_pool, description, note, rir, _ = map(str, row)
    return (prefix, rir, tenant, description[:200], note) if rir else None


def _prefix(row: Sequence[object]) -> Row | None:
    prefix, vrf, tenant, status, role, is_pool, description, note, rir, _ = map(str, row)
    if rir:
        return None
    status = _choice(status, _PREFIX_STATES, "active")
    return prefix, vrf, tenant, status, role, is_pool, description[:200], note


def _address(row: Sequence[object]) -> Row:
    address, vrf, org, holder, description, details = row
    known: Mapping[str, str] = json.loads(str(details))
    dns_name = known.get("dns_name", "") or str(holder)
    plain = str(address).partition("/")[0]
    if not _DNS_NAME.fullmatch(dns_name) or dns_name == plain:
        dns_name = ""
    text = str(description) or ("" if str(holder) in {dns_name, plain} else str(holder))
    role = known.get("role", "").lower()
    states = _ADDRESS_STATES if ":" in plain else _ADDRESS_STATES - {"slaac"}
    return (
        str(address),
        str(vrf),
        str(org),
        _choice(known.get("status", ""), states, "active"),
        role if role in _ROLES else "",
        dns_name,
        text[:200],
        known.get("note", ""),
    )


def _reserved_address(row: Sequence[object]) -> Row:
    first, _last, vrf, reason, details = row
    known: Mapping[str, str] = json.loads(str(details))
    status = _choice(known.get("status", ""), {"reserved", "deprecated"}, "reserved")
    text = _description(reason, status)
    note = known.get("note", "")
    return str(first), str(vrf), known.get("tenant", ""), status, "", "", text, note


def _range(row: Sequence[object]) -> Row:
    first, last, vrf, reason, details = row
    known: Mapping[str, str] = json.loads(str(details))
    status = _choice(known.get("status", ""), _RANGE_STATES, "reserved")
    return (
        str(first),
        str(last),
        str(vrf),
        known.get("tenant", ""),
        status,
        known.get("role", ""),
        _description(reason, known.get("status", "")),
        known.get("note", ""),
    )


def _description(reason: object, status: str) -> str:
    """Return the reason of a reserved range; "" for one that is only the status of the source."""
    return "" if str(reason).lower() == status else str(reason)[:200]


def _choice(text: str, choices: set[str], default: str) -> str:
    return text.lower() if text.lower() in choices else default


_PREFIXES = statements.read("pools/export_prefixes")
_ADDRESSES = statements.read("pools/export_addresses")
_RANGES = statements.read("pools/export_ranges")
