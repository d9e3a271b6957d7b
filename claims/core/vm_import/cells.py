"""Parsers of spreadsheet cells: MAC addresses, lists of addresses in many notations, names.

Cells that a spreadsheet converted to a number or a date are recognised by their type where the file has
types (XLSX), else by their form (`1.23E+11`, `24.10.2026`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from claims.core import macs
from claims.core.vm_import.vm_interface import MAC_MISSING, NO_ADDRESS, VMInterface, problem
from pools.core import addresses, errors, spreadsheet_cells
from pools.core.errors import FieldProblem
from pools.core.spreadsheet_cells import Date, Failure, Formula, Number, unescape

MAX_NAME_LENGTH = 253
MAX_IN_A_CELL = 64


# Around addresses: what PowerShell and people write, bullets of lists, and remarks: {10.0.0.1}, 10.0.0.2 (management).
_DECORATION = re.compile(r"""[\[\]{}<>*"'•●◦○▪]|\([^()]*\)""")
_FIXED_IP = re.compile(
    r"""ip_address['"]?\s*[=:]\s*['"]?([0-9a-fA-F.:]+)"""
)  # of OpenStack's ports
# What people write into the cell of an address or a MAC that there is not, or that they do not know.
_NO_ADDRESS = {"-", "--", "–", "—", "n/a", "na", "none", "null", "tbd", "dhcp", "?", "keine"}  # noqa: RUF001
_ENCODED = re.compile("%(2f|5c|25)", re.IGNORECASE)

_SET_ASIDE: tuple[tuple[str, str, tuple[addresses.Network, ...]], ...] = (
    (
        "link_local_set_aside",
        "link-local",
        (IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10")),
    ),
    ("loopback_set_aside", "loopback", (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))),
    ("unspecified_set_aside", "unspecified", (IPv4Network("0.0.0.0/32"), IPv6Network("::/128"))),
    ("multicast_set_aside", "multicast", (IPv4Network("224.0.0.0/4"), IPv6Network("ff00::/8"))),
)


def parse_mac(text: str) -> tuple[FieldProblem, ...]:
    """Return the problems of a cell as a MAC address; () for a valid one."""
    if mangled_problem := find_mangled("mac", text):
        return (mangled_problem,)
    try:
        macs.parse_mac(str(text), field="mac", lenient=True)
    except errors.InvalidInput as error:
        is_number = spreadsheet_cells.looks_mangled(text) == "a number"
        # Twelve digits are a MAC address, if of no interface.
        if is_number and error.code not in {"zero_mac", "multicast_mac"}:
            return (_mangled("mac", text, "a number"),)
        return error.problems
    return ()


def clean_mac(text: str) -> str:
    """Return a MAC address without what people write around it; "" for a word that says that there is none."""
    mac = unescape(text.strip())
    if len(mac) > 17:
        mac = _DECORATION.sub(" ", mac).strip(" ,;|")
    return "" if mac.lower() in _NO_ADDRESS else mac


def find_mangled(field: str, text: str) -> FieldProblem | None:
    """Return the problem of a cell that does not hold the typed string: a formula, a number, a date."""
    if type(text) is not str and not isinstance(text, Formula | Failure):
        return _mangled(field, text, "a date" if isinstance(text, Date) else "a number")
    code, message = spreadsheet_cells.find_damage(text)
    return problem(field, code, message, str(text)) if code else None


