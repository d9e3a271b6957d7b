"""The addresses that an object of a cluster uses, and the reader with which all kinds are parsed.

Beside it: which uses of the same addresses inside one cluster are intended (docs/reference/observed-
cidrs.md).
"""

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, summarize_address_range
from typing import Any

from pools.core import addresses, errors, object_reader
from pools.core.object_reader import Fields, ProblemReport

MOST = 10_000  # CIDRs of one object
_LONGEST_DETAIL = 200


class Role(enum.StrEnum):
    """What a cluster uses addresses for."""

    SERVICES = "services"  # virtual addresses of Services
    PODS = "pods"  # pod CIDRs of nodes, and the settings that they are taken from
    POD_POOL = "pod-pool"  # a pool from which another IPAM hands out addresses of pods
    NODE = "node-address"
    LOAD_BALANCER = "load-balancer"  # addresses that are handed out to Services
    EGRESS = "egress"  # source addresses of pods outside of the cluster
    SECONDARY = "secondary"  # further interfaces of pods


@dataclass(frozen=True)
class AddressUse:
    """A CIDR that an object uses; `detail` says more than the role, such as `InternalIP`."""

    role: Role
    cidr: addresses.Network
    detail: str = ""


@dataclass(frozen=True)
class ObservedUses:
    """What one object uses, without the values that have problems."""

    uses: tuple[AddressUse, ...] = ()
    problems: tuple[errors.FieldProblem, ...] = ()


@dataclass
class UseReader:
    """Collects the uses of one object; a value that cannot be read is a problem, and the others count."""

    manifest: Any
    report: ProblemReport = field(default_factory=lambda: ProblemReport(strict=False))
    uses: dict[tuple[Role, addresses.Network], AddressUse] = field(default_factory=dict)

    @property
    def fields(self) -> Fields:
        data = self.manifest if isinstance(self.manifest, dict) else {}
        return Fields(data, "", self.report)

    def add(self, role: Role, cidrs: Iterable[addresses.Network], detail: str = "") -> None:
        """Add CIDRs; of two details of one CIDR and role the later one counts."""
        for cidr in cidrs:
            if len(self.uses) == MOST:
                self.report.add(
                    "", "too_many", f"has more than {MOST} CIDRs; the others are left out"
                )
                return
            self.uses[role, cidr] = AddressUse(role, cidr, detail[:_LONGEST_DETAIL])

    def add_network(self, role: Role, value: object, path: str, detail: str = "") -> None:
        """Add a CIDR, or an address as the CIDR of this one address."""
        with self.report.collect():
            self.add(role, [addresses.parse_used_network(value, field=path)], detail)

    def add_networks(self, role: Role, text: object, path: str, detail: str = "") -> None:
        """Add the CIDRs of a text with commas between them."""
        if not isinstance(text, str):
            self.report.add(path, "wrong_type", "write it as a text in quotes", text)
            return
        for part in text.split(","):
            if part.strip():
                self.add_network(role, part.strip(), path, detail)

    def add_range(
        self, role: Role, span: addresses.AddressRange, *, without: Iterable[Any] = ()
    ) -> None:
        """Add a range as the fewest CIDRs; `without` are networks of it that are not used."""
        networks = [
            network
            for first, last in _subtract(span, without)
            for network in _networks(span.family, first, last)
        ]
        self.add(role, networks, "" if len(networks) == 1 else str(span))

    def result(self) -> ObservedUses:
        return ObservedUses(tuple(self.uses.values()), tuple(self.report.problems))


def _subtract(
    span: addresses.AddressRange, without: Iterable[addresses.Network]
) -> Iterator[tuple[int, int]]:
    """Yield the first and the last numbers of the parts of a range outside of networks."""
    first, end = int(span.first), int(span.last)
    same_family = (network for network in without if network.version == span.family)
    for network in sorted(same_family, key=lambda network: int(network.network_address)):
        before = int(network.network_address) - 1
        if first <= min(before, end):
            yield first, min(before, end)
        first = max(first, int(network.broadcast_address) + 1)
    if first <= end:
        yield first, end


def _networks(family: int, first: int, last: int) -> list[addresses.Network]:
    if family == 4:
        return list(summarize_address_range(IPv4Address(first), IPv4Address(last)))
    return list(summarize_address_range(IPv6Address(first), IPv6Address(last)))


def texts(fields: Fields, key: str) -> Iterator[tuple[str, object]]:
    """Yield the members of a list with their paths, without null."""
    return (item for item in fields.items(key) if item[1] is not None)


Json = object_reader.Json


_NODE, _GATEWAY = "Node", "CiliumEgressGatewayPolicy"
_NODES = (_NODE, "CiliumNode")
_PREFIX = "prefix"
SERVICE = "Service"
VM_NETWORK = "VM network"  # of the register; without a pool its addresses are used one by one
CALICO_POOL, CALICO_RESERVATION = "IPPool.projectcalico.org", "IPReservation.projectcalico.org"
# A Service has its address of a pool or of a node; several Services share one on different ports.
_OF_SERVICES = {Role.LOAD_BALANCER, Role.NODE, "ipv4"}
# Pairs of a use and a use, or of the category of a pool and a use.
_INTENDED = {
    frozenset({Role.SERVICES}),  # Service CIDRs may overlap, and settings repeat them
    frozenset({Role.PODS}),  # nodes have parts of the settings
    frozenset({Role.PODS, Role.POD_POOL}),
    frozenset({Role.SECONDARY}),  # a network has an attachment definition in each namespace
    frozenset({"pod", Role.PODS}),  # the pool that feeds the nodes
    frozenset({"node", Role.NODE}),
    frozenset({"ipv4", Role.NODE}),  # public addresses that the register hands out
    frozenset({"ipv4", Role.EGRESS}),
}


@dataclass(frozen=True)
class Use:
    """A use of addresses: the category of a pool, or the role with the kind and the uid of an object."""

    category: str
    kind: str = ""
    uid: str = ""


def is_clash(one: Use, other: Use) -> bool:
    """Return True if two uses of the same addresses in one cluster disturb each other.

    The register itself refuses pools that overlap in one address space, and a cluster's prefix is only
    divided into pools.
    """
    if not (one.kind or other.kind) or _PREFIX in {one.category, other.category}:
        return False
    if CALICO_RESERVATION in {one.kind, other.kind}:
        return False  # nothing is handed out of it
    if one.kind and (one.kind, one.uid) == (other.kind, other.uid):
        return False
    categories, kinds = frozenset({one.category, other.category}), (one.kind, other.kind)
    if categories == {Role.PODS}:
        # Two nodes have one pod CIDR; a Node and its CiliumNode may repeat each other.
        return one.kind == other.kind and one.kind in _NODES
    if SERVICE in kinds and categories <= _OF_SERVICES:
        return False
    if Role.EGRESS in categories and categories <= {Role.EGRESS, Role.NODE}:
        # A gateway's egress address is one of its node, and several policies use it.
        return _GATEWAY not in kinds or not set(kinds) <= {_GATEWAY, _NODE}
    return categories not in _INTENDED
