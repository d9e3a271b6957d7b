"""Parsers of addresses, CIDRs, ranges and blocks; all entry points use them.

A form, the REST API, a CSV file, a manifest and a command must agree on what `010.0.0.1` is, so
no other module parses address strings. The parsers accept any Python value, raise `InvalidInput`
only, and return quickly for input of any length.
"""

from __future__ import annotations

import enum
import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)

from pools.core import errors

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Interface = IPv4Interface | IPv6Interface

LONGEST = 100  # characters; two full IPv6 addresses and a hyphen are 79
BLANKS = " \t\r\n"
LONGEST_PREFIX = {4: 32, 6: 128}  # of one address
SHORTEST_PREFIX = {4: 8, 6: 8}  # anything shorter is a typing error, not a pool

# No address of these networks can be assigned.
UNUSABLE: dict[str, Network] = {
    "this network": IPv4Network("0.0.0.0/8"),
    "loopback": IPv4Network("127.0.0.0/8"),
    "link-local": IPv4Network("169.254.0.0/16"),
    "multicast": IPv4Network("224.0.0.0/4"),
    "class E": IPv4Network("240.0.0.0/4"),
    "unspecified, loopback and IPv4-compatible": IPv6Network("::/96"),
    "IPv6 link-local": IPv6Network("fe80::/10"),
    "IPv6 multicast": IPv6Network("ff00::/8"),
}
MAPPED = IPv6Network("::ffff:0:0/96")
DOCUMENTATION: tuple[Network, ...] = (
    IPv4Network("192.0.2.0/24"),
    IPv4Network("198.51.100.0/24"),
    IPv4Network("203.0.113.0/24"),
    IPv6Network("2001:db8::/32"),
    IPv6Network("3fff::/20"),
)
SHARED = IPv4Network("100.64.0.0/10")
_USUAL = {4: 24, 6: 64}  # prefix lengths, for examples


class InputSource(enum.Enum):
    """Who wrote a value; the source decides whether blanks are trimmed."""

    API = "api"  # a program: blanks are an error
    TEXT = "text"  # a person (form, CSV, manifest, command): ASCII blanks are trimmed


@dataclass(frozen=True, order=True)
class AddressRange:
    """The addresses `first` to `last`, both included, of one family.

    The constructor raises InvalidInput `mixed_family` or `range_reversed`. Ranges of one family
    are ordered.
    """

    first: Address
    last: Address

    def __post_init__(self) -> None:
        if self.first.version != self.last.version:
            raise errors.InvalidInput.for_field(
                "",
                "mixed_family",
                "the first and the last address must be of one IP family",
                str(self),
            )
        if int(self.first) > int(self.last):
            raise errors.InvalidInput.for_field(
                "",
                "range_reversed",
                f"the last address comes before the first; did you mean {self.last}-{self.first}?",
                str(self),
            )

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    @property
    def family(self) -> int:
        return self.first.version

    @property
    def size(self) -> int:
        return int(self.last) - int(self.first) + 1

    def overlaps(self, other: AddressRange) -> bool:
        return (
            self.family == other.family
            and int(self.first) <= int(other.last)
            and int(other.first) <= int(self.last)
        )

    def within(self, network: Network) -> bool:
        return self.first in network and self.last in network

    @classmethod
    def from_network(cls, network: Network) -> AddressRange:
        """Return the range of all addresses of the network."""
        return cls(network.network_address, network.broadcast_address)


_PARSED = (IPv4Address, IPv6Address, IPv4Network, IPv6Network, AddressRange)


@dataclass(frozen=True)
class _FieldText:
    """A string that passed the checks common to all parsers, and its field."""

    field: str
    text: str

    def error(self, code: str, message: str) -> errors.InvalidInput:
        return errors.InvalidInput.for_field(self.field, code, message, self.text)


def parse_address(
    value: object, field: str = "", *, source: InputSource = InputSource.API
) -> Address:
    """Return an address without prefix length; an IPv4-mapped address becomes its IPv4 address.

    Raises InvalidInput: wrong_type, blank, invisible_character, non_ascii_digit, leading_zero,
    zone_id_not_allowed, not_an_address.
    """
    return _unwrap_mapped(_parse_text(_read_text(value, field=field, source=source)))