def _mangled(field: str, text: str, what: str) -> FieldProblem:
    message = spreadsheet_cells.MANGLED.format(what=what)
    return problem(field, "spreadsheet_mangled", message, str(text))


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of a cell; if `unread`, some are not valid and are kept as written."""

    ips: tuple[str, ...]
    problems: tuple[FieldProblem, ...] = ()
    unread: bool = False


def parse_addresses(*texts: str, prefixes: Sequence[str] = (), aside: bool = True) -> Addresses:
    """Parse the addresses of one interface from its cells. Never raises.

    `prefixes` are prefix lengths or netmasks, one for all or one for each address. Addresses that no VM
    can be given are left out with a problem `…_set_aside`, unless `aside` is False.
    """
    problems: list[FieldProblem] = []
    strings: list[str] = []
    for cell in texts:
        text = spreadsheet_cells.unescape(cell) if type(cell) is str else cell
        if mangled_problem := find_mangled("ips", text) if text else None:
            problems.append(mangled_problem)
            strings.append(str(text))
        else:
            text = " ".join(_FIXED_IP.findall(text)) or _DECORATION.sub(" ", text)
            strings += [] if text.strip().lower() in _NO_ADDRESS else split_cell(text)
    if problems:
        return Addresses(tuple(strings), tuple(problems), unread=True)
    if len(strings) > MAX_IN_A_CELL:
        message = f"{len(strings)} addresses; an interface has at most {MAX_IN_A_CELL}"
        too_many = problem("ips", "too_many", message)
        return Addresses(tuple(strings[:MAX_IN_A_CELL]), (too_many,), unread=True)
    all_addresses = [
        _ParsedAddress(text, prefix)
        for text, prefix in zip(strings, _prefix_by_address(prefixes, strings), strict=True)
    ]
    usable_addresses = _drop_unusable(all_addresses, problems) if aside else all_addresses
    ips = tuple(dict.fromkeys(parsed_address.text for parsed_address in usable_addresses))
    problems += [
        cell_problem
        for parsed_address in usable_addresses
        for cell_problem in parsed_address.problems
    ]
    return Addresses(
        ips, tuple(problems), any(parsed_address.problems for parsed_address in usable_addresses)
    )


def split_cell(text: str) -> list[str]:
    """Split a cell with several values: `10.0.0.21 /24,\\n10.0.0.22 /24`."""
    return spreadsheet_cells.split_values(text)


def _prefix_by_address(prefixes: Sequence[str], strings: Sequence[str]) -> list[str]:
    """Return the prefix of each address; a single one applies to IPv4 if there are both families."""
    if len(prefixes) == len(strings):
        return [prefix.lstrip("/") for prefix in prefixes]
    if len(prefixes) != 1:
        return [""] * len(strings)
    shared_prefix = prefixes[0].lstrip("/")
    mixed = len({":" in text for text in strings}) > 1
    of_ipv4 = "." in shared_prefix or not shared_prefix.isdecimal() or int(shared_prefix[:4]) <= 32
    return ["" if mixed and of_ipv4 == (":" in text) else shared_prefix for text in strings]


class _ParsedAddress:
    """One address of a cell: its canonical string, or its problems."""

    __slots__ = ("address", "problems", "text")

    def __init__(self, source: str, prefix: str) -> None:
        head, slash, tail = source.partition("/")
        if head[:5].lower() == "fe80:":
            head = head.partition("%")[0]  # left out below, whatever its zone
        self.address: addresses.Address | None = None
        self.problems: tuple[FieldProblem, ...] = ()
        self.text = source
        try:
            self.address = addresses.parse_address(
                head, field="ips", source=addresses.InputSource.TEXT
            )
            tail = tail if slash else _prefix_for_family(prefix, self.address)
            if tail or slash:
                interface = addresses.parse_interface(f"{self.address}/{tail}", field="ips")
                self.text = f"{self.address}/{interface.network.prefixlen}"
            else:
                self.text = str(self.address)
        except errors.InvalidInput as error:
            self.problems = error.problems
            what = spreadsheet_cells.looks_mangled(source)
            if error.code == "not_an_address" and what:
                self.problems = (_mangled("ips", source, what),)


def _prefix_for_family(prefix: str, address: addresses.Address) -> str:
    """Return the prefix if it fits the family: netmasks are IPv4, lengths above 32 are IPv6."""
    if address.version == 6:
        return "" if "." in prefix else prefix
    return "" if prefix.isdecimal() and int(prefix[:4]) > 32 else prefix


def _drop_unusable(
    all_addresses: Sequence[_ParsedAddress], problems: list[FieldProblem]
) -> list[_ParsedAddress]:
    """Return the addresses that a VM can have, and add a problem for each of the others."""
    usable_addresses = []
    for parsed in all_addresses:
        for code, name, networks in _SET_ASIDE:
            if parsed.address is not None and any(parsed.address in net for net in networks):
                message = f"{parsed.text} was left out: {name} addresses do not belong to the VM"
                # Not vm_interface.problem: most rows of RVTools have this problem, and an address needs no escaping.
                problems.append(FieldProblem("ips", code, message, parsed.text))
                break
        else:
            usable_addresses.append(parsed)
    return usable_addresses


def read_interface(
    row: int,
    vm: str,
    mac: str,
    ips: Addresses,
    *,
    problems: Sequence[FieldProblem] = (),
    remarks: Sequence[FieldProblem] = (),
    **values: Any,
) -> VMInterface:
    """Return an interface with its problems; it is refused for `problems`, those of its MAC, and addresses that are not valid."""
    wrong = (*problems, *parse_mac(mac)) if mac else (*problems, MAC_MISSING)
    refused = bool(wrong) or ips.unread
    all_problems = (*wrong, *remarks, *ips.problems)
    if not ips.ips:
        all_problems = (*all_problems, NO_ADDRESS)
    return VMInterface(row, vm, str(mac), ips.ips, problems=all_problems, refused=refused, **values)


def parse_text(field: str, text: str) -> tuple[str, FieldProblem | None]:
    """Return the name of a VM, a network or a namespace in a cell, and its problem."""
    if type(text) is not str:
        if not isinstance(text, Number):
            return str(text)[:MAX_NAME_LENGTH], find_mangled(field, text)
        text = str(text)
    text = unescape(text.strip()).strip()  # exports of Cadastre escape it
    if len(text) > MAX_NAME_LENGTH:
        message = f"longer than {MAX_NAME_LENGTH} characters"
        return text[:MAX_NAME_LENGTH], problem(field, "too_long", message, text)
    return text, None


def decode_name(text: str) -> str:
    """Return a name as people see it; vSphere's API and its exports write `/`, `\\` and `%` as %2f, %5c and %25."""
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)), text) if "%" in text else text


def is_true(text: str) -> bool:
    """Return True if a flag is set, as RVTools and users write it."""
    return text.strip().lower() in _TRUE


_TRUE = {"true", "yes", "y", "1", "x", "wahr", "ja", "vrai", "oui", "verdadero", "sí", "はい"}
