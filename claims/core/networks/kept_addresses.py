"""What OVN-Kubernetes keeps of a network's subnets, each address with its reason.

Pools, entries, claims, imports, waves, webhooks and pages ask here, so that an address that OVN-Kubernetes
refuses is handed out by none of them (rule `kept-addresses-are-handed-out-by-nobody`). The rules are those
of its cluster manager as of August 2026: newIPAllocatorForNetwork (go-controller/pkg/clustermanager),
allocateInfrastructureIPs (pkg/util) and the allocator of pkg/allocator/ip.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from claims.core import macs
from claims.core.networks import udn
from pools.core.addresses import Address, AddressRange, Network

GATEWAY, MANAGEMENT = "gateway", "management"
INFRASTRUCTURE, EXCLUDED, JOIN = "infrastructure", "excluded", "join_subnet"
EDGE, OUT_OF_RANGE = "subnet_edge", "out_of_range"
RESERVED_SUBNET = "reserved_subnet"
RESERVED_RANGE = "reserved_range"  # of the network's pool, by whoever reserved it
# How the reason of a reserved range begins that only notes what an import left out has in use.
LEFT_OUT = "in use, not imported"
SEGMENT_REASON = "reserved on another network of the segment"  # of a reserved range of the pool
# The reason of a reserved range of the pool, and what an address is, for messages.
_REASONS = {
    GATEWAY: ("default gateway of the network", "the gateway of the network"),
    MANAGEMENT: ("management port of the network", "the management port of the network"),
    INFRASTRUCTURE: (
        "infrastructure subnet of the network", "in the infrastructure subnet {name}",
    ),
    EXCLUDED: ("excluded subnet of the network", "in the excluded subnet {name}"),
    JOIN: ("join subnet of the network", "in the join subnet {name}"),
    EDGE: ("first or last address of the subnet", "the first or last address of {name}"),
    OUT_OF_RANGE: (
        "beyond the addresses that OVN-Kubernetes assigns",
        "beyond the first 65,536 addresses of {name}: OVN-Kubernetes assigns no others",
    ),
    RESERVED_SUBNET: (
        "reserved subnet of the network: on request only",
        "in the reserved subnet {name}, which is for requested addresses only",
    ),
}  # fmt: skip
POOL_REASONS = frozenset(reason for reason, _ in _REASONS.values()) | {SEGMENT_REASON}
_MOST_IPV6 = 1 << 16  # addresses of an IPv6 subnet, from its first one


@dataclass(frozen=True)
class KeptSpan:
    """Addresses that OVN-Kubernetes keeps, or that are reserved in the pool, with the type of the reason.

    `name` is the address, the subnet of the network's object, the subnet whose edge it is, or the reason of a
    reserved range.
    """

    type: str
    span: AddressRange
    name: str

    def has(self, address: Address) -> bool:
        return self.span.overlaps(AddressRange(address, address))

    @property
    def is_note(self) -> bool:
        """True if a use is no conflict: OVN-Kubernetes assigns it on request, or an import left it out."""
        is_left_out = self.type == RESERVED_RANGE and self.name.startswith(LEFT_OUT)
        return is_left_out or self.type == RESERVED_SUBNET

    @property
    def reason(self) -> str:
        return _REASONS[self.type][0]

    @property
    def description(self) -> str:
        """What an address of the span is: `the gateway of the network`; "" for a reserved range."""
        is_known = self.type != RESERVED_RANGE
        return _REASONS[self.type][1].format(name=self.name) if is_known else ""

    @property
    def port(self) -> str:
        """The port that has the only address of the span: `gateway 10.0.0.1`."""
        return f"{'gateway' if self.type == GATEWAY else 'management port'} {self.name}"


def kept_spans(network: udn.NetworkLike) -> list[KeptSpan]:
    """Return what OVN-Kubernetes keeps of the network's subnets, the most specific reasons first.

    Each node of a layer3 network has a subnet with a gateway of its own; of the network itself only the
    edges are kept.
    """
    subnets = udn.readable_networks(network.subnets)
    edges = [span for subnet in subnets for span in _edges(subnet)]
    if network.topology == udn.LAYER3:
        return edges
    return [
        *(_single(GATEWAY, ip_address(text)) for text in udn.gateways(network)),
        *(_single(MANAGEMENT, ip_address(text)) for text in udn.management_addresses(network)),
        *_parts(INFRASTRUCTURE, network.infrastructure_subnets, subnets),
        *_parts(EXCLUDED, network.exclude_subnets, subnets),
        *_parts(JOIN, network.join_subnets, subnets),
        *edges,
        *(span for subnet in subnets for span in _out_of_range(subnet)),
        *_parts(RESERVED_SUBNET, network.reserved_subnets, subnets),
    ]


def kept_macs(network: udn.NetworkLike) -> dict[str, KeptSpan]:
    """Return the MAC addresses that OVN-Kubernetes refuses, those of gateways and management ports."""
    return {
        macs.mac_of_address(kept_span.span.first): kept_span
        for kept_span in reversed(kept_spans(network))
        if kept_span.type in {GATEWAY, MANAGEMENT}
    }


def _single(type_: str, address: Address, name: str = "") -> KeptSpan:
    return KeptSpan(type_, AddressRange(address, address), name or str(address))


def _parts(type_: str, texts: Sequence[str], subnets: Sequence[Network]) -> Iterator[KeptSpan]:
    """Yield the parts of the subnets that the listed networks cover."""
    for listed in udn.readable_networks(texts):
        for subnet in subnets:
            if listed.version == subnet.version and listed.overlaps(subnet):  # one holds the other
                part = max(listed, subnet, key=lambda network: network.prefixlen)
                yield KeptSpan(type_, AddressRange.from_network(part), str(listed))


def _edges(subnet: Network) -> Iterator[KeptSpan]:
    """Yield the first address, and the last one of an IPv4 subnet, whatever its size."""
    yield _single(EDGE, subnet.network_address, str(subnet))
    if subnet.version == 4 and subnet.num_addresses > 1:
        yield _single(EDGE, subnet.broadcast_address, str(subnet))


def _out_of_range(subnet: Network) -> Iterator[KeptSpan]:
    if subnet.version == 6 and subnet.num_addresses > _MOST_IPV6:
        span = AddressRange(subnet.network_address + _MOST_IPV6, subnet.broadcast_address)
        yield KeptSpan(OUT_OF_RANGE, span, str(subnet))


# --- networks whose addresses OVN-Kubernetes cannot keep as configured ---------------------------


@dataclass(frozen=True)
class Contradiction:
    """What OVN-Kubernetes cannot keep as configured; a `fatal` one leaves the network without any address."""

    field: str
    message: str
    fatal: bool


def contradictions(network: udn.NetworkLike) -> list[Contradiction]:
    """Return the parts of the network that contradict each other, by AddOrUpdateSubnet (pkg/allocator/ip/subnet).

    It takes out the reserved, excluded and infrastructure subnets, and, without infrastructure subnets, the ports:
    an address that it would take out twice, or cannot take out, is an error, and the network has no allocator. With
    infrastructure subnets it does not take out ports that lie outside of them.
    """
    if network.topology == udn.LAYER3:
        return []
    subnets = udn.readable_networks(network.subnets)
    ports = [
        (name, ip_network(text))
        for name, texts in (
            ("gateway", udn.gateways(network)),
            ("management port", udn.management_addresses(network)),
        )
        for text in texts
    ]
    infrastructure = udn.readable_networks(network.infrastructure_subnets)
    parts = [
        ("reserved_subnets", "reserved subnet", network.reserved_subnets),
        ("exclude_subnets", "excluded subnet", network.exclude_subnets),
        ("infrastructure_subnets", "infrastructure subnet", network.infrastructure_subnets),
    ]
    parts_taken_out = [
        (field, f"the {word} {part}", part)
        for field, word, texts in parts
        for part in udn.readable_networks(texts)
    ]
    if not infrastructure:
        parts_taken_out += [
            ("default_gateways", f"the {name} {part[0]}", part) for name, part in ports
        ]
    problems = [
        Contradiction(field, f"{_begin(words)} {why}: {_NO_ALLOCATOR}", fatal=True)
        for field, words, part in parts_taken_out
        if (why := _cannot_be_taken_out(part, subnets))
    ]
    problems = problems[:_MOST_CONTRADICTIONS]  # a NAD may list thousands of excluded subnets
    problems += [
        Contradiction(
            parts_taken_out[first][0],
            f"{_begin(parts_taken_out[first][1])} and {parts_taken_out[second][1]} overlap: {_TWICE}",
            fatal=True,
        )
        for first, second in _overlaps([part for _, _, part in parts_taken_out], subnets)
    ]
    problems += [
        Contradiction(
            "infrastructure_subnets",
            f"The {name} {part[0]} is in none of the infrastructure subnets, which have no room for it:"
            " OVN-Kubernetes gives this address to pods, too.",
            fatal=False,
        )
        for name, part in ports
        if infrastructure and not any(part.overlaps(other) for other in infrastructure)
    ]
    return problems


_MOST_CONTRADICTIONS = 100  # that are named, of each kind
_NO_ALLOCATOR = (
    "OVN-Kubernetes fails to reserve it, and gives no address of the network to anybody."
)
_TWICE = "OVN-Kubernetes fails to reserve an address twice, and gives no address of the network to anybody."


def _begin(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def _cannot_be_taken_out(part: Network, subnets: Sequence[Network]) -> str:
    subnet = next((candidate for candidate in subnets if holds(candidate, part)), None)
    if subnet is None:
        return "is in none of the subnets" if subnets else ""
    last = int(part.broadcast_address) - int(subnet.network_address)
    if subnet.version == 6 and last >= _MOST_IPV6:
        return f"reaches beyond the first 65,536 addresses of {subnet}"
    return ""


def holds(outer: Network, inner: Network) -> bool:
    return inner.network_address in outer and outer.prefixlen <= inner.prefixlen


def _overlaps(parts: Sequence[Network], subnets: Sequence[Network]) -> list[tuple[int, int]]:
    """Return the first pairs of parts, by their places, that share an address besides the edges of the subnets.

    Edges are taken out anyway. In order of addresses, a part comes after those that hold it.
    """
    edges = [span.span.first for subnet in subnets for span in _edges(subnet)]
    pairs: list[tuple[int, int]] = []
    holding: list[int] = []
    for place in sorted(
        range(len(parts)),
        key=lambda n: (parts[n].version, int(parts[n].network_address), parts[n].prefixlen),
    ):
        part = parts[place]
        if part.num_addresses <= len(edges) and part.num_addresses <= sum(
            edge in part for edge in edges
        ):
            continue
        while holding and not (
            parts[holding[-1]].version == part.version and holds(parts[holding[-1]], part)
        ):
            holding.pop()
        pairs += [(min(place, other), max(place, other)) for other in holding]
        if len(pairs) >= _MOST_CONTRADICTIONS:
            break
        holding.append(place)
    return sorted(pairs)[:_MOST_CONTRADICTIONS]
