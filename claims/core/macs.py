"""The parser of MAC addresses, for all entry points (rule `mac-has-one-form`)."""

import hashlib
import re
from ipaddress import IPv4Address

from pools.core import addresses, errors

_HEX = "[0-9a-fA-F]"
_FORMS = (
    re.compile(rf"{_HEX}{{2}}(:{_HEX}{{2}}){{5}}"),
    re.compile(rf"{_HEX}{{2}}(-{_HEX}{{2}}){{5}}"),
    re.compile(rf"{_HEX}{{4}}(\.{_HEX}{{4}}){{2}}"),
    re.compile(rf"{_HEX}{{6}}-{_HEX}{{6}}"),
    re.compile(rf"{_HEX}{{12}}"),
)
_PART = re.compile(
    rf"{_HEX}{{0,2}}(?:[:-]{_HEX}{{2}})*[:-]{_HEX}{{0,2}}|(?=.*{_HEX}{{4}}){_HEX}{{0,4}}(?:\.{_HEX}{{1,4}}){{1,2}}|{_HEX}{{4,12}}"
)
_SHORT = re.compile(rf"{_HEX}{{1,2}}([:-]){_HEX}{{1,2}}(\1{_HEX}{{1,2}}){{4}}")
_EUI64 = re.compile(rf"{_HEX}{{2}}([:-]){_HEX}{{2}}(\1{_HEX}{{2}}){{6}}|{_HEX}{{16}}")
_YAML_SEXAGESIMAL = "write it in quotes: YAML reads a MAC of digits as a number"


def parse_mac(value: object, field: str = "", *, lenient: bool = False) -> str:
    """Parse a 48-bit unicast MAC address; return it in lower case with colons (`00:1a:4b:12:34:56`).

    Accepts the colon, dash and Cisco dot forms, and twelve digits alone or in two halves. With
    `lenient` (forms and files, not the API) blanks around it and octets of one digit are accepted too.
    Line breaks and other control characters are always refused.

    Raises InvalidInput wrong_type, mac_syntax, eui64_not_supported, multicast_mac, zero_mac.
    """
    if not isinstance(value, str):
        hint = (
            _YAML_SEXAGESIMAL
            if isinstance(value, int) and value is not True
            else "a string is expected"
        )
        raise errors.InvalidInput.for_field(field, "wrong_type", hint, value)
    text = value.strip(" ") if lenient else value
    if lenient and _SHORT.fullmatch(text):
        text = ":".join(part.zfill(2) for part in re.split("[:-]", text))
    if _EUI64.fullmatch(text):
        message = "has 64 bits (EUI-64); a MAC address has 48"
        raise errors.InvalidInput.for_field(field, "eui64_not_supported", message, value)
    if not any(form.fullmatch(text) for form in _FORMS):
        message = "must be a MAC address such as 00:1a:4b:12:34:56"
        raise errors.InvalidInput.for_field(field, "mac_syntax", message, value)
    digits = re.sub("[^0-9a-f]", "", text.lower())
    if int(digits, 16) == 0:
        raise errors.InvalidInput.for_field(field, "zero_mac", "is all zeros", value)
    if int(digits[:2], 16) & 1:
        message = "is a multicast or broadcast address, which no interface can have"
        raise errors.InvalidInput.for_field(field, "multicast_mac", message, value)
    return ":".join(digits[i : i + 2] for i in range(0, 12, 2))


def spellings_of_part(text: str) -> list[str]:
    """Return what MAC addresses with a part in any notation contain (`34:56`, `4b12.34`); [] for another text.

    An octet may begin with the first digit, or with the second one.
    """
    digits = re.sub("[^0-9a-f]", "", text.lower())
    if not 2 < len(digits) < 12 or not _PART.fullmatch(text.strip(" ")):
        return []
    return [_with_colons(digits), f"{digits[0]}:{_with_colons(digits[1:])}"]


def _with_colons(digits: str) -> str:
    return ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))


def mac_of_address(address: addresses.Address) -> str:
    """Return the MAC that OVN-Kubernetes derives from an address: `0a:58` and the IPv4 octets.

    For IPv6 these are the first four bytes of the SHA-256 of the address as a string
    (go-controller/pkg/util, IPAddrToHWAddr).
    """
    tail = (
        address.packed
        if isinstance(address, IPv4Address)
        else hashlib.sha256(str(address).encode()).digest()[:4]
    )
    return f"0a:58:{tail.hex(':')}"
