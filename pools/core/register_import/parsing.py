"""Parse a row of a register that is imported: its prefix, address or range, who holds it, and what it becomes.

Nothing is guessed: a value that cannot be read refuses the row with the code of its parser.
"""

import contextlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network

from pools.core import addresses, errors, holders, spreadsheet_cells
from pools.core.addresses import Address, InputSource, Network
from pools.core.errors import FieldProblem
from pools.core.register_import import attributes
from pools.core.register_import.columns import ADDRESS, MENTIONS, PREFIX, RANGE

CONTAINER, POOL, HELD, RESERVED = TARGETS = ("container", "pool", "address", "reserved")
_RESERVING = {"reserved", "deprecated"}  # states of addresses that nobody holds
# Held by nobody.
FREE = {"available", "free", "unused", "frei", "verfügbar", "libre", "disponible"}
# NetBox writes the labels of its choices into CSV files, in the language of the user.
_CHOICES = {
    **dict.fromkeys(("aktiv", "actif", "activo"), "active"),
    **dict.fromkeys(("reserviert", "réservé", "reservado"), "reserved"),
    **dict.fromkeys(("veraltet", "obsolète", "obsoleto"), "deprecated"),
    **dict.fromkeys(("conteneur", "contenedor"), "container"),
    **dict.fromkeys(("sekundär", "secondaire", "secundario"), "secondary"),
}
_GLOBAL = {"", "global", "default", "none", "-", "—", "0"}
_YES = {"1", "yes", "true", "y", "x"}
_RD = re.compile(r" \([^()\s]+:[^()\s]+\)$")  # NetBox's table writes a VRF as `name (rd)`
_BLANKS = re.compile(r"\s+")
_ODD_BLANK = re.compile(r"[^\S ]")
# Fields that the register keeps beside an object, for its page and for the export.
DETAILS = (
    *("status", "role", "dns_name", "tenant", "vrf", "site", "vlan", "mac", "interface", "owner"),
    *("device", "note", "rir", "is_pool", "mark_utilized", "tags"),
)
LONGEST_NAME = 253
LONGEST = {"description": 500, "note": 500}


@dataclass
class ParsedRow:
    """What a row says; `target` is "" while it is open whether a prefix becomes a pool or a container."""

    target: str = ""
    cidr: Network | None = None
    first: Address | None = None
    last: Address | None = None
    vrf: str = ""
    cluster: str = ""
    site: str = ""
    pool_name: str = ""
    holder_id: str = ""
    org: str = ""
    description: str = ""
    details: dict[str, str] = field(default_factory=dict)
    problems: list[FieldProblem] = field(default_factory=list)
    remarks: list[FieldProblem] = field(default_factory=list)  # of a row that they do not refuse


def parse_row(kind: str, values: Mapping[str, str]) -> ParsedRow:
    """Parse the texts of a row of this kind (columns.KINDS); line breaks in them become blanks."""
    texts = values
    values = {name: _read_text(name, text) for name, text in texts.items()}
    row = ParsedRow(
        vrf=values.get("vrf", "")[:LONGEST_NAME],  # a longer one refuses the row
        cluster=values.get("cluster", ""),
        site=values.get("site", ""),
        remarks=_remarks(texts, values),
    )
    status = values.get("status", "")
    for parse in (_parse_place, _parse_texts):
        try:
            parse(row, kind, values)
        except errors.InvalidInput as error:
            row.problems += [problem for problem in error.problems if problem not in row.problems]
    if kind == PREFIX:
        kind_of_nautobot = values.get("type", "").lower()
        is_container = (
            "container" in {status, kind_of_nautobot}
            or "rir" in values
            or _is_yes(values.get("folder", ""))
        )
        values |= {"is_pool": "yes"} if kind_of_nautobot == "pool" else {}
        row.target = CONTAINER if is_container else ""
    elif kind == ADDRESS:
        _parse_holder(row, status, values)
    else:
        row.target = RESERVED
    if not row.problems:
        values["vlan"] = spreadsheet_cells.whole_number(values.get("vlan", ""))
        row.details = {name: text for name in DETAILS if (text := values.get(name, ""))}
        row.details |= {
            name: text
            for name, text in values.items()
            if name.startswith((attributes.PREFIX, attributes.REFERENCE))
        }
        if status == "active" and kind == ADDRESS:
            del row.details["status"]
        if kind == ADDRESS and (role := values.get("role", "").lower()):
            row.details["role"] = _CHOICES.get(role, role)
    return row