def parse_cidr(
    value: object,
    field: str = "",
    *,
    source: InputSource = InputSource.API,
    allow_short: bool = False,
) -> Network:
    """Return a network in canonical form, from `address/length` or `address/netmask`.

    With `allow_short`, prefixes shorter than /8 are valid, for aggregates and searches. Raises InvalidInput with the codes of parse_address and prefix_required,
    prefix_length, wildcard_mask, non_contiguous_mask, prefix_too_short, host_bits_set,
    ipv4_mapped, special_purpose.
    """
    plain = _parse_plain_cidr(value)
    if plain is not None:
        return plain
    field_text = _read_text(value, field=field, source=source)
    head, slash, tail = field_text.text.partition("/")
    address = _parse_text(field_text, head)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise field_text.error("ipv4_mapped", "write an IPv4-mapped network as an IPv4 network")
    if not slash:
        raise field_text.error(
            "prefix_required",
            f"add the prefix length: {address}/{address.max_prefixlen} is this one address",
        )
    length = _prefix_length(field_text, tail, address)
    # ip_network() would read a small IPv6 number as an IPv4 one.
    kind = IPv4Network if address.version == 4 else IPv6Network
    network = kind((int(address), length), strict=False)
    _check_network(field_text, address, network, allow_short=allow_short)
    return network


_NUMBER = "(0|[1-9][0-9]{0,2})"
_PLAIN_CIDR = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}\.{_NUMBER}/([89]|[12][0-9]|3[0-2])", re.ASCII
)
_UNUSUAL_OCTETS = frozenset(
    {0, 127, 169, *range(224, 1000)}
)  # first octets of unusable or impossible addresses


def _parse_plain_cidr(value: object) -> IPv4Network | None:
    """Return the network of a plain IPv4 CIDR; None for input that `parse_cidr` must examine.

    Takes a third of the time of the full parser, for lists of ten thousand nodes with several
    CIDRs each.
    """
    match = _PLAIN_CIDR.fullmatch(value) if type(value) is str else None
    if match is None:
        return None
    a, b, c, d, length = map(int, match.groups())
    number = a << 24 | b << 16 | c << 8 | d
    if a in _UNUSUAL_OCTETS or b > 255 or c > 255 or d > 255 or number & ((1 << 32 - length) - 1):
        return None
    return IPv4Network((number, length))


def parse_interface(
    value: object, field: str = "", *, source: InputSource = InputSource.API
) -> Interface:
    """Return the address of an interface with the prefix length of its network: `10.0.0.5/24`.

    Raises InvalidInput with the codes of parse_address and prefix_required, prefix_length,
    wildcard_mask, non_contiguous_mask, ipv4_mapped, special_purpose (the address cannot be assigned).
    """
    field_text = _read_text(value, field=field, source=source)
    head, slash, tail = field_text.text.partition("/")
    address = _parse_text(field_text, head)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        message = f"write an IPv4-mapped address as an IPv4 address: {address.ipv4_mapped}"
        raise field_text.error("ipv4_mapped", message)
    if not slash:
        message = (
            f"add the prefix length of the network, such as {address}/{_USUAL[address.version]}"
        )
        raise field_text.error("prefix_required", message)
    length = _prefix_length(field_text, tail, address)
    for name, unusable in UNUSABLE.items():
        if address in unusable:
            raise field_text.error(
                "special_purpose", f"is one of the {name} addresses ({unusable})"
            )
    # ip_interface() would read a small IPv6 number as an IPv4 one.
    kind = IPv4Interface if address.version == 4 else IPv6Interface
    return kind((int(address), length))


def parse_used_network(value: object, field: str = "") -> Network:
    """Return the network that another program uses, such as `10.0.0.0/16`, `10.0.0.5/24` or `10.0.0.5`.

    Host bits are cleared, and no network is refused but that of all addresses, because somebody uses it
    already. Raises InvalidInput with the codes of parse_address and prefix_length, wildcard_mask,
    non_contiguous_mask, ipv4_mapped, prefix_too_short.
    """
    field_text = _read_text(value, field=field, source=InputSource.TEXT)
    head, slash, tail = field_text.text.partition("/")
    address = _parse_text(field_text, head)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise field_text.error("ipv4_mapped", "write an IPv4-mapped network as an IPv4 network")
    length = _prefix_length(field_text, tail, address) if slash else address.max_prefixlen
    if not length:
        raise field_text.error("prefix_too_short", "/0 is all addresses")
    kind = IPv4Network if address.version == 4 else IPv6Network
    return kind((int(address), length), strict=False)


