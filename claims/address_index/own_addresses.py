"""The addresses and MACs that a network keeps for itself, and what its administrators withhold."""

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
    """A span of addresses, and what it is for. A note is no contradiction to whoever uses it."""

    type: str
    span: AddressRange
    name: str = ""

    @property
    def note(self) -> bool:
        return self.type == RESERVED_SUBNET


def own_spans(network: Network) -> list[OwnSpan]:
    """Gateways first, so that the most telling one is found first."""
    spans = [*_gateways(network), *_subnets(network)]
    return [*spans, *_ranges(network, spans)]


def _gateways(network: Network) -> Iterator[OwnSpan]:
    try:
        gateways = udn.gateways(network)
    except ValueError:  # of a cluster's object: its own problem
        return
    for text in gateways:
        gateway = ip_address(text)
        yield OwnSpan(GATEWAY, AddressRange(gateway, gateway), text)


def macs(network: Network) -> dict[str, str]:
    """The gateway's own MAC addresses, each with the address of the gateway."""
    try:
        return udn.gateway_macs(network)
    except ValueError:  # of a cluster's object: its own problem
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
    """Reserved ranges that people made in the pool; the network's own are told by what they are."""
    if network.pool_id is None:
        return
    for row in ReservedRange.objects.filter(pool=network.pool_id):
        span = AddressRange(row.first, row.last)
        if not any(_within(span, own_span.span) for own_span in spans):
            yield OwnSpan(RESERVED_RANGE, span, row.reason or str(row))


def _within(inner: AddressRange, outer: AddressRange) -> bool:
    same = inner.family == outer.family
    return same and int(outer.first) <= int(inner.first) and int(inner.last) <= int(outer.last)
