"""Guard against server-side request forgery: which API servers may be reached.

Whoever registers a cluster makes this process connect to an address of their choice. Therefore a URL is
parsed strictly, its name is resolved once, every resolved address is checked, and the connection goes to
one of these addresses (SNI, Host and certificate verification use the name). Private addresses are
allowed, because clusters have them.
"""

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib import parse

from pools.core import errors
from pools.platform.outbound import faults

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Sequence[str]]

LONGEST = 2048  # characters of a URL
# Ports of protocols that a confused client could be made to speak; no API server listens on them.
_PORTS_OF_OTHERS = frozenset({2379, 2380, 3306, 5432, 6379, 9200, 11211, 27017})
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")

_FORBIDDEN = {
    ipaddress.ip_network(text): kind
    for text, kind in {
        "0.0.0.0/8": "an unspecified address",
        "127.0.0.0/8": "a loopback address",
        "169.254.0.0/16": "a link-local address, as of metadata services",
        "224.0.0.0/4": "a multicast address",
        "240.0.0.0/4": "a reserved address",
        "::/128": "an unspecified address",
        "::1/128": "a loopback address",
        "fe80::/10": "a link-local address",
        "fec0::/10": "a site-local address",
        "ff00::/8": "a multicast address",
        "64:ff9b:1::/48": "an address of a local translator",
        # Metadata services outside the link-local networks: Alibaba, Azure, Oracle, AWS, Google.
        "100.100.100.200/32": "a metadata service",
        "168.63.129.16/32": "a metadata service",
        "192.0.0.192/32": "a metadata service",
        "fd00:ec2::254/128": "a metadata service",
        "fd20:ce::254/128": "a metadata service",
    }.items()
}
_LOOPBACK = "a loopback address"
_OWN = "an address of this machine"
# No machine has them: one that may use them as its own may use any (net.ipv4.ip_nonlocal_bind).
_FOREIGN = {4: "192.0.2.1", 6: "2001:db8::1"}
# IPv6 networks whose addresses contain an IPv4 address, and the shift in bits that extracts it.
_CARRIERS = [
    (ipaddress.IPv6Network("::/96"), 0),  # IPv4-compatible
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (ipaddress.IPv6Network("2002::/16"), 80),  # 6to4
]
_TEREDO = ipaddress.IPv6Network("2001::/32")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


@dataclass(frozen=True)
class Target:
    """A parsed URL: `url` in canonical form, `host` without brackets, `path` without a trailing slash."""

    url: str
    host: str
    port: int
    path: str


def parse_url(text: str) -> Target:
    """Parse a URL. Raises InvalidInput `url_not_allowed` at `server`, without repeating user info."""
    parts = _split(text)
    if parts.scheme != "https":
        raise _refused("must begin with https://")
    if "@" in parts.netloc:
        raise _refused("must not hold a user name or a password")
    if "?" in text or "#" in text:
        raise _refused("must not have a query or a fragment")
    if not _PATH.fullmatch(parts.path):
        raise _refused("has a path with other characters than letters, digits, and - . _ ~")
    host = _host(parts.netloc, parts.hostname or "")
    port = _port(parts)
    path = parts.path.rstrip("/")
    shown = f"[{host}]" if ":" in host else host
    return Target(f"https://{shown}:{port}{path}", host, port, path)


def _split(text: str) -> parse.SplitResult:
    if not text or len(text) > LONGEST or not (text.isascii() and text.isprintable()):
        raise _refused(f"must be an https URL of at most {LONGEST} ASCII characters")
    if " " in text or "\\" in text:
        raise _refused("must be an https URL without blanks and backslashes")
    try:
        return parse.urlsplit(text)
    except ValueError:
        raise _refused("is not a URL") from None


def _host(netloc: str, host: str) -> str:
    if netloc.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host)) if "%" not in host else _refuse_zone()
        except ValueError:
            raise _refused("has no valid IPv6 address") from None
    # The system's resolver takes `0x7f.1`, `2130706433` and `0177.0.0.1` for 127.0.0.1.
    if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise _refused("has no valid IPv4 address: four decimal numbers") from None
    if not is_name(host):
        raise _refused("has no valid host name")
    return host