def parse_block(
    value: object, field: str = "", *, source: InputSource = InputSource.API
) -> Network:
    """Return one exact block: a CIDR, or an address as the block of this one address.

    Raises InvalidInput with the codes of parse_cidr except prefix_required and prefix_too_short.
    """
    if isinstance(value, str) and "/" not in value:
        return ipaddress.ip_network(parse_address(value, field=field, source=source))
    return parse_cidr(value, field=field, source=source, allow_short=True)


def parse_range(
    value: object, field: str = "", *, source: InputSource = InputSource.API
) -> AddressRange:
    """Return a range from `first-last` (blanks around the hyphen are allowed) or from a CIDR.

    Raises InvalidInput: range_syntax, range_reversed, mixed_family, and the codes of parse_address
    and parse_cidr except not_an_address.
    """
    field_text = _read_text(value, field=field, source=source, code="range_syntax")
    if "/" in field_text.text and "-" not in field_text.text:
        return AddressRange.from_network(parse_cidr(field_text.text, field=field, allow_short=True))
    parts = field_text.text.split("-")
    if len(parts) != 2:
        raise field_text.error("range_syntax", _range_help(field_text.text))
    first, last = (_parse_range_end(field_text, part.strip(BLANKS)) for part in parts)
    try:
        return AddressRange(first, last)
    except errors.InvalidInput as error:
        raise error.under(field) from None


def require_within(span: AddressRange, cidr: Network, field: str = "") -> None:
    """Raise InvalidInput `range_outside_cidr` or `mixed_family` unless the CIDR contains the range."""
    if span.family != cidr.version:
        raise errors.InvalidInput.for_field(
            field, "mixed_family", f"an IPv{span.family} range cannot lie in {cidr}", str(span)
        )
    if not span.within(cidr):
        raise errors.InvalidInput.for_field(
            field, "range_outside_cidr", f"{span} is not wholly inside {cidr}", str(span)
        )


def warnings_for(cidr: Network, field: str = "") -> list[errors.FieldProblem]:
    """Return the warnings for a pool of this CIDR; the CIDR is valid all the same.

    Codes: documentation_network, shared_address_space.
    """
    problems = []
    if any(_overlap(cidr, net) for net in DOCUMENTATION):
        message = f"{cidr} contains addresses that are reserved for documentation"
        problems.append(errors.FieldProblem(field, "documentation_network", message, str(cidr)))
    if _overlap(cidr, SHARED):
        message = f"{cidr} contains addresses of the carrier-grade NAT space {SHARED} (RFC 6598)"
        problems.append(errors.FieldProblem(field, "shared_address_space", message, str(cidr)))
    return problems


def _read_text(
    value: object, *, field: str, source: InputSource, code: str = "not_an_address"
) -> _FieldText:
    if isinstance(value, _PARSED):
        value = str(value)
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(
            field, "wrong_type", "write it as a text in quotes", value
        )
    if len(value) > LONGEST:
        raise errors.InvalidInput.for_field(field, code, f"longer than {LONGEST} characters", value)
    field_text = _FieldText(field, value.strip(BLANKS) if source is InputSource.TEXT else value)
    if not field_text.text.strip(BLANKS):
        raise field_text.error("blank", "may not be empty")
    if field_text.text != field_text.text.strip(BLANKS):
        raise field_text.error("blank", "blanks before or after it are not allowed")
    _check_visible(field_text)
    return field_text


def _check_visible(field_text: _FieldText) -> None:
    for char in field_text.text:
        if not char.isprintable() and char not in BLANKS:
            name = unicodedata.name(char, "no printable character")
            raise field_text.error("invisible_character", f"contains U+{ord(char):04X} ({name})")


