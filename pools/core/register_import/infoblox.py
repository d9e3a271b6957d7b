"""Infoblox's CSV files: each type of objects has a header row of its own, in any row of the file.

The names of types and columns are those of the CSV import reference of NIOS 9. A column with an asterisk is one
that NIOS requires, `_new_…` renames on an import there, and `EAInherited-…` says whence an attribute comes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pools.core.register_import import mentions, parsing
from pools.core.register_import.columns import ADDRESS, MENTIONS, PREFIX, RANGE, Layout
from pools.core.register_import.tables import Row, take_gateways

_KINDS = {
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
}
# Of several columns of a field, the first in this order that has a text counts.
_NAMES = {
    "address": ("address", "ip_address", "addresses"),
    "addresses6": ("ipv6_addresses",),
    "mask": ("netmask", "cidr"),
    "holder": ("parent",),
    "dns_name": ("dname", "fqdn", "name"),
    "mac": ("mac_address", "duid"),
    "first": ("start_address",),
    "last": ("end_address",),
    "description": ("comment", "ea-description", "ea-network name", "ea-name"),
    "vrf": ("network_view",),
    "gateway": ("routers",),
    "disabled": ("disabled",),
    "action": ("import-action",),
    "site": ("ea-site", "ea-location", "ea-building"),
    "tenant": ("ea-tenant", "ea-customer", "ea-owner", "ea-organization", "ea-department"),
    "vlan": ("ea-vlan", "ea-vlan id", "vlans"),
    "cluster": ("ea-cluster",),
}
_UNSET_MAC = "00:00:00:00:00:00"  # of a reservation


def is_header(cells: Sequence[str]) -> bool:
    return bool(cells) and cells[0].strip().lower().startswith("header-")


def read_header(header: Sequence[str]) -> tuple[str, Layout | None]:
    """Return the type of objects that a header row begins, and their layout; None for types that are not read."""
    object_type = header[0].strip().lower().removeprefix("header-")
    names = [cell.strip().lower().rstrip("*").strip() for cell in header]
    kind = _KINDS.get(object_type) or _kind(names)
    if kind is None:
        return object_type, None
    columns = {}
    for name, alternatives in _NAMES.items():
        numbers = [names.index(text) for text in alternatives if text in names]
        if numbers:
            columns["prefix" if name == "address" and kind == PREFIX else name] = numbers
    read = {column for numbers in columns.values() for column in numbers}
    ignored = {
        header[column].strip(): column
        for column, name in enumerate(names)
        if name.startswith("ea-") and column not in read
    }
    return object_type, Layout(kind, "infoblox", columns, ignored, width=len(header), names=header)


def _kind(names: Sequence[str]) -> str | None:
    """Return what the objects of another type are: DHCP ranges, reserved ranges, bulk hosts, and records with an address."""
    if {"start_address", "end_address"} <= {*names}:
        return RANGE
    return None if {"address", "ip_address"}.isdisjoint(names) else ADDRESS


def read_object(object_type: str, layout: Layout, cells: Sequence[str]) -> list[Row]:
    """Return the rows of an object: a host record has one for each of its addresses, a network one for its router.

    An object that the file deletes has none.
    """
    values = layout.values(cells)
    if values.pop("action", "").upper() == "D":
        return []
    mentions.add(values, layout.others(cells), "")
    if values.pop("disabled", "").lower() == "true":
        values["status"] = "disabled"
    if object_type.endswith("container"):
        values["status"] = "container"
    if "/" in values.get("vlan", ""):
        values["vlan"] = values["vlan"].rpartition("/")[2]  # view/first/last/id
    if values.get("mac") == _UNSET_MAC:
        del values["mac"]
        values.setdefault("status", "reserved")
    if layout.kind == RANGE and "dns_name" in values:
        values.setdefault("description", values["dns_name"])
        del values["dns_name"]
    listed = ",".join((values.get("address", ""), values.pop("addresses6", ""))).split(",")
    addresses = [text.strip() for text in listed if text.strip()]
    gateways = take_gateways(Row(layout.kind, values))
    if layout.kind != ADDRESS or not addresses:
        return [Row(layout.kind, values), *gateways]
    return [*(Row(ADDRESS, {**values, "address": address}) for address in addresses), *gateways]


@dataclass
class Hosts:
    """The addresses of a file, to join the objects that describe the same host.

    An export has a host record and, below another header, a host address for each of its addresses.
    """

    _texts: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def joins(self, values: dict[str, str]) -> bool:
        """Return True if an earlier object has the address of the same host, and give it the texts that it lacks.

        A fixed address may have no name, or one without the domain that the host's record has.
        """
        if "address" not in values:
            return False
        key = parsing.read_vrf(values.get("vrf", "")), values["address"]
        earlier = self._texts.setdefault(key, values)
        if earlier is values or not _is_same_host(_host(earlier), _host(values)):
            return False
        if len(_host(values)) > len(_host(earlier)):
            for name in ("holder", "dns_name"):
                earlier.pop(name, None)
        both = [texts[MENTIONS] for texts in (earlier, values) if MENTIONS in texts]
        for name, text in values.items():
            earlier.setdefault(name, text)
        if both:
            earlier[MENTIONS] = ", ".join(both)
        return True


def _host(values: Mapping[str, str]) -> str:
    return (values.get("holder") or values.get("dns_name") or "").lower().rstrip(".")


def _is_same_host(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return short in {"", long, long.partition(".")[0]}
