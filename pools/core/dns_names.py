"""DNS names of addresses, the pattern that derives them, and their records in zone files and DNSEndpoints.

RFC 1123, 2.1: a label has letters, digits and hyphens, none at an end. Such names need no escaping in a zone file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from itertools import groupby

from pools.core import addresses, errors, holders

LONGEST_NAME = 253
HOLDER = "{holder}."  # a pattern begins with it
CLUSTER = "{cluster}"
DEFAULT_TTL = 300
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_CLASSLESS_LABEL = re.compile(r"[0-9]{1,3}/[0-9]{1,2}")  # as the examples of RFC 2317 have it
_OCTET = "(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_REVERSE_ZONE = re.compile(rf"(?:{_OCTET}\.){{0,4}}in-addr\.arpa|(?:[0-9a-f]\.){{0,32}}ip6\.arpa")
_MAILBOX = "hostmaster"


@dataclass(frozen=True)
class Record:
    """The name of an address."""

    name: str
    address: IPv4Address | IPv6Address

    @property
    def type(self) -> str:
        return "A" if self.address.version == 4 else "AAAA"


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
    """Return a pattern: `{holder}.` and a domain, in which `{cluster}` may stand; "" for none.

    Raises InvalidInput wrong_type, dns_pattern.
    """
    text = holders.parse_description(value, field=field, max_length=LONGEST_NAME)
    pattern = text.lower().removesuffix(".")
    domain = pattern.removeprefix(HOLDER).replace(CLUSTER, "x")
    if pattern and not (pattern.startswith(HOLDER) and is_host_name(f"x.{domain}")):
        message = "{holder}.example.org or {holder}.{cluster}.example.org is expected"
        raise errors.InvalidInput.for_field(field, "dns_pattern", message, text)
    return pattern


def label_of(text: str) -> str:
    """Return what a placeholder becomes in a name: letters, digits and single hyphens (pools/sql/statements/dns_records.sql)."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def domain_of(pattern: str, cluster: str) -> str:
    """Return what follows the label of the holder in the names that a pattern derives."""
    return pattern.removeprefix(HOLDER).replace(CLUSTER, label_of(cluster))


@dataclass(frozen=True)
class Zone:
    """A zone as a file describes it; `nameservers` are host names, `cidr` is that of a classless reverse zone."""

    name: str
    nameservers: Sequence[str]
    serial: int
    ttl: int = DEFAULT_TTL
    cidr: IPv4Network | None = None

    @classmethod
    def parse(
        cls, name: str, nameservers: Sequence[str], *, serial: int, ttl: int, cidr: str = ""
    ) -> Zone:
        """Return the zone that a request describes.

        Raises InvalidInput required, dns_name, too_long, classless_cidr, and those of CIDRs.
        """
        if not nameservers or not all(text.strip() for text in nameservers):
            raise errors.InvalidInput.for_field("ns", "required", "is required")
        return cls(
            parse_zone(name, classless=bool(cidr)),
            [parse_name(text, "ns") for text in nameservers],
            serial,
            ttl,
            _parse_classless(cidr) if cidr else None,
        )

    @property
    def is_reverse(self) -> bool:
        return self.cidr is not None or _is_reverse(self.name)

    def owner_of(self, record: Record) -> str | None:
        """Return the name that a record has in the zone; None if it does not belong to the zone."""
        if self.cidr is not None:
            in_zone = record.address in self.cidr
            return f"{record.address.packed[-1]}.{self.name}" if in_zone else None
        name = record.address.reverse_pointer if self.is_reverse else record.name
        return name if f".{name}".endswith(f".{self.name}") else None


def _is_reverse(zone: str) -> bool:
    return f".{zone}".endswith((".in-addr.arpa", ".ip6.arpa"))


def parse_zone(text: str, field: str = "zone", *, classless: bool = False) -> str:
    """Return the name of a zone, which may have one label; a classless one may begin with a label such as `64/26`.

    Raises InvalidInput required, dns_name, too_long.
    """
    name = holders.parse_description(text, field=field, max_length=2 * LONGEST_NAME)
    name = name.lower().removesuffix(".")
    if not name:
        raise errors.InvalidInput.for_field(field, "required", "is required")
    if len(f"{_MAILBOX}.{name}") > LONGEST_NAME:
        message = f"may have at most {LONGEST_NAME - len(f'{_MAILBOX}.')} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message)
    first, *others = name.split(".")
    label = _CLASSLESS_LABEL if classless and "/" in first else _LABEL
    fits = label.fullmatch(first) and all(map(_LABEL.fullmatch, others))
    if not fits or name.rpartition(".")[2].isdigit():
        message = "the name of a zone such as example.org or 10.in-addr.arpa is expected"
        raise errors.InvalidInput.for_field(field, "dns_name", message, text)
    if not classless and _is_reverse(name) and not _REVERSE_ZONE.fullmatch(name):
        message = "no address has a name in it; a classless zone (RFC 2317) needs its CIDR"
        raise errors.InvalidInput.for_field(field, "dns_name", message, text)
    return name


def _parse_classless(text: str) -> IPv4Network:
    cidr = addresses.parse_cidr(text, field="cidr")
    if not isinstance(cidr, IPv4Network) or cidr.prefixlen <= 24:
        message = "a classless reverse zone is of an IPv4 CIDR of /25 to /32"
        raise errors.InvalidInput.for_field("cidr", "classless_cidr", message, text)
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


def endpoint_lines(
    records: Iterable[Record], *, namespace: str, ttl: int = DEFAULT_TTL
) -> Iterator[str]:
    """Yield the lines of a List in JSON with a DNSEndpoint (externaldns.k8s.io/v1alpha1) for each name.

    The records are sorted by name. A list that was cut off is no JSON, so that kubectl prunes nothing.
    """
    yield '{"apiVersion": "v1", "kind": "List", "items": ['
    separator = "\n"
    for name, of_name in groupby(records, key=lambda record: record.name):
        targets: dict[str, list[str]] = {}
        for record in of_name:
            targets.setdefault(record.type, []).append(str(record.address))
        endpoints = [
            {"dnsName": name, "recordTTL": ttl, "recordType": record_type, "targets": values}
            for record_type, values in sorted(targets.items())
        ]
        manifest = {
            "apiVersion": "externaldns.k8s.io/v1alpha1",
            "kind": "DNSEndpoint",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/managed-by": "cadastre"},
            },
            "spec": {"endpoints": endpoints},
        }
        yield separator + json.dumps(manifest)
        separator = ",\n"
    yield "\n]}\n"
