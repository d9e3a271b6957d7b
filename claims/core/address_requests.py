"""Validation of addresses that a pod requests on a primary network.

Imports, waves and the webhooks check addresses here before they write them for a VM. OVN-Kubernetes
refuses other addresses (go-controller/pkg/allocator/pod, as of 2026), and then the VM does not start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from ipaddress import ip_interface

from claims.core.networks import kept_addresses, udn
from claims.core.networks.kept_addresses import KeptSpan
from pools.core.addresses import AddressRange
from pools.core.addresses import Interface as Address
from pools.core.addresses import Network as Subnet

TOO_MANY, MISSING = "too_many_addresses", "family_missing"


class DeclinedError(Exception):
    """No addresses can be requested; `code` is a stable error code, `message` is the reason.

    `answer` is the reason without names of other namespaces, for whoever asked the API server.
    """

    def __init__(self, code: str, message: str, answer: str = "") -> None:
        self.code = code
        self.message = message
        self.answer = answer or message
        super().__init__(message)


def fit(ips: Iterable[str], network: udn.NetworkLike, source: str) -> tuple[str, ...]:
    """Return the addresses with the prefix lengths of their subnets, IPv4 first.

    If the network has no subnets, the addresses keep their prefix lengths. Error messages begin with
    `source`. Raises DeclinedError: too_many_addresses,
    outside_subnet, unusable_address (OVN-Kubernetes keeps it for the network itself), family_missing.
    """
    requested_addresses = sorted(
        map(ip_interface, ips), key=lambda address: (address.version, address.ip)
    )
    subnets = udn.readable_networks(network.subnets)
    _check_number(requested_addresses, source)
    kept_spans = [
        kept_span for kept_span in kept_addresses.kept_spans(network) if not kept_span.on_request
    ]
    fitting = tuple(
        _within(address, subnets, kept_spans, source) for address in requested_addresses
    )
    _check_missing(requested_addresses, {subnet.version for subnet in subnets}, source)
    return fitting


def check_families(ips: Iterable[str], families: Collection[int], source: str) -> None:
    """Check that there is one address of each family. Raises DeclinedError: too_many_addresses,
    family_missing."""
    requested_addresses = list(map(ip_interface, ips))
    _check_number(requested_addresses, source)
    _check_missing(requested_addresses, families, source)


def _check_number(requested_addresses: Sequence[Address], source: str) -> None:
    if max(Counter(address.version for address in requested_addresses).values(), default=0) > 1:
        listed = ", ".join(str(address.ip) for address in requested_addresses)
        raise DeclinedError(TOO_MANY, f"{source} has two addresses of one family: {listed}")


def _check_missing(
    requested_addresses: Sequence[Address], families: Collection[int], source: str
) -> None:
    missing = set(families) - {address.version for address in requested_addresses}
    if missing and requested_addresses:
        message = f"{source} has no IPv{min(missing)} address; the network needs an address of each family"
        raise DeclinedError(MISSING, message)


def _within(
    address: Address, subnets: Sequence[Subnet], kept_spans: Sequence[KeptSpan], source: str
) -> str:
    if not subnets:  # not known yet
        return str(address)
    subnet = next((candidate for candidate in subnets if address.ip in candidate), None)
    if subnet is None:
        message = f"{source} has {address.ip}, which is in none of the subnets {', '.join(map(str, subnets))}"
        raise DeclinedError("outside_subnet", message)
    host = AddressRange(address.ip, address.ip)
    kept_span = next((kept_span for kept_span in kept_spans if kept_span.span.overlaps(host)), None)
    if kept_span is not None:
        message = f"{source} has {address.ip}, which is {kept_span.description}"
        raise DeclinedError("unusable_address", message)
    return f"{address.ip}/{subnet.prefixlen}"
