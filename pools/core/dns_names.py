"""DNS names of addresses, the pattern that derives them, and their records in zone files and DNSEndpoints.

RFC 1123, 2.1: a label has letters, digits and hyphens, none at an end. Such names need no escaping in a zone file.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from itertools import groupby
from typing import NamedTuple

from pools.core import addresses, errors, holders

LONGEST_NAME = 253
HOLDER = "{holder}."  # a pattern begins with it
CLUSTER = "{cluster}"
DEFAULT_TTL = 300
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_CLASSLESS_LABEL = re.compile(r"^[0-9]{1,3}/[0-9]{1,2}\.")  # as the examples of RFC 2317 have it
_REVERSE = re.compile(r"(?:(?:0|[1-9]\d{0,2})\.){0,4}in-addr\.arpa|(?:[0-9a-f]\.){0,32}ip6\.arpa")
_MAILBOX = "hostmaster"


class Record(NamedTuple):
    """The name of an address."""

    name: str
    address: IPv4Address | IPv6Address

    @property
    def type(self) -> str:
        return "A" if self.address.version == 4 else "AAAA"


def _is_domain(name: str) -> bool:
    # A name that ends with digits would read as an address.
    labels = name.split(".")
    return all(map(_LABEL.fullmatch, labels)) and not labels[-1].isdigit()


def is_host_name(name: str) -> bool:
    return "." in name and len(name) <= LONGEST_NAME and _is_domain(name)


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


def parse_zone(value: object, field: str = "zone") -> str:
    """Return the name of a zone, which may have one label. Raises InvalidInput wrong_type, too_long, dns_name."""
    longest = LONGEST_NAME - len(f"{_MAILBOX}.")
    text = holders.parse_description(value, field=field, max_length=longest)
    name = text.lower().removesuffix(".")
    if not _is_domain(_CLASSLESS_LABEL.sub("", name)):
        message = "the name of a zone such as example.org or 10.in-addr.arpa is expected"
        raise errors.InvalidInput.for_field(field, "dns_name", message, name)
    return name


def parse_classless(text: str, field: str = "cidr") -> IPv4Network:
    """Return the CIDR of a classless reverse zone. Raises InvalidInput classless_cidr and those of CIDRs."""
    cidr = addresses.parse_cidr(text, field=field)
    if not isinstance(cidr, IPv4Network) or cidr.prefixlen <= 24:
        message = "a classless reverse zone is of an IPv4 CIDR of /25 to /32"
        raise errors.InvalidInput.for_field(field, "classless_cidr", message, text)
    return cidr


def require_addresses(zone: str) -> None:
    """Raise InvalidInput dns_name if no address can have a name in a zone that is no classless one."""
    if "/" in zone or (_is_reverse(zone) and not _REVERSE.fullmatch(zone)):
        message = "no address has a name in it; a classless zone (RFC 2317) needs its CIDR"
        raise errors.InvalidInput.for_field("zone", "dns_name", message, zone)


def _is_reverse(zone: str) -> bool:
    return f".{zone}".endswith((".in-addr.arpa", ".ip6.arpa"))


def zone_lines(
    records: Iterable[Record],
    zone: str,
    nameservers: Sequence[str],
    *,
    serial: int,
    ttl: int = DEFAULT_TTL,
    cidr: IPv4Network | None = None,
) -> Iterator[str]:
    """Yield the lines of a zone file (RFC 1035) with the records that belong to the zone.

    `cidr` is that of a classless reverse zone. The last line is a comment, so that a file that was cut off is
    recognized.
    """
    domain = _CLASSLESS_LABEL.sub("", zone)  # BIND wants a host name
    yield f"$ORIGIN {zone}.\n$TTL {ttl}\n"
    yield f"@ IN SOA {nameservers[0]}. {_MAILBOX}.{domain}. {serial} 3600 900 1209600 {ttl}\n"
    yield from (f"@ IN NS {nameserver}.\n" for nameserver in nameservers)
    count, is_reverse = 0, bool(cidr) or _is_reverse(zone)
    for record in records:
        name = record.address.reverse_pointer if is_reverse else record.name
        if cidr:
            name = f"{record.address.packed[-1]}.{zone}" if record.address in cidr else ""
        if f".{name}".endswith(f".{zone}"):
            count += 1
            data = f"PTR {record.name}." if is_reverse else f"{record.type} {record.address}"
            yield f"{name}. IN {data}\n"
    yield f"; end: {count} records\n"


def endpoint_lines(
    records: Iterable[Record], *, namespace: str, ttl: int = DEFAULT_TTL
) -> Iterator[str]:
    """Yield the lines of a List in JSON with a DNSEndpoint (externaldns.k8s.io/v1alpha1) for each name.

    The records are sorted by name. A list that was cut off is no JSON, so that kubectl prunes nothing.
    """
    yield '{"apiVersion": "v1", "kind": "List", "items": ['
    separator = "\n"
    for name, rows in groupby(records, key=lambda record: record.name):
        targets: dict[str, list[str]] = {}
        for record in rows:
            targets.setdefault(record.type, []).append(str(record.address))
        endpoints = [
            {"dnsName": name, "recordTTL": ttl, "recordType": record_type, "targets": values}
            for record_type, values in sorted(targets.items())
        ]
        labels = {"app.kubernetes.io/managed-by": "cadastre"}
        manifest = {
            "apiVersion": "externaldns.k8s.io/v1alpha1",
            "kind": "DNSEndpoint",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"endpoints": endpoints},
        }
        yield separator + json.dumps(manifest)
        separator = ",\n"
    yield "\n]}\n"
