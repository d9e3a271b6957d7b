"""The cells of a table: MAC addresses, addresses in all the ways people write several, names.

What a spreadsheet made of a text is told from the text itself where the file says so (XLSX), else
recognised by its form (`1.23E+11`, `24.10.2026`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network

from claims.core import macs
from claims.core.vm_import.vm_interface import problem
from pools.core import addresses, errors
from pools.core.errors import FieldProblem
from pools.core.spreadsheet_cells import unescape

LONGEST_NAME = 253
MOST_IN_A_CELL = 64


class Number(str):
    """A cell that holds a number, not a text."""

    __slots__ = ()


class Date(str):
    """A cell that holds a date or a time."""

    __slots__ = ()


class Formula(str):
    """A cell that is computed."""

    __slots__ = ()


class Failure(str):
    """A cell that holds an error of the spreadsheet, such as #N/A."""

    __slots__ = ()


_CLEAN_MAC = re.compile("[0-9a-fA-F][02468aceACE](?::[0-9a-fA-F]{2}){5}").fullmatch
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
# What every range that is set aside, or cannot be used at all, does not begin with.
_CLEAN_IPV4 = re.compile(
    rf"(?!0\.|10\.88\.|10\.244\.|10\.42\.|127\.|169\.|172\.|22[4-9]|2[3-9][0-9]){_OCTET}(?:\.{_OCTET}){{3}}"
).fullmatch
_LINK_LOCAL = re.compile("fe80:(?::[0-9a-f]{1,4}){1,4}").fullmatch
_BLANKS = " \t\xa0"
_BETWEEN = re.compile(r"[,;|\s]+")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(
    r"[0-9]{1,4}([-./])[0-9]{1,2}\1[0-9]{2,4}(?:[ T][0-9:.]+)?"
    r"|[0-9]{1,2}[-. ]+(?:[^\W\d_]{3,9})\.?(?:[-. ]+[0-9]{2,4})?"
    r"|(?:[^\W\d_]{3,9})[-. ]+[0-9]{1,4}"
)

_SET_ASIDE: tuple[tuple[str, str, tuple[addresses.Network, ...]], ...] = (
    (
        "link_local_set_aside",
        "link-local",
        (IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10")),
    ),
    ("loopback_set_aside", "loopback", (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))),
    ("multicast_set_aside", "multicast", (IPv4Network("224.0.0.0/4"), IPv6Network("ff00::/8"))),
)
_CONTAINER = ("container_set_aside", "container bridges'")
_DOCKER = IPv4Network("172.17.0.0/16")
_BRIDGES = IPv4Network("172.16.0.0/12")  # further networks of Docker: their host is .0.1
_PODS = (IPv4Network("10.244.0.0/16"), IPv4Network("10.42.0.0/16"))  # of a node: .0 and .1
_PODMAN = IPv4Address("10.88.0.1")


def parse_mac(text: str) -> tuple[FieldProblem, ...]:
    """What is wrong with the text as a MAC address; nothing for a good one."""
    if type(text) is str and _CLEAN_MAC(text) and text != "00:00:00:00:00:00":
        return ()
    if mangled_problem := mangled("mac", text):
        return (mangled_problem,)
    try:
        macs.parse_mac(str(text), field="mac", lenient=True)
    except errors.InvalidInput as error:
        if _NUMBER.fullmatch(text.strip()):
            return (_mangled("mac", text, "a number"),)
        return error.problems
    return ()


def mangled(field: str, text: str) -> FieldProblem | None:
    """The problem of a cell that does not hold what somebody typed: a formula, a number, a date."""
    if type(text) is not str:
        if isinstance(text, Formula):
            message = "is a formula; replace it by its value"
            return problem(field, "formula", message, str(text))
        if isinstance(text, Failure):
            return problem(field, "spreadsheet_error", "is an error of the spreadsheet", str(text))
        return _mangled(field, text, "a date" if isinstance(text, Date) else "a number")
    if text.startswith("="):
        return problem(field, "formula", "is a formula; replace it by its value", text)
    return None


