"""Parse the text of a search box: an address, a CIDR, a range, or a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network

from django.utils.translation import gettext as _

from pools.core import addresses, errors

LONGEST = 253
# Returns a hint, "" for a valid text, or None for a text that it does not recognize. Recognizers come
# before CIDRs, because a MAC address may look like an address.
Recognizer = Callable[[str], str | None]
RECOGNIZERS: list[Recognizer] = []  # filled by pools.extension


@dataclass(frozen=True)
class SearchText:
    """A parsed search text; `network` is its address (as /32 or /128) or CIDR, None for a name."""

    text: str
    network: addresses.Network | None = None
    hint: str = ""  # what is wrong with a text that looks like an address

    @property
    def address(self) -> addresses.Address | None:
        """The address, if the text is a single address."""
        if self.network is None or self.network.prefixlen < self.network.max_prefixlen:
            return None
        return self.network.network_address


def parse(text: str) -> SearchText:
    """Parse a search text; never fails, as any other text is a name. A CIDR's host bits are ignored."""
    cleaned = "".join(char for char in text.strip()[:LONGEST] if char.isprintable())
    try:
        address = addresses.parse_address(cleaned, source=addresses.InputSource.TEXT)
        return SearchText(cleaned, ip_network(address))
    except errors.InvalidInput as error:
        hint = error.message if _looks_like_address(cleaned) else ""
    for recognize in RECOGNIZERS:
        recognized = recognize(cleaned)
        if recognized is not None:
            return SearchText(cleaned, hint=recognized)
    try:
        network = addresses.parse_cidr(cleaned, source=addresses.InputSource.TEXT, allow_short=True)
        return SearchText(cleaned, network)
    except errors.InvalidInput as error:
        if error.code == "host_bits_set":
            return SearchText(cleaned, ip_network(cleaned, strict=False), hint=error.message)
        if "/" in cleaned and _looks_like_address(cleaned):
            hint = error.message
    try:
        span = addresses.parse_range(cleaned, source=addresses.InputSource.TEXT)
    except errors.InvalidInput:
        return SearchText(cleaned, hint=hint)
    return SearchText(
        cleaned, _enclosing(span), hint=_("the smallest CIDR that contains the range")
    )


def _enclosing(span: addresses.AddressRange) -> addresses.Network:
    """Return the smallest CIDR that contains a range."""
    shared = span.first.max_prefixlen - (int(span.first) ^ int(span.last)).bit_length()
    return ip_network((span.first, shared), strict=False)


def _looks_like_address(text: str) -> bool:
    return bool(text) and text[0] in "0123456789abcdefABCDEF:" and ("." in text or ":" in text)