def _remarks(texts: Mapping[str, str], values: Mapping[str, str]) -> list[FieldProblem]:
    """Return a remark for each text of which only the beginning is read."""
    return [
        FieldProblem(name, "cut", f"longer than {len(value)} characters: the rest is not read")
        for name, value in values.items()
        if value.endswith("…") and len(texts[name]) > len(value)
    ]


def _read_text(name: str, text: str) -> str:
    """Return a text in one line without invisible characters, a choice or a VRF as NetBox's API names it, and a note cut to its longest."""
    if not text.isprintable():
        text = spreadsheet_cells.INVISIBLE.sub("", text)
        text = _BLANKS.sub(lambda blanks: " " if _ODD_BLANK.search(blanks[0]) else blanks[0], text)
    if name == "tags":
        return attributes.read_tags(text)
    if name.startswith(attributes.PREFIX):
        return text if len(text) <= attributes.LONGEST else text[: attributes.LONGEST - 1] + "…"
    if name == "status":
        return _CHOICES.get(text.lower(), text.lower())
    if name == "vrf":
        return read_vrf(text)
    if name in {"is_pool", "mark_utilized"}:
        return "yes" if _is_yes(text) else ""
    if name == "note" and len(text) > LONGEST["note"]:
        return text[: LONGEST["note"] - 1] + "…"
    return text


def read_vrf(text: str) -> str:
    """Return the name of a VRF; "" for the global one, under each of its names."""
    name = _RD.sub("", text.strip())
    return "" if name.lower() in _GLOBAL else name


def _is_yes(text: str) -> bool:
    return text.lower() in _YES


def _parse_place(row: ParsedRow, kind: str, values: Mapping[str, str]) -> None:
    place = spreadsheet_cells.join_mask(values.get(kind, ""))
    if kind == PREFIX:
        _refuse_damage(place, "prefix")
        address, _slash, length = (part.strip(" ") for part in place.partition("/"))
        mask = spreadsheet_cells.whole_number(values.get("mask", "")).removeprefix("/")
        row.cidr = addresses.parse_cidr(
            f"{address}/{length or mask}" if length or mask else address,
            field="prefix",
            source=InputSource.TEXT,
        )
        if mask and _network(address, mask) not in {row.cidr, None}:
            message = f"{row.cidr} has another length than its mask: {mask}"
            raise errors.InvalidInput.for_field("prefix", "other_mask", message, place)
        row.first, row.last = row.cidr.network_address, row.cidr.broadcast_address
    elif kind == ADDRESS:
        row.first = row.last = _address(place, "address")
        row.cidr = ip_network(row.first)
    else:
        first = _address(values.get("first", ""), "first")
        last = _address(values.get("last", ""), "last")
        span = addresses.AddressRange(first, last)
        row.first, row.last = span.first, span.last


def _address(text: str, name: str) -> Address:
    """Return the address of a text with or without prefix length, which is not needed."""
    _refuse_damage(text, name)
    if "/" in text:
        return addresses.parse_interface(text, field=name, source=InputSource.TEXT).ip
    address = addresses.parse_address(text, field=name, source=InputSource.TEXT)
    addresses.parse_interface(f"{address}/{address.max_prefixlen}", field=name)  # its purpose
    return address


def _refuse_damage(text: str, name: str) -> None:
    """Raise InvalidInput if a spreadsheet left something else where an address or a prefix was."""
    code, message = spreadsheet_cells.find_damage(text)
    if what := spreadsheet_cells.looks_mangled(text):
        code, message = "spreadsheet_mangled", spreadsheet_cells.MANGLED.format(what=what)
    if code:
        raise errors.InvalidInput.for_field(name, code, message, text)


def find_spans(kind: str, values: Mapping[str, str]) -> list[tuple[int, int, int]]:
    """Return (IP family, first, last) of all that a row names which could not be parsed."""
    if kind == RANGE:
        texts = [values.get(name, "") for name in ("first", "last")]
        return _find_spans("-".join(filter(None, texts)))
    return _find_spans(values.get(kind, ""), values.get("mask", ""), whole=kind == PREFIX)


# It begins where a row of digits does: tried at each of them, many without a point would take the square of the time.
_ANY_ADDRESS = re.compile(
    r"(-\s*)?(?<![0-9a-fA-F])([0-9a-fA-F]*[.:][0-9a-fA-F.:]*)(?:\s*[/\\]\s*([0-9.]+))?(?:\s*-\s*([0-9]{1,3})(?![0-9.:]))?"
)
_ADDRESS_AND_PORT = re.compile(r"^([0-9]+(?:\.[0-9]+){3}):[0-9]*$")
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])")


