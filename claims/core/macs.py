"""One parser for MAC addresses, for every door (rule `mac-has-one-form`)."""

from __future__ import annotations

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
_SHORT = re.compile(rf"{_HEX}{{1,2}}([:-]){_HEX}{{1,2}}(\1{_HEX}{{1,2}}){{4}}")
_EUI64 = re.compile(rf"{_HEX}{{2}}([:-]){_HEX}{{2}}(\1{_HEX}{{2}}){{6}}|{_HEX}{{16}}")
_YAML_SEXAGESIMAL = "write it in quotes: YAML reads a bare MAC of digits as a number"


def parse_mac(value: object, *, field: str = "", lenient: bool = False) -> str:
    """A 48-bit unicast MAC address in lower-case colon form (`00:1a:4b:12:34:56`).

    Read are the colon, dash and Cisco dot forms, twelve digits alone or in two halves. With `lenient`
    (people's hands and files, not the API) blanks around it and octets of one digit are read, too.
    A line break or another control character is never part of one, nor left out in silence.

    Raises InvalidInput wrong_type, mac_syntax, eui64_not_supported, multicast_mac, zero_mac.
    """
    if not isinstance(value, str):
        hint = (
            _YAML_SEXAGESIMAL
            if isinstance(value, int) and value is not True
            else "a text is expected"
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
        message = "is a multicast or broadcast address; an interface has none of these"
        raise errors.InvalidInput.for_field(field, "multicast_mac", message, value)
    return ":".join(digits[i : i + 2] for i in range(0, 12, 2))


def is_local(mac: str) -> bool:
    """Whether the locally administered bit is set: no vendor gave it, so it may be given twice."""
    return bool(int(mac[:2], 16) & 2)


def of_address(address: addresses.Address) -> str:
    """The MAC that OVN-Kubernetes gives to an address: `0a:58` and its IPv4 octets.

    For IPv6 the first four bytes of the SHA-256 of its text (go-controller/pkg/util, IPAddrToHWAddr).
    """
    tail = (
        address.packed
        if isinstance(address, IPv4Address)
        else hashlib.sha256(str(address).encode()).digest()[:4]
    )
    return f"0a:58:{tail.hex(':')}"
