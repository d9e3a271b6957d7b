"""Rows of a table: what each is, where its own cells say more than the header of the table.

Spreadsheets mix prefixes, ranges and addresses in one column, and phpIPAM writes the subnet above its addresses.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, ip_address, ip_network, summarize_address_range

from pools.core import spreadsheet_cells
from pools.core.addresses import Address
from pools.core.register_import import columns, mentions, parsing
from pools.core.register_import.columns import ADDRESS, PREFIX, RANGE, Layout

COMMENT, FOLDER = "comment lines", "folders, which hold no address space"
NO_HOSTS = "lines with a text and no address, such as *No hosts*"

_ADDRESS = r"[0-9a-fA-F.:]+"
_ONE_ADDRESS = re.compile(_ADDRESS)
_REMARK = re.compile(r"\([^()]*\)")  # 10.0.0.1 (management)
_WILDCARD = re.compile(r"((?:[0-9]{1,3}\.){1,3})[*xX](?:\.[*xX])*")  # 10.0.1.* or 10.0.x.x
_HEADING = re.compile(rf"({_ADDRESS}/[0-9]+)(?: -(?: (.*))?)?")
_TITLE = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}/[0-9]{2}(?![0-9.])")
_VLAN = re.compile("vlan: ([0-9]+)")
_VLAN_BEHIND = re.compile(r"([0-9]+)(?: - .*)?\)")  # the text of `(vlan: `
_FOLDER = re.compile(r"folder|.*[(\[]folder[)\]]", re.IGNORECASE)
_MOST_HOSTS = {4: 30, 6: 126}  # the longest prefix of a network, not of its addresses
# The states of addresses and subnets in phpIPAM's database.
_STATES = {"1": "offline", "2": "active", "3": "reserved", "4": "dhcp", "used": "active"}
_DECIMAL = re.compile("[0-9]{8,39}")
_UNSET = {"\\n", "na", "/"}  # beside those of columns.py


@dataclass
class Row:
    """A row: its kind (columns.KINDS) and its texts by field; or `left_out`, why it is none."""

    kind: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    left_out: str = ""


def read_row(layout: Layout, cells: Sequence[str]) -> Row:
    """Return the row of a table that is not Infoblox's."""
    if cells[0].lstrip().startswith("#"):
        return Row(left_out=COMMENT)
    if layout.is_list:
        cells = columns.split_place(cells)
    if layout.kind == ADDRESS and (heading := read_heading(cells)):
        return heading
    texts = layout.values(cells)
    if texts.get("status", "").lower() in parsing.FREE and "dhcp" in " ".join(cells).lower():
        texts["status"] = "dhcp"  # free for a DHCP server
    if layout.format == "phpipam":
        if layout.kind == ADDRESS and [*texts] == [ADDRESS] and not _has_digit(texts[ADDRESS]):
            return Row(left_out=NO_HOSTS)
        texts = _read_phpipam(texts)
        if _is_folder(texts):
            return Row(left_out=FOLDER)
    return _classify(layout, texts)


def complete(layout: Layout, cells: list[str], base: str) -> str:
    """Give the places of a row what its last numbers lack, and return what the addresses of the next rows begin with.

    It is that of the prefix beside them, else of the last line with a network.
    """
    if layout.format != "spreadsheet":
        return base
    named = [
        cells[n] for n in layout.columns.get(PREFIX, ()) if n < len(cells) and cells[n].strip()
    ]
    lone = [cell for cell in cells if cell.strip()]
    if named or len(lone) == 1:
        base = mentions.find_base(" ".join(named or lone)) or (base if not named else "")
    for name in (ADDRESS, "first", "last"):
        for column in layout.columns.get(name, ()):
            if column < len(cells):
                cells[column] = mentions.complete(cells[column], base)
    return base


def split_row(row: Row) -> list[Row]:
    """Return a row for each address or prefix of one whose cell has several: `10.0.0.1, 10.0.0.2 (management)`."""
    text = _REMARK.sub(" ", row.texts.get(row.kind, ""))
    if _ONE_ADDRESS.fullmatch(text):
        return [row]
    parts = spreadsheet_cells.split_values(
        text if "/" in text else spreadsheet_cells.spell_out(text)
    )
    if not parts or not all(map(_is_one_of_several, parts)):
        return [row]
    return [Row(row.kind, {**row.texts, row.kind: part}) for part in dict.fromkeys(parts)]


