"""Which uses of the same addresses inside one cluster are intended (docs/reference/observed-cidrs.md)."""

from __future__ import annotations

from dataclasses import dataclass

from pools.core.observed.uses import Role

_NODE, _GATEWAY = "Node", "CiliumEgressGatewayPolicy"
_NODES = (_NODE, "CiliumNode")
_PREFIX = "prefix"
SERVICE = "Service"
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