def _refuse_zone() -> str:
    raise _refused("must not have an IPv6 zone")


def is_name(text: str) -> bool:
    """Return True if a text has the form of a host name (ASCII letters, digits, hyphens, dots)."""
    name = text.removesuffix(".")
    return 0 < len(name) <= 253 and all(_LABEL.fullmatch(label) for label in name.split("."))


def _port(parts: parse.SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        raise _refused("has no valid port") from None
    if port is None:
        return 443
    if port != 443 and (port < 1024 or port in _PORTS_OF_OTHERS):
        raise _refused("has a port that belongs to another service: use 443, or one above 1023")
    return port


def _refused(message: str) -> errors.InvalidInput:
    return errors.InvalidInput.for_field("server", "url_not_allowed", f"the server's URL {message}")


# --- addresses ------------------------------------------------------------------------------------


def forbidden_kind(address: IPAddress, *, allow_loopback: bool = False) -> str:
    """Return the kind of an address that must not be reached, "" if it may be reached.

    `allow_loopback` allows this machine, and only in the plain forms: 127.0.0.0/8, ::1, its interfaces' addresses.
    """
    for network, kind in _FORBIDDEN.items():
        if address.version == network.version and address in network:
            return "" if allow_loopback and kind == _LOOPBACK else kind
    for embedded in _embedded_addresses(address):
        if kind := forbidden_kind(embedded):
            return f"an IPv6 form of {kind}"
    return _OWN if not allow_loopback and _is_own(address) else ""


def _is_own(address: IPAddress) -> bool:
    """Return True for an address of an interface of this machine: nothing is sent to find out."""
    if _can_bind(str(address)) and not _can_bind(_FOREIGN[address.version]):
        return True
    try:
        with socket.socket(_family(str(address)), socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))  # of UDP: looks up the route only
            return ipaddress.ip_address(probe.getsockname()[0]) == address
    except OSError:
        return False


def _can_bind(text: str) -> bool:
    try:
        with socket.socket(_family(text), socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0))
    except OSError:
        return False
    return True


def _family(text: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in text else socket.AF_INET


def _embedded_addresses(address: IPAddress) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses to which an IPv6 address may lead."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    value = int(address)
    shifts = [shift for network, shift in _CARRIERS if address in network]
    numbers = [value >> shift for shift in shifts]
    if address in _TEREDO:
        numbers += [value >> 64, ~value]  # its server, and its client with inverted bits
    if (value >> 32) & 0xFFFF_FFFF in _ISATAP:
        numbers.append(value)
    return [ipaddress.IPv4Address(number & 0xFFFF_FFFF) for number in numbers]


def system_resolver(host: str, port: int) -> list[str]:
    """Return the addresses of a name in the order in which the system would try them."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def resolve(
    target: Target,
    *,
    allow_loopback: bool = False,
    loopback_setting: str = "",
    resolver: Resolver = system_resolver,
) -> list[str]:
    """Return the addresses to connect to, in order; a refusal of this machine names the setting that allows it.

    One forbidden address refuses all: an attacker who controls the records of the name would only have to
    try more often. Raises AddressNotAllowed, Unreachable (the name cannot be resolved).
    """
    try:
        addresses = resolver(target.host, target.port)
    except (OSError, UnicodeError) as error:
        raise faults.Unreachable(f"the name {target.host} cannot be resolved") from error
    if not addresses:
        raise faults.Unreachable(f"the name {target.host} has no address")
    for text in addresses:
        try:
            kind = forbidden_kind(ipaddress.ip_address(text), allow_loopback=allow_loopback)
        except ValueError:
            kind = "no plain address"
        if kind:
            where = text if text == target.host else f"{target.host} leads to {text}, which"
            remedy = (
                f"; the setting {loopback_setting}=1 allows it"
                if kind in {_LOOPBACK, _OWN} and loopback_setting
                else ""
            )
            raise faults.AddressNotAllowed(f"{where} is {kind}{remedy}")
    return list(addresses)