def _is_one_of_several(text: str) -> bool:
    """Return True for an address or a prefix; a mask or a wildcard behind one belongs to it."""
    address = text.partition("/")[0]
    return _is_address(address) and not address.startswith(("255.", "0."))


def read_heading(cells: Sequence[str]) -> Row | None:
    """Return the prefix that stands alone above its addresses, with its description; None for other rows."""
    if "/" not in cells[0] or any(map(str.strip, cells[1:])):
        return None
    match = _HEADING.fullmatch(cells[0].strip())
    if match is None or not _is_network(match[1]):
        return None
    texts = {"prefix": match[1], "heading": "yes"}
    description = match[2] or ""
    before, _sign, behind = description.rpartition("(vlan: ")
    if vlan := _VLAN_BEHIND.fullmatch(behind):
        texts["vlan"], description = vlan[1], before.strip()
    return Row(PREFIX, texts | ({"description": description} if description else {}))


def read_headings(above: Sequence[tuple[int, Sequence[str]]]) -> list[tuple[int, Row]]:
    """Return the prefixes among the rows (number, cells) above the header of a table of addresses.

    phpIPAM's export of a subnet begins with its description, its prefix and its VLAN, each in a row.
    """
    headings: list[tuple[int, Row]] = []
    before = ""
    for number, cells in above:
        if not cells:
            continue
        text = " ".join(filter(None, (cell.strip() for cell in cells)))
        heading = read_heading(cells) or _read_title(text)
        if heading:
            if before:
                heading.texts.setdefault("description", before)
            headings.append((number, heading))
        elif headings and (match := _VLAN.match(text)):
            headings[-1][1].texts["vlan"] = match[1]
        before = text
    return headings


def _read_title(text: str) -> Row | None:
    """Return the network that a sheet is about, by a line above its table that has other words beside it."""
    networks = _TITLE.findall(text)
    if len(networks) != 1 or not mentions.find_base(text) or not _is_network(networks[0]):
        return None
    description = " ".join(text.replace(networks[0], " ").split())
    return Row(PREFIX, {"prefix": networks[0], "heading": "yes", "description": description})


def take_prefix(layout: Layout, row: Row) -> Row | None:
    """Return the prefix that a spreadsheet names beside an address or a range as a row of its own; None if it names none."""
    texts = row.texts
    if row.kind == PREFIX or layout.format != "spreadsheet" or "prefix" not in texts:
        return None
    prefix, mask = texts["prefix"], texts.get("mask", "").removeprefix("/")
    text = f"{prefix}/{mask}" if mask and "/" not in prefix else prefix
    if not _is_network(text, strict=False):
        return None
    return Row(PREFIX, {"prefix": text, "heading": "yes", **_place(texts)})


def take_gateways(row: Row) -> list[Row]:
    """Return the gateways that a table names beside a prefix or an address as rows of their own."""
    texts = row.texts
    parts = spreadsheet_cells.split_values(_REMARK.sub(" ", texts.get("gateway", "")))
    gateways = [gateway for part in parts if _is_address(gateway := part.partition("/")[0])]
    if not gateways:
        return []
    del texts["gateway"]
    address = texts.get("address", "").partition("/")[0]
    if address in gateways:
        texts["gateway"] = "yes"
        gateways.remove(address)
    return [Row(ADDRESS, {"address": ip, "gateway": "yes", **_place(texts)}) for ip in gateways]


def _place(texts: dict[str, str]) -> dict[str, str]:
    return {name: texts[name] for name in ("vrf", "cluster", "site") if name in texts}


def starts_table(layout: Layout, cells: Sequence[str], row: Row) -> Layout | None:
    """Return the layout of another table that begins below the first with a header of its own; None if none does."""
    place = row.texts.get("first" if layout.kind == RANGE else layout.kind, "")
    if _has_digit(place):
        return None
    other = columns.recognise(cells)
    return other if other is not None and len(other.columns) > 1 else None


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _read_phpipam(texts: dict[str, str]) -> dict[str, str]:
    """Return the texts without those that phpIPAM writes for nothing, and with the names of its states."""
    texts = {name: text for name, text in texts.items() if text.lower() not in _UNSET}
    for name in ("site", "device"):  # numbers are ids of its database
        if texts.get(name, "").isdecimal():
            del texts[name]
    for name in (ADDRESS, PREFIX):
        if name in texts:
            texts[name] = _decimal(texts[name])
    if status := texts.get("status"):
        texts["status"] = _STATES.get(status.lower(), status)
    return texts


