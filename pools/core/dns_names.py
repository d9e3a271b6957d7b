"""DNS names of addresses, patterns that derive them, and their records in zone files and DNSEndpoints.

RFC 1123, 2.1: a label has letters, digits and hyphens, none at an end. Such names need no escaping in a zone file.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from itertools import groupby

from pools.core import errors, holders

LONGEST_NAME = 253
PLACEHOLDERS = ("holder", "pool", "cluster", "org", "env", "address")
DEFAULT_TTL = 300
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_REVERSE = {
    # the labels below, and how many there may be
    "in-addr.arpa": (re.compile(r"0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]"), 4),
    "ip6.arpa": (re.compile(r"[0-9a-f]"), 32),
}
_CLASSLESS_LABEL = re.compile(r"[0-9]{1,3}/[0-9]{1,2}")  # as the examples of RFC 2317 have it
_MAILBOX = "hostmaster"


@dataclass(frozen=True)
class Record:
    """The name of an address."""

    name: str
    address: IPv4Address | IPv6Address

    @property
    def type(self) -> str:
        return "A" if self.address.version == 4 else "AAAA"


@dataclass(frozen=True)
class Zone:
    """A zone as a file describes it; `nameservers` are host names, `cidr` is that of a classless reverse zone."""

    name: str
    nameservers: Sequence[str]
    serial: int
    ttl: int = DEFAULT_TTL
    cidr: IPv4Network | None = None

    @property
    def is_reverse(self) -> bool:
        return self.cidr is not None or any(_is_inside(self.name, zone) for zone in _REVERSE)

    def owner_of(self, record: Record) -> str | None:
        """Return the name that a record has in the zone; None if it does not belong to the zone."""
        if self.cidr is not None:
            in_zone = record.address in self.cidr
            return f"{record.address.packed[-1]}.{self.name}" if in_zone else None
        name = record.address.reverse_pointer if self.is_reverse else record.name
        return name if _is_inside(name, self.name) else None


def _is_inside(name: str, zone: str) -> bool:
    return name == zone or name.endswith(f".{zone}")


def parse_name(value: object, field: str = "dns_name") -> str:
    """Return a host name of at least two labels in lower case without the final dot; "" for none.

    An internationalized name is given as A-labels (`xn--…`). Raises InvalidInput wrong_type, dns_name.
    """
    text = holders.parse_description(value, field=field, max_length=2 * LONGEST_NAME)
    name = text.lower().removesuffix(".")
    if text and not is_host_name(name):
        message = (
            "a host name such as web-1.example.org is expected: labels of at most 63 letters a-z, digits"
            " and '-' with a letter or digit at both ends, and 253 characters in all"
        )
        raise errors.InvalidInput.for_field(field, "dns_name", message, text)
    return name


def is_host_name(name: str) -> bool:
    labels = name.split(".")
    fits = len(name) <= LONGEST_NAME and len(labels) > 1 and all(map(_LABEL.fullmatch, labels))
    return (
        fits and not labels[-1].isdigit()
    )  # a name that ends with digits would read as an address


def parse_pattern(value: object, field: str = "dns_pattern") -> str:
    """Return a pattern such as `{holder}.{cluster}.example.org`; "" for none. Raises InvalidInput dns_pattern."""
    text = holders.parse_description(value, field=field, max_length=LONGEST_NAME)
    pattern = text.lower().removesuffix(".")
    unknown = [name for name in _PLACEHOLDER.findall(pattern) if name not in PLACEHOLDERS]
    if unknown:
        names = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        message = f"there is no {{{unknown[0]}}}; known are {names}"
        raise errors.InvalidInput.for_field(field, "dns_pattern", message, text)
    if pattern and not is_host_name(_PLACEHOLDER.sub("x", pattern)):
        message = "a host name with placeholders such as {holder}.{cluster}.example.org is expected"
        raise errors.InvalidInput.for_field(field, "dns_pattern", message, text)
    if pattern and not {"{holder}", "{address}"} & {*re.findall(r"\{[a-z]+\}", pattern)}:
        message = "without {holder} or {address} all addresses would have the same name"
        raise errors.InvalidInput.for_field(field, "dns_pattern", message, text)
    return pattern


def label_of(text: str) -> str:
    """Return what a placeholder becomes in a name: letters, digits and single hyphens (pools/sql/statements/dns_records.sql)."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def address_of(label: str) -> IPv4Address | IPv6Address | None:
    """Return the address that `{address}` wrote as a label; None if it is none."""
    with contextlib.suppress(ValueError):
        if re.fullmatch("[0-9a-f]{32}", label):
            return IPv6Address(int(label, 16))
        return IPv4Address(label.replace("-", "."))
    return None


