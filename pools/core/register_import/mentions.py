"""Addresses that a table names beside those of its rows, and addresses of which it has only the last number.

People write the range of the DHCP server, the management address or the gateway into a column of their own, into a
remark, or above the table; and `.10-.20` for 10.0.1.10-10.0.1.20 where the sheet is about one subnet.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_network

from pools.core import spreadsheet_cells
from pools.core.register_import import parsing
from pools.core.register_import.columns import ADDRESS, MENTIONS, PREFIX, Cell

_HAS_PLACE = re.compile(
    r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]|(?<!\w)\.[0-9]{1,3}(?!\w)|:[0-9a-fA-F]*:|dhcp",
    re.IGNORECASE,
)
_NETWORK = re.compile(r"(?<![\w.])((?:[0-9]{1,3}\.){3})(?:[0-9]{1,3}|[xX*])?(?:[/_]([0-9.]+))?")
_LAST = re.compile(r"(?<![\w.:])\.([0-9]{1,3})(?![\w.:])")
_PREFIX = re.compile(r"(?<![\w.:])[0-9a-fA-F.:]+/[0-9]{1,3}(?![\w.]|\s*-\s*[0-9])")
_FREE = re.compile("usable|available|free|frei|verf|libre|dispon|nutzbar|host range|hosts")
_TO = r"\s*(?:[-\u2013]|bis|to|au|al|a|hasta)\s*"
_LAST_ONLY = re.compile(rf"([0-9]{{1,3}})(?:{_TO}([0-9]{{1,3}}))?")
_RANGE_OF_LAST = re.compile(rf"(?<![\w.:/-])([0-9]{{1,3}}){_TO}([0-9]{{1,3}})(?![\w.:/-])")
_ONLY = re.compile(r"[0-9a-fA-F.:,;/\s]+")
_WORD = re.compile("[g-wyzG-WYZ]")
_ADDRESSES = {4: IPv4Address, 6: IPv6Address}


def find_base(text: str) -> str:
    """Return what all addresses of the last network that a text names begin with, `10.0.1.`; "" if there is none."""
    base = ""
    for head, length in _NETWORK.findall(text):
        base = head if not length or _is_small(length) else ""
    return base


def _is_small(length: str) -> bool:
    try:
        return IPv4Network(f"0.0.0.0/{length}").prefixlen >= 24
    except ValueError:
        return False


def complete(text: str, base: str) -> str:
    """Return the text of an address or a range with whole addresses for their last numbers."""
    if not base:
        return text
    text = _LAST.sub(rf"{base}\1", text.strip())
    if ends := _LAST_ONLY.fullmatch(text):
        return "-".join(base + end for end in ends.groups() if end)
    return text


def add(texts: dict[str, str], cells: Iterable[Cell], base: str) -> None:
    """Add to the texts of a row the addresses and ranges that cells name beside its own."""
    before = filter(None, [texts.get(MENTIONS, "")])
    if named := dict.fromkeys([*before, *_mentions(cells, base, texts)]):
        texts[MENTIONS] = ", ".join(named)


def _mentions(cells: Iterable[Cell], base: str, texts: Mapping[str, str]) -> Iterator[str]:
    own = {texts.get(ADDRESS, "").partition("/")[0]}
    for column, text, is_remark in cells:
        if not _HAS_PLACE.search(text) and "dhcp" not in column.lower():
            continue
        if _FREE.search(column.lower()):
            continue
        is_dhcp = "dhcp" in f"{column} {text}".lower()
        spelled = _PREFIX.sub(_without_networks, text)
        spelled = _LAST.sub(rf"{base}\1", spelled) if base else spelled
        if base and is_dhcp:
            spelled = _RANGE_OF_LAST.sub(rf"{base}\1-{base}\2", spelled)
        is_place = not is_remark or (_ONLY.fullmatch(text) and text != texts.get(PREFIX))
        for version, first, last in parsing.find_spans(ADDRESS, {ADDRESS: spelled}):
            ends = [str(_ADDRESSES[version](number)) for number in (first, last)]
            if first == last and is_place and ends[0] not in own:
                yield ends[0]
            elif first < last and (is_dhcp or not _is_whole(texts, version, first, last)):
                yield "-".join(ends)


def _without_networks(match: re.Match[str]) -> str:
    """Return the text of a prefix but for a network, of which no address is in use."""
    try:
        return " " if ip_network(match[0]).num_addresses > 2 else match[0]
    except ValueError:
        return match[0]


def _is_network(first: int, last: int) -> bool:
    """Return True for the addresses of an IPv4 network of at least a /24, or of an IPv6 one as large."""
    size = last - first + 1
    return first >= 0 and size >= 256 and not size & (size - 1) and not first % size


def _is_whole(texts: Mapping[str, str], version: int, first: int, last: int) -> bool:
    """Return True for all hosts of the row's prefix, which say nothing of their use."""
    if _WORD.search(spreadsheet_cells.join_range(texts.get(PREFIX, ""))):  # a line below the table
        return False
    if _is_network(first, last) or _is_network(first - 1, last + 1):
        return True
    return any(
        network[0] == version and first <= network[1] + 1 and last >= network[2] - 1
        for network in parsing.find_spans(PREFIX, texts)
    )
