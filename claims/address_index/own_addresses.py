"""Addresses and MACs that a network uses itself, and reserved ranges of its pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from claims.core.networks import udn
from claims.models import Network
from pools.core.addresses import AddressRange
from pools.models import ReservedRange

GATEWAY = "gateway"
INFRASTRUCTURE = "infrastructure"
RESERVED_RANGE = "reserved_range"
RESERVED_SUBNET = "reserved_subnet"


@dataclass(frozen=True)
class OwnSpan:
    """A span of addresses and its type; a span that is only a note conflicts with no other use."""

    type: str
    span: AddressRange
    name: str = ""

    @property
    def note(self) -> bool:
        return self.type == RESERVED_SUBNET


def own_spans(network: Network) -> list[OwnSpan]:
    """Return the spans of the network, gateways first, because they are the most specific."""
    spans = [*_gateways(network), *_subnets(network)]
    return [*spans, *_ranges(network, spans)]


def _gateways(network: Network) -> Iterator[OwnSpan]:
    try:
        gateways = udn.gateways(network)
    except ValueError:  # the problem of the cluster's object reports it
        return
    for text in gateways:
        gateway = ip_address(text)
        yield OwnSpan(GATEWAY, AddressRange(gateway, gateway), text)


def macs(network: Network) -> dict[str, str]:
    """Return the MAC addresses of the gateways, each with the address of its gateway."""
    try:
        return udn.gateway_macs(network)
    except ValueError:  # the problem of the cluster's object reports it
        return {}


def _subnets(network: Network) -> Iterator[OwnSpan]:
    for type_, texts in (
        (INFRASTRUCTURE, network.infrastructure_subnets),
        (RESERVED_SUBNET, network.reserved_subnets),
    ):
        for text in texts:
            try:
                yield OwnSpan(type_, AddressRange.from_network(ip_network(text)), text)
            except ValueError:
                continue


def _ranges(network: Network, spans: Sequence[OwnSpan]) -> Iterator[OwnSpan]:
    """Yield reserved ranges of the pool that lie in none of the network's own spans."""
    if network.pool_id is None:
        return
    for row in ReservedRange.objects.filter(pool=network.pool_id):
        span = AddressRange(row.first, row.last)
        if not any(_within(span, own_span.span) for own_span in spans):
            yield OwnSpan(RESERVED_RANGE, span, row.reason or str(row))


def _within(inner: AddressRange, outer: AddressRange) -> bool:
    same = inner.family == outer.family
    return same and int(outer.first) <= int(inner.first) and int(inner.last) <= int(outer.last)
