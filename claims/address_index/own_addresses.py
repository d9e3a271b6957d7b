"""Addresses and MACs that a network uses itself: what OVN-Kubernetes keeps, and reserved ranges of its pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from claims.core.networks import kept_addresses
from claims.core.networks.kept_addresses import KeptSpan
from claims.models import Network
from pools.core.addresses import AddressRange
from pools.models import ReservedRange

RESERVED_RANGE = "reserved_range"


@dataclass(frozen=True)
class OwnSpan:
    """A span of addresses and its type; a span that is only a note conflicts with no other use.

    `type` is that of the kept span, or RESERVED_RANGE; `description` says what an address of it is.
    """

    type: str
    span: AddressRange
    name: str = ""
    description: str = ""
    note: bool = False


def own_spans(network: Network) -> list[OwnSpan]:
    """Return the spans of the network, gateways first, because they are the most specific."""
    spans = [_own_span(kept_span) for kept_span in kept_addresses.kept_spans(network)]
    return [*spans, *_ranges(network, spans)]


def _own_span(kept_span: KeptSpan) -> OwnSpan:
    return OwnSpan(
        kept_span.type,
        kept_span.span,
        kept_span.name,
        kept_span.description,
        note=kept_span.on_request,
    )


def macs(network: Network) -> dict[str, KeptSpan]:
    """Return the MAC addresses of gateways and management ports, each with the address of its port."""
    return kept_addresses.kept_macs(network)


def _ranges(network: Network, spans: Sequence[OwnSpan]) -> Iterator[OwnSpan]:
    """Yield reserved ranges of the pool that lie in none of the network's own spans."""
    if network.pool_id is None:
        return
    for row in ReservedRange.objects.filter(pool=network.pool_id):
        span = AddressRange(row.first, row.last)
        if not any(_within(span, own_span.span) for own_span in spans):
            is_note = row.reason.startswith(kept_addresses.LEFT_OUT)
            yield OwnSpan(RESERVED_RANGE, span, row.reason or str(row), note=is_note)


def _within(inner: AddressRange, outer: AddressRange) -> bool:
    same = inner.family == outer.family
    return same and int(outer.first) <= int(inner.first) and int(inner.last) <= int(outer.last)
