"""Parse the text of a search box: an address, a CIDR, a range, or a name."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Network, ip_interface, ip_network

from django.utils.translation import gettext as _

from pools.core import addresses, errors

LONGEST = 253
_GROUPS = re.compile(r"(?:[0-9a-f]{1,4}:){1,7}[0-9a-f]{0,4}", re.IGNORECASE)
_OCTETS = re.compile(r"\d{1,3}(?:\.\d{1,3}){0,2}\.?")
# Where unicast addresses are; an IPv6 address elsewhere, `::beef`, is a part of one.
_UNICAST = [IPv6Network(text) for text in ("2000::/3", "fc00::/7", "fe80::/10")]


@dataclass(frozen=True)
class Spelling:
    """How the register spells a text that is no address, or what is wrong with the text."""

    texts: tuple[str, ...] = ()
    hint: str = ""


# Returns None for a text that it does not recognize. Recognizers come before CIDRs, because a MAC
# address may look like an address.
Recognizer = Callable[[str], Spelling | None]
RECOGNIZERS: list[Recognizer] = []  # filled by pools.extension


@dataclass(frozen=True)
class SearchText:
    """A parsed search text; `network` is its address (as /32 or /128) or CIDR, None for a name."""

    text: str
    network: addresses.Network | None = None
    hint: str = ""  # what is wrong with a text that looks like an address
    spellings: tuple[str, ...] = ()  # other texts that mean the same: MACs as they are stored
    is_part: bool = False  # of addresses: `10.20.5`, whose network is 10.20.5.0/24, or `::beef`

    @property
    def address(self) -> addresses.Address | None:
        """The address, if the text is a single address."""
        if self.network is None or self.network.prefixlen < self.network.max_prefixlen:
            return None
        return self.network.network_address

    @property
    def interface(self) -> addresses.Address | None:
        """The address in a text such as `10.0.0.5/24`, else the single address."""
        if self.network is None or not self.hint or "/" not in self.text:
            return self.address
        return ip_interface(self.text).ip


def parse(text: str) -> SearchText:
    """Parse a search text; never fails, as any other text is a name. A CIDR's host bits are ignored."""
    cleaned = "".join(char for char in text.strip()[:LONGEST] if char.isprintable())
    try:
        address = addresses.parse_address(cleaned, source=addresses.InputSource.TEXT)
        network = ip_network(address)
        is_part = isinstance(network, IPv6Network) and not any(map(network.subnet_of, _UNICAST))
        return SearchText(cleaned, network, is_part=is_part)
    except errors.InvalidInput as error:
        hint = error.message if _looks_like_address(cleaned) else ""
    for recognize in RECOGNIZERS:
        spelling = recognize(cleaned)
        if spelling is not None:
            return SearchText(cleaned, hint=spelling.hint, spellings=spelling.texts)
    try:
        network = addresses.parse_cidr(cleaned, source=addresses.InputSource.TEXT, allow_short=True)
        return SearchText(cleaned, network)
    except errors.InvalidInput as error:
        if error.code == "host_bits_set":
            return SearchText(
                cleaned, ip_network(cleaned, strict=False), hint=_("host bits ignored")
            )
        if "/" in cleaned and _looks_like_address(cleaned):
            hint = error.message
    part = _parse_octets(cleaned) or _parse_groups(cleaned)
    return SearchText(cleaned, part, is_part=True) if part else _parse_range(cleaned, hint)


def _parse_range(text: str, hint: str) -> SearchText:
    try:
        span = addresses.parse_range(text, source=addresses.InputSource.TEXT)
    except errors.InvalidInput:
        return SearchText(text, hint=hint)
    hint = _("the smallest CIDR that contains the range")
    return SearchText(text, _enclosing(span), hint=hint)


def _parse_octets(text: str) -> addresses.Network | None:
    """Return the CIDR of the first octets of an IPv4 address, `10.20.5` or `10.`; None for another text."""
    if "." not in text or not _OCTETS.fullmatch(text):
        return None
    octets = text.rstrip(".").split(".")
    try:
        return ip_network(f"{'.'.join([*octets, '0', '0', '0'][:4])}/{8 * len(octets)}")
    except ValueError:
        return None


def _parse_groups(text: str) -> addresses.Network | None:
    """Return the CIDR of the first groups of an IPv6 address, `2001:db8:10` or `fd00:`; None for another text."""
    groups = text.rstrip(":").split(":")
    # Groups of two digits are rather the beginning of a MAC address.
    if not _GROUPS.fullmatch(text) or len(groups) > 7 or max(map(len, groups)) < 3:
        return None
    return ip_network(f"{':'.join(groups)}::/{16 * len(groups)}")


def _enclosing(span: addresses.AddressRange) -> addresses.Network:
    """Return the smallest CIDR that contains a range."""
    shared = span.first.max_prefixlen - (int(span.first) ^ int(span.last)).bit_length()
    return ip_network((span.first, shared), strict=False)


def _looks_like_address(text: str) -> bool:
    return bool(text) and text[0] in "0123456789abcdefABCDEF:" and ("." in text or ":" in text)