def _find_spans(text: str, mask: str = "", *, whole: bool = False) -> list[tuple[int, int, int]]:
    """Return the span of each address and each range in a text, or of each prefix if `whole`."""
    spans: list[tuple[int, int, int]] = []
    text = unicodedata.normalize("NFKC", text)  # digits and points of double width
    text = text if whole else spreadsheet_cells.spell_out(text)
    text = spreadsheet_cells.join_range(spreadsheet_cells.join_mask(text))
    for sign, written, own_length, last_number in _ANY_ADDRESS.findall(text):
        head = _ADDRESS_AND_PORT.sub(r"\1", written).rstrip(".")
        head = head if ":" in head else _LEADING_ZEROS.sub("", head)
        length = (own_length or mask.removeprefix("/")) if whole else ""
        if length and ":" not in head:
            head += ".0" * (3 - head.count("."))  # 10.0.1/24
        network = _network(head, length)
        if network is None:
            continue
        version, first = network.version, int(network.network_address)
        last = int(network.broadcast_address)
        if last_number and ":" not in head:  # 10.0.0.1-9
            last = first - first % 256 + min(int(last_number), 255)
        if sign and spans and spans[-1][0] == version:
            ends = (*spans.pop()[1:], first, last)
            first, last = min(ends), max(ends)
        spans.append((version, min(first, last), max(first, last)))
    return spans


def _network(address: str, length: str) -> Network | None:
    """Return a network, or the address alone if nobody can read its length; None for what is no address."""
    for text in (f"{address}/{length}", address) if length else (address,):
        with contextlib.suppress(ValueError):
            return ip_network(text, strict=False)
    return None


def _parse_texts(row: ParsedRow, kind: str, values: Mapping[str, str]) -> None:
    for name, text in values.items():
        if (
            attributes.is_attribute(name)
            or name.startswith(attributes.REFERENCE)
            or name == MENTIONS
        ):
            continue  # what has no place here refuses no row
        if (damage := spreadsheet_cells.find_damage(text))[0] == "spreadsheet_error" or text == "=":
            raise errors.InvalidInput.for_field(name, *damage, text)
        longest = LONGEST.get(name, LONGEST_NAME)
        if not (text.isascii() and text.isprintable() and len(text) <= longest):
            holders.parse_description(text, field=name, max_length=longest)
    described = values.get("description") or (values.get("name") if kind == RANGE else "")
    row.description = holders.parse_reason(
        described or values.get("note", ""), max_length=500, required=False
    )
    if org := values.get("tenant", ""):
        row.org = holders.parse_identifier(org, field="tenant")
    if name := values.get("pool", ""):
        row.pool_name = holders.parse_name(name, field="pool")
    if kind == PREFIX and (name := values.get("name", "")):
        _parse_prefix_name(row, name, values.get("description", ""))


def _parse_prefix_name(row: ParsedRow, name: str, description: str) -> None:
    """Take the name of a prefix as that of its pool if a pool can have it, else as the beginning of its description."""
    with contextlib.suppress(errors.InvalidInput):
        row.pool_name = row.pool_name or holders.parse_name(name)
    if name != row.pool_name:
        described = ": ".join(dict.fromkeys(filter(None, (name, description))))
        row.description = holders.parse_reason(described, max_length=LONGEST["description"])


def _parse_holder(row: ParsedRow, status: str, values: Mapping[str, str]) -> None:
    """Decide who holds an address; a reserved address that nobody holds becomes a reserved range."""
    names = [text for name in ("holder", "dns_name") if (text := values.get(name, ""))]
    names = names or [values.get("owner", "")]
    states = [_CHOICES.get(name.lower(), name.lower()) for name in names]
    held = [
        name for name, state in zip(names, states, strict=True) if state not in _RESERVING | FREE
    ]
    holder = held[0] if held else ""
    if not held:  # a list of all addresses
        status = states[0]
    if _is_yes(values.get("gateway", "")) and not holder:
        row.target, row.description = RESERVED, row.description or "gateway"
    elif status in _RESERVING and not holder:
        row.target, row.description = RESERVED, row.description or status
    else:
        row.target = HELD
        row.holder_id = (
            holder[:LONGEST_NAME] or row.description[:LONGEST_NAME] or str(row.first or "")
        )
    if status in FREE and not holder and not row.description:
        message = f"the status {status} says that nobody holds the address"
        row.problems.append(FieldProblem("status", "not_in_use", message, status))