def _mangled(field: str, text: str, what: str) -> FieldProblem:
    message = f"the spreadsheet made {what} of it; format the column as text and enter it again"
    return problem(field, "spreadsheet_mangled", message, str(text))


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of a cell; those `unread` are among them as they were written."""

    ips: tuple[str, ...]
    problems: tuple[FieldProblem, ...] = ()
    unread: bool = False


NONE = Addresses(())


def parse_addresses(*texts: str, prefixes: Sequence[str] = (), aside: bool = True) -> Addresses:
    """The addresses of one interface from the cells that have some.

    `prefixes` are prefix lengths or netmasks, one for all or one for each address. Addresses that
    no interface can be given, and those of container bridges beside another one, are left out with
    a problem `…_set_aside`, unless `aside` is off. Never raises.
    """
    if not prefixes:
        if len(texts) == 2 and not texts[1]:
            texts = texts[:1]
        if len(texts) == 1:
            text = texts[0]
            if not text:
                return NONE
            if type(text) is str and _CLEAN_IPV4(text):
                return Addresses((text,))
        elif aside and len(texts) == 2 and _CLEAN_IPV4(texts[0]) and _LINK_LOCAL(texts[1]):
            return Addresses((texts[0],), (_aside(texts[1], *_SET_ASIDE[0][:2]),))
    return _several(texts, prefixes, aside=aside)


def _several(texts: Sequence[str], prefixes: Sequence[str], *, aside: bool) -> Addresses:
    problems: list[FieldProblem] = []
    written: list[str] = []
    for text in texts:
        if mangled_problem := mangled("ips", text) if text else None:
            problems.append(mangled_problem)
            written.append(str(text))
        else:
            written += split(text)
    if problems:
        return Addresses(tuple(written), tuple(problems), unread=True)
    if len(written) > MOST_IN_A_CELL:
        message = f"{len(written)} addresses; an interface has at most {MOST_IN_A_CELL}"
        too_many = problem("ips", "too_many", message)
        return Addresses(tuple(written[:MOST_IN_A_CELL]), (too_many,), unread=True)
    all_addresses = [
        _ParsedAddress(text, prefix)
        for text, prefix in zip(written, _spread(prefixes, written), strict=True)
    ]
    usable_addresses = _drop_useless(all_addresses, problems) if aside else all_addresses
    ips = tuple(dict.fromkeys(parsed_address.text for parsed_address in usable_addresses))
    problems += [
        cell_problem
        for parsed_address in usable_addresses
        for cell_problem in parsed_address.problems
    ]
    return Addresses(
        ips, tuple(problems), any(parsed_address.problems for parsed_address in usable_addresses)
    )


def split(text: str) -> list[str]:
    """The texts of a cell that has several: `10.0.0.21 /24,\\n10.0.0.22 /24`."""
    joined = "/".join([part.strip(_BLANKS) for part in text.split("/")]) if "/" in text else text
    return [part for part in _BETWEEN.split(joined) if part]


def _spread(prefixes: Sequence[str], written: Sequence[str]) -> list[str]:
    """The prefix of each address: one for all is that of the IPv4 ones, where it can be and some are."""
    if len(prefixes) == len(written):
        return [prefix.lstrip("/") for prefix in prefixes]
    if len(prefixes) != 1:
        return [""] * len(written)
    shared_prefix = prefixes[0].lstrip("/")
    mixed = len({":" in text for text in written}) > 1
    of_ipv4 = "." in shared_prefix or not shared_prefix.isdecimal() or int(shared_prefix[:4]) <= 32
    return ["" if mixed and of_ipv4 == (":" in text) else shared_prefix for text in written]


class _ParsedAddress:
    """One address of a cell: its canonical text, or what is wrong with it."""

    __slots__ = ("address", "problems", "text")

    def __init__(self, written: str, prefix: str) -> None:
        head, slash, tail = written.partition("/")
        if head[:5].lower() == "fe80:":
            head = head.partition("%")[0]  # it is left out, whatever its zone
        self.address: addresses.Address | None = None
        self.problems: tuple[FieldProblem, ...] = ()
        self.text = written
        try:
            self.address = addresses.parse_address(
                head, field="ips", source=addresses.InputSource.TEXT
            )
            tail = tail if slash else _of_family(prefix, self.address)
            self.text = str(self.address)
            if tail or slash:
                self.text = _with_prefix(self.address, tail, written)
        except errors.InvalidInput as error:
            self.problems = error.problems
            if error.code == "not_an_address" and (what := _looks_mangled(written)):
                self.problems = (_mangled("ips", written, what),)


def _of_family(prefix: str, address: addresses.Address) -> str:
    """A netmask or a length above 32 is none of the other family."""
    if address.version == 6:
        return "" if "." in prefix else prefix
    return "" if prefix.isdecimal() and int(prefix[:4]) > 32 else prefix


def _with_prefix(address: addresses.Address, length: str, written: str) -> str:
    unusable = any(address in net for net in addresses.UNUSABLE.values())
    interface_text = (
        f"{'1.1.1.1' if address.version == 4 else '2001:db8::1'}/{length}"
        if unusable
        else f"{address}/{length}"
    )
    try:
        interface = addresses.parse_interface(interface_text, field="ips")
    except errors.InvalidInput as error:
        first = error.problems[0]
        raise errors.InvalidInput.for_field("ips", first.code, first.message, written) from None
    return f"{address}/{interface.network.prefixlen}"


def _looks_mangled(text: str) -> str:
    if _NUMBER.fullmatch(text):
        return "a number"
    return "a date" if _DATE.fullmatch(text) else ""


def _drop_useless(
    all_addresses: Sequence[_ParsedAddress], problems: list[FieldProblem]
) -> list[_ParsedAddress]:
    usable_addresses = []
    for parsed_address in all_addresses:
        if reason := _useless(parsed_address.address):
            problems.append(_aside(parsed_address.text, *reason))
        else:
            usable_addresses.append(parsed_address)
    vm_addresses = [
        parsed_address
        for parsed_address in usable_addresses
        if not container_like(parsed_address.address)
    ]
    if any(
        parsed_address.address is not None and parsed_address.address.version == 4
        for parsed_address in vm_addresses
    ):
        problems += [
            _aside(parsed_address.text, *_CONTAINER)
            for parsed_address in usable_addresses
            if container_like(parsed_address.address)
        ]
        return vm_addresses
    return usable_addresses


def _useless(address: addresses.Address | None) -> tuple[str, str] | None:
    for code, name, networks in _SET_ASIDE:
        if address is not None and any(address in net for net in networks):
            return code, name
    return None


def _aside(text: str, code: str, name: str) -> FieldProblem:
    # Not found.problem: nearly every row of RVTools has one of these, and an address needs no escapes.
    return FieldProblem(
        "ips", code, f"{text} was left out: {name} addresses are not the VM's own", text
    )


def container_like(address: addresses.Address | None) -> bool:
    """Whether Docker, Podman or a network plugin for pods gives such addresses to its own bridge."""
    if not isinstance(address, IPv4Address):
        return False
    low = int(address) & 0xFFFF
    if address in _BRIDGES:
        return address in _DOCKER or (low == 1 and address.packed[1] > 17)
    return address == _PODMAN or (any(address in net for net in _PODS) and (low & 0xFF) < 2)


def parse_text(
    field: str, text: str, *, longest: int = LONGEST_NAME
) -> tuple[str, FieldProblem | None]:
    """A name of a VM, a network or a namespace as the source has it, and what is wrong with it."""
    if type(text) is not str:
        if not isinstance(text, Number):
            return str(text)[:longest], mangled(field, text)
        text = str(text)
    text = unescape(text.strip()).strip()  # as our own exports have it
    if len(text) > longest:
        message = f"longer than {longest} characters"
        return text[:longest], problem(field, "too_long", message, text)
    return text, None


def is_true(text: str) -> bool:
    """Whether a flag is set, as RVTools and people write it."""
    return text.strip().lower() in ("true", "yes", "1", "x", "wahr", "vrai", "verdadero")
