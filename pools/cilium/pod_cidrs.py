"""PodCIDRs for pages and REST: requests and CIDRs of nodes, and the holders of blocks of a CIDR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pools.cilium import node_status
from pools.cilium.node_status import FAMILIES, NodeStatus
from pools.cilium.pod_pools import PodPools
from pools.core import addresses, errors, redaction
from pools.core.cilium import ciliumnode
from pools.models import Block, BlockState, ObservedObject


@dataclass(frozen=True)
class PoolDemand:
    """One pool of one node; addresses by family 4 and 6, and the CIDRs that the node has."""

    pool: str
    needed: Mapping[int, int]
    usable: Mapping[int, int]
    missing: Mapping[int, int]
    cidrs: tuple[addresses.Network, ...]


@dataclass(frozen=True)
class NodeAddresses:
    """Requests and CIDRs of one node; `waiting` are blocks that were not written to it yet."""

    name: str
    uid: str
    pools: tuple[PoolDemand, ...]
    orphans: tuple[tuple[str, addresses.Network], ...]  # pool as the node lists it, CIDR
    overlaps: tuple[tuple[str, addresses.Network, str], ...]  # pool, CIDR, holder
    waiting: tuple[addresses.Network, ...]
    error: str  # the operator's error in the node's status, or ""
    problem: str  # why the object is invalid; then all other fields are empty


def list_nodes(
    cluster_id: int, *, after: str = "", limit: int = 100, name: str = ""
) -> list[NodeAddresses]:
    """Return up to `limit` nodes of a cluster by name, after the name `after`."""
    rows = ObservedObject.objects.filter(cluster_id=cluster_id, kind=ciliumnode.KIND)
    rows = rows.filter(name=name) if name else rows.filter(name__gt=after)
    shown = list(rows.order_by("name", "id")[:limit])
    read = [(row, *_parse_row(row)) for row in shown]
    demands = [demand for _, demand, _ in read if demand is not None]
    statuses = iter(node_status.node_statuses(PodPools(cluster_id), demands))
    return [
        NodeAddresses(row.name, row.uid, (), (), (), (), "", problem)
        if demand is None
        else _node_addresses(next(statuses))
        for row, demand, problem in read
    ]


def list_registered_nodes(
    cluster_id: int, *, after: str = "", limit: int = 100, name: str = ""
) -> list[NodeAddresses]:
    """Return up to `limit` nodes that hold blocks of a cluster's pools, by name, without what they request."""
    blocks = Block.objects.filter(
        pool__cluster=cluster_id, state=BlockState.HELD, holder_kind=node_status.HOLDER
    )
    blocks = blocks.filter(holder_id=name) if name else blocks.filter(holder_id__gt=after)
    names = list(
        blocks.order_by("holder_id").values_list("holder_id", flat=True).distinct()[:limit]
    )
    cidrs: dict[str, dict[str, list[addresses.Network]]] = {holder: {} for holder in names}
    rows = blocks.filter(holder_id__in=names).order_by("pool__name", "cidr")
    for holder, pool, cidr in rows.values_list("holder_id", "pool__name", "cidr"):
        cidrs[holder].setdefault(pool, []).append(cidr)
    return [
        NodeAddresses(
            holder,
            "",
            tuple(PoolDemand(pool, {}, {}, {}, tuple(held)) for pool, held in by_pool.items()),
            *((), (), (), "", ""),
        )
        for holder, by_pool in cidrs.items()
    ]


def _parse_row(row: ObservedObject) -> tuple[ciliumnode.NodeDemand | None, str]:
    try:
        return ciliumnode.parse(row.manifest), ""
    except errors.InvalidInput as error:
        return None, error.message


def _node_addresses(status: NodeStatus) -> NodeAddresses:
    demand = status.demand
    names = sorted({*demand.requested, *(listed_cidr.pool for listed_cidr in status.listed)})
    return NodeAddresses(
        name=demand.name,
        uid=demand.uid,
        pools=tuple(_pool_demand(status, name) for name in names),
        orphans=tuple((orphan.pool, orphan.cidr) for orphan in status.orphans),
        overlaps=tuple(
            (overlap.pool, overlap.cidr, " ".join(overlap.holder)) for overlap in status.overlaps
        ),
        waiting=tuple(row.cidr for row in status.unpublished),
        error=redaction.redact(demand.operator_error),
        problem="",
    )


def _pool_demand(status: NodeStatus, name: str) -> PoolDemand:
    pool = status.pools.get_live(name)
    counted = list(status.counted_cidrs(pool)) if pool else []
    needed = status.demand.requested.get(name, {})
    return PoolDemand(
        pool=name,
        needed={family: needed.get(family, 0) for family in FAMILIES},
        usable={
            family: sum(
                pool.usable(cidr, status.demand) for cidr in counted if cidr.version == family
            )
            if pool
            else 0
            for family in FAMILIES
        },
        missing=status.missing(name),
        cidrs=tuple(listed_cidr.cidr for listed_cidr in status.listed if listed_cidr.pool == name),
    )