def _decimal(text: str) -> str:
    """Return the address of a whole number, as phpIPAM's database stores one; other texts unchanged."""
    head, slash, tail = text.strip().partition("/")
    if not _DECIMAL.fullmatch(head):
        return text
    number = int(head)
    if number >= 1 << 128:
        return text
    address: Address = IPv4Address(number) if number < 1 << 32 else ip_address(number)
    return f"{address}{slash}{tail}"


def _is_folder(texts: dict[str, str]) -> bool:
    prefix = texts.get("prefix", "")
    return bool(_FOLDER.fullmatch(prefix)) or (
        texts.get("folder") == "1" and prefix in {"", "0", "0.0.0.0"}  # noqa: S104  # no server
    )


def _classify(layout: Layout, texts: dict[str, str]) -> Row:
    """Return the row as what its text is: a range, a prefix among addresses, an address in a list of prefixes."""
    kind = layout.kind
    text = texts.get(kind, "")
    if kind == RANGE:
        # Of a table that names the ranges of some prefixes.
        span = texts.get("first", ""), texts.get("last", "")
        is_range = PREFIX not in texts or (any(span) and span != _ends(texts))
        return Row(kind if is_range else PREFIX, texts)
    if kind == PREFIX and (prefix := _read_wide_prefix(text)):
        return Row(kind, {**texts, kind: prefix})
    if ends := _read_range(_REMARK.sub("", text)):
        del texts[kind]
        return Row(RANGE, {**texts, "first": ends[0], "last": ends[1]})
    if kind == ADDRESS and layout.format != "netbox":
        mask = texts.get("mask", "").removeprefix("/")
        if _is_network(f"{text}/{mask}" if mask and "/" not in text else text):
            texts["prefix"] = texts.pop(kind)
            if "/" not in text:  # the network address, in a list of all addresses
                texts["heading"] = "yes"
            return Row(PREFIX, texts)
    if kind == PREFIX and layout.is_list and text and "/" not in text:
        texts["address"] = texts.pop(kind)
        return Row(ADDRESS, texts)
    return Row(kind, texts)


def _read_wide_prefix(text: str) -> str:
    """Return the prefix that is written as 10.0.1.*, or as 10.0.1.0-10.0.1.255; "" for other texts.

    A range is a prefix if it is an IPv4 network of at least a /24: no range for hosts has its first and its last address.
    """
    if match := _WILDCARD.fullmatch(text):
        octets = match[1].rstrip(".").split(".")
        return f"{'.'.join([*octets, *['0'] * (4 - len(octets))])}/{8 * len(octets)}"
    ends = _read_range(text)
    if ends and all(":" not in end and _is_address(end) for end in ends):
        first, last = map(IPv4Address, ends)
        networks = [*summarize_address_range(first, last)] if first <= last else []
        if len(networks) == 1 and networks[0].prefixlen <= 24:
            return str(networks[0])
    return ""


def _ends(texts: dict[str, str]) -> tuple[str, str] | None:
    """Return the first and the last address of the prefix that a row names."""
    prefix, mask = texts[PREFIX], texts.get("mask", "").removeprefix("/")
    try:
        network = ip_network(f"{prefix}/{mask}" if mask and "/" not in prefix else prefix)
    except ValueError:
        return None
    return str(network.network_address), str(network.broadcast_address)


def _is_network(text: str, *, strict: bool = True) -> bool:
    if "/" not in text:
        return False
    try:
        network = ip_network(text, strict)
    except ValueError:
        return False
    return network.prefixlen <= _MOST_HOSTS[network.version]


def _is_address(text: str) -> bool:
    try:
        return not ip_address(text).is_unspecified
    except ValueError:
        return False


def _read_range(text: str) -> tuple[str, str] | None:
    """Return the ends of a range of addresses that is written in one cell, such as 10.0.0.1-10.0.0.9 or 10.0.0.1-9."""
    first, _sign, last = (
        part.strip()
        for part in spreadsheet_cells.join_range(spreadsheet_cells.spell_out(text)).partition("-")
    )
    if not (_ONE_ADDRESS.fullmatch(first) and _ONE_ADDRESS.fullmatch(last)):
        return None
    head = first.rstrip(
        string.hexdigits
    )  # what both ends begin with if the second is only a number
    if not head or head == first:
        return None
    return first, last if set(last) & {".", ":"} else head + last