def _parse_text(field_text: _FieldText, text: str | None = None) -> Address:
    text = field_text.text if text is None else text
    if "%" in text:
        raise field_text.error("zone_id_not_allowed", "write the address without its zone (%…)")
    if any(char.isdigit() and not char.isascii() for char in text):
        raise field_text.error("non_ascii_digit", "digits must be 0 to 9")
    if _has_leading_zero(text):
        raise field_text.error(
            "leading_zero", "numbers of an IPv4 address are written without leading zeros"
        )
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        message = (
            "an address is expected here, without a prefix length"
            if "/" in text
            else "not an IPv4 or IPv6 address"
        )
        raise field_text.error("not_an_address", message) from None


def _has_leading_zero(text: str) -> bool:
    parts = text.rpartition(":")[2].split(".")
    is_ipv4 = len(parts) == 4 and all(part.isdigit() for part in parts)
    return is_ipv4 and any(len(part) > 1 and part[0] == "0" for part in parts)


def _unwrap_mapped(address: Address) -> Address:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _prefix_length(field_text: _FieldText, text: str, address: Address) -> int:
    if "." in text and address.version == 4:
        return _netmask_length(field_text, text)
    plain = text.isascii() and text.isdigit() and str(int(text)) == text
    if not plain or int(text) > address.max_prefixlen:
        raise field_text.error(
            "prefix_length",
            f"the prefix length must be a number from 0 to {address.max_prefixlen}, "
            "without sign, blank or leading zero",
        )
    return int(text)


def _netmask_length(field_text: _FieldText, text: str) -> int:
    try:
        mask = int(IPv4Address(text))
    except ValueError:
        raise field_text.error(
            "prefix_length", "after the slash comes a prefix length or a netmask"
        ) from None
    hosts = mask ^ 0xFFFFFFFF
    if hosts & (hosts + 1) == 0:
        return 32 - hosts.bit_length()
    if mask & (mask + 1) == 0:
        raise field_text.error(
            "wildcard_mask",
            f"{text} is a wildcard mask; did you mean /{32 - mask.bit_length()}?",
        )
    raise field_text.error(
        "non_contiguous_mask", f"the bits of the netmask {text} are not contiguous"
    )


def _check_network(
    field_text: _FieldText, address: Address, network: Network, *, allow_short: bool
) -> None:
    shortest = SHORTEST_PREFIX[network.version]
    if network.prefixlen < shortest and not allow_short:
        raise field_text.error(
            "prefix_too_short",
            f"/{network.prefixlen} is too large; the shortest prefix is /{shortest}",
        )
    if address != network.network_address:
        raise field_text.error("host_bits_set", f"host bits are set; did you mean {network}?")
    for name, unusable in UNUSABLE.items():
        # A search may span unusable networks; a pool must not contain a part of one.
        if _overlap(network, unusable) and (
            not allow_short or network.prefixlen >= unusable.prefixlen
        ):
            raise field_text.error("special_purpose", f"contains {name} addresses ({unusable})")
    if _overlap(network, MAPPED) and not allow_short:
        raise field_text.error("ipv4_mapped", f"contains the IPv4-mapped addresses {MAPPED}")


def _overlap(network: Network, other: Network) -> bool:
    """Return the result of `network.overlaps(other)`, several times faster for lists of nodes."""
    if network.version != other.version:
        return False
    shorter = min(network.prefixlen, other.prefixlen)
    differing = int(network.network_address) ^ int(other.network_address)
    return differing >> (network.max_prefixlen - shorter) == 0


def _parse_range_end(field_text: _FieldText, text: str) -> Address:
    try:
        return _unwrap_mapped(_parse_text(field_text, text))
    except errors.InvalidInput as error:
        if error.code != "not_an_address":
            raise
        raise field_text.error("range_syntax", _range_help(field_text.text)) from None


def _range_help(text: str) -> str:
    for char in text:
        if (char != "-" and unicodedata.category(char) == "Pd") or char == "\u2212":
            name = unicodedata.name(char)
            return f"contains U+{ord(char):04X} ({name}); write a plain hyphen: first-last"
    return "write a range as two whole addresses and a hyphen, first-last, or as a CIDR"
