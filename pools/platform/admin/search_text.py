"""What somebody typed into a search box: an address, a CIDR, a range, or a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network

from pools.core import addresses, errors

LONGEST = 253
# Returns a hint, "" for a text that is right as it is, None for one that it does not recognise. A MAC
# address may look like an address.
Recognizer = Callable[[str], str | None]
RECOGNIZERS: list[Recognizer] = []  # filled by pools.extension


@dataclass(frozen=True)
class Searched:
    """`network` is what was read as an address (then /32 or /128) or a CIDR, else None."""

    text: str
    network: addresses.Network | None = None
    hint: str = ""  # what is wrong with something that looks like an address

    @property
    def address(self) -> addresses.Address | None:
        """The address, when it is one."""
        if self.network is None or self.network.prefixlen < self.network.max_prefixlen:
            return None
        return self.network.network_address


def read(text: str) -> Searched:
    """Never refuses: what is no address is a name. A CIDR's host bits are dropped."""
    given = "".join(char for char in text.strip()[:LONGEST] if char.isprintable())
    try:
        address = addresses.parse_address(given, source=addresses.InputSource.TEXT)
        return Searched(given, ip_network(address))
    except errors.InvalidInput as error:
        hint = error.message if _looks_like_one(given) else ""
    for recognize in RECOGNIZERS:
        recognized = recognize(given)
        if recognized is not None:
            return Searched(given, hint=recognized)
    try:
        network = addresses.parse_cidr(given, source=addresses.InputSource.TEXT, allow_short=True)
        return Searched(given, network)
    except errors.InvalidInput as error:
        if error.code == "host_bits_set":
            return Searched(given, ip_network(given, strict=False), hint=error.message)
        if "/" in given and _looks_like_one(given):
            hint = error.message
    try:
        span = addresses.parse_range(given, source=addresses.InputSource.TEXT)
    except errors.InvalidInput:
        return Searched(given, hint=hint)
    return Searched(given, _around(span), hint="the smallest CIDR that holds the range")


def _around(span: addresses.AddressRange) -> addresses.Network:
    """The smallest CIDR that holds a range."""
    shared = span.first.max_prefixlen - (int(span.first) ^ int(span.last)).bit_length()
    return ip_network((span.first, shared), strict=False)


def _looks_like_one(text: str) -> bool:
    return bool(text) and text[0] in "0123456789abcdefABCDEF:" and ("." in text or ":" in text)