def read_pattern(pattern: str, name: str) -> Iterator[dict[str, str]]:
    """Yield each way to read a name as derived from a pattern: the texts of its placeholders, by their names."""
    parts = re.split(r"\{([a-z]+)\}", pattern)  # text, placeholder, text, …
    if not name.startswith(parts[0]):
        return
    rest = name.removeprefix(parts[0])
    if len(parts) == 1:
        if not rest:
            yield {}
        return
    following = pattern.removeprefix(f"{parts[0]}{{{parts[1]}}}")
    for end in range(len(rest.partition(".")[0]) + 1):
        for values in read_pattern(following, rest[end:]):
            yield {parts[1]: rest[:end]} | values


def parse_nameserver(value: object, field: str = "ns") -> str:
    """Return the host name of a name server. Raises InvalidInput wrong_type, required, dns_name."""
    return parse_name(value, field) or _refuse_empty(field)


def _refuse_empty(field: str) -> str:
    raise errors.InvalidInput.for_field(field, "required", "is required")


def parse_zone(value: object, field: str = "zone", *, classless: bool = False) -> str:
    """Return the name of a zone, which may have one label; a classless one may begin with a label such as `64/26`.

    Raises InvalidInput wrong_type, required, dns_name.
    """
    text = holders.parse_description(value, field=field, max_length=2 * LONGEST_NAME)
    name = text.lower().removesuffix(".") or _refuse_empty(field)
    first, *others = name.split(".")
    fits = all(map(_LABEL.fullmatch, others)) and not name.rpartition(".")[2].isdigit()
    if not (
        fits and (_LABEL.fullmatch(first) or (classless and _CLASSLESS_LABEL.fullmatch(first)))
    ):
        message = "the name of a zone such as example.org or 10.in-addr.arpa is expected"
        raise errors.InvalidInput.for_field(field, "dns_name", message, text)
    if len(f"{_MAILBOX}.{name}") > LONGEST_NAME:
        most = LONGEST_NAME - len(f"{_MAILBOX}.")
        raise errors.InvalidInput.for_field(
            field, "too_long", f"may have at most {most} characters"
        )
    if not classless and not _may_have_addresses(name):
        message = "no address has a name in it; a classless zone (RFC 2317) needs its CIDR"
        raise errors.InvalidInput.for_field(field, "dns_name", message, text)
    return name


def _may_have_addresses(zone: str) -> bool:
    """Return False for a reverse zone whose labels are those of no address."""
    for reverse, (label, most) in _REVERSE.items():
        if zone.endswith(f".{reverse}"):
            labels = zone.removesuffix(f".{reverse}").split(".")
            return len(labels) <= most and all(map(label.fullmatch, labels))
    return True


def check_classless(cidr: IPv4Network | IPv6Network, field: str = "cidr") -> IPv4Network:
    """Return the CIDR of a classless reverse zone (RFC 2317). Raises InvalidInput `classless_cidr`."""
    if not isinstance(cidr, IPv4Network) or cidr.prefixlen <= 24:
        message = "a classless reverse zone is of an IPv4 CIDR of /25 to /32"
        raise errors.InvalidInput.for_field(field, "classless_cidr", message, cidr)
    return cidr


def zone_lines(zone: Zone, records: Iterable[Record]) -> Iterator[str]:
    """Yield the lines of a zone file (RFC 1035) with the records that belong to the zone.

    A zone below in-addr.arpa or ip6.arpa, or one with a CIDR, has the PTR records of the addresses. The last
    line is a comment, so that a file that was cut off is recognized.
    """
    yield f"$ORIGIN {zone.name}.\n"
    yield f"$TTL {zone.ttl}\n"
    master = zone.nameservers[0]
    domain = (
        zone.name.partition(".")[2] if "/" in zone.name else zone.name
    )  # BIND wants a host name
    yield f"@ IN SOA {master}. {_MAILBOX}.{domain}. {zone.serial} 3600 900 1209600 {zone.ttl}\n"
    for nameserver in zone.nameservers:
        yield f"@ IN NS {nameserver}.\n"
    count = 0
    for record in records:
        if owner := zone.owner_of(record):
            data = f"PTR {record.name}." if zone.is_reverse else f"{record.type} {record.address}"
            count += 1
            yield f"{owner}. IN {data}\n"
    yield f"; end: {count} records\n"


def endpoint_manifests(
    records: Iterable[Record], *, namespace: str, ttl: int = DEFAULT_TTL
) -> Iterator[dict[str, object]]:
    """Yield a DNSEndpoint (externaldns.k8s.io/v1alpha1) for each name of records that are sorted by name."""
    for name, of_name in groupby(records, key=lambda record: record.name):
        targets: dict[str, list[str]] = {}
        for record in of_name:
            targets.setdefault(record.type, []).append(str(record.address))
        yield {
            "apiVersion": "externaldns.k8s.io/v1alpha1",
            "kind": "DNSEndpoint",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/managed-by": "cadastre"},
            },
            "spec": {
                "endpoints": [
                    {
                        "dnsName": name,
                        "recordTTL": ttl,
                        "recordType": record_type,
                        "targets": addresses,
                    }
                    for record_type, addresses in sorted(targets.items())
                ]
            },
        }
