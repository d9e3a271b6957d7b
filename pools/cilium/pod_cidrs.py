"""PodCIDRs for pages and REST: requests and CIDRs of nodes, the holders of blocks of a CIDR, and the forecast for a node."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pools.cilium import configuration as cilium_configuration, node_status
from pools.cilium.node_status import FAMILIES, NodeStatus
from pools.cilium.pod_pools import PodPools
from pools.clusters.reconcile import storage
from pools.core import addresses, errors, redaction
from pools.core.cilium import ciliumnode, configuration, multipool, podippool
from pools.models import Block, BlockState, Cluster, ObservedObject


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
    if row.problem_code == storage.UNSTORABLE:
        return None, row.problem
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


Numbers = Mapping[str, Mapping[int, int]]  # by pool and family
NEW_NODE = "new-node"


@dataclass(frozen=True)
class PoolNeed:
    """The addresses that a node needs of one pool and family, and the blocks that it gets for them."""

    pool: str
    family: int
    in_use: int = 0
    pending: int = 0
    pre_allocated: int = 0
    needed: int = 0
    held: int = 0  # of these, addresses in blocks that the node has
    blocks: tuple[addresses.Network, ...] = ()
    problem: str = ""

    @property
    def missing(self) -> int:
        return max(0, self.needed - self.held)


@dataclass(frozen=True)
class NodeForecast:
    """The forecast of one node; `assumed` says why the pre-allocation map is a default, or is ""."""

    node: str
    exists: bool  # True if the cluster has this node
    pre_allocation: Mapping[str, int]
    assumed: str
    needs: tuple[PoolNeed, ...]
    errors: tuple[str, ...]  # messages of Cilium's operator


def forecast(
    cluster: Cluster,
    *,
    in_use: Numbers,
    pending: Numbers,
    pre_allocation: Mapping[str, int] | None = None,
    node: str = "",
) -> NodeForecast:
    """Return the blocks that Cilium's operator gives a node after it served all other nodes.

    A node of the cluster keeps its blocks. Without `pre_allocation`, the map of cilium-config applies,
    else Cilium's default. Raises InvalidInput if the map of cilium-config is invalid.
    """
    config = cilium_configuration.read_config(cluster, fresh=False)
    cilium_state = configuration.CiliumState(config.values, cilium_configuration.pod_pools(cluster))
    buffers, assumed = pre_allocation, ""
    if buffers is None:
        text, assumed = cilium_state.text(multipool.PRE_ALLOCATION), config.why_not
        buffers = multipool.parse_pre_allocation(text, field=multipool.PRE_ALLOCATION)
    requested = multipool.requested_addresses(
        buffers, in_use=in_use, pending=pending, families=cilium_state.families()
    )
    nodes = cilium_configuration.nodes(cluster)
    existing_node = next((demand for demand in nodes if demand.name == node), None)
    target_node = replace(
        existing_node or ciliumnode.NodeDemand(node or NEW_NODE), requested=requested
    )
    other_nodes = [demand for demand in nodes if demand.name != target_node.name]
    plans = multipool.plan(
        cilium_state.pools, [*other_nodes, target_node], families=cilium_state.families()
    )
    node_plan = plans[target_node.name]
    pools = {pool.name: pool for pool in cilium_state.pools}
    needs = (
        replace(
            _pool_need(name, family, pools.get(name), target_node, node_plan),
            in_use=in_use.get(name, {}).get(family, 0),
            pending=pending.get(name, {}).get(family, 0),
            pre_allocated=buffers.get(name, 0),
            needed=needed,
        )
        for name, families in requested.items()
        for family, needed in families.items()
        if needed
    )
    return NodeForecast(
        target_node.name,
        existing_node is not None,
        buffers,
        assumed,
        tuple(needs),
        node_plan.errors,
    )


def _pool_need(
    name: str,
    family: int,
    pool: podippool.PodIPPool | None,
    node: ciliumnode.NodeDemand,
    node_plan: multipool.NodePlan,
) -> PoolNeed:
    """Return the addresses that the node has of a pool, and the blocks that it gets."""
    held, problem = 0, "there is no such pool"
    if pool is not None:
        held = cilium_configuration.usable_addresses(
            node.held_cidrs().get(name, []),
            node.allowed_edges(name) or (pool.allow_first_ip, pool.allow_last_ip),
        )[family]
        problem = "" if family in pool.families else f"the pool has no IPv{family} CIDRs"
    blocks = tuple(
        cidr for pool_name, cidr in node_plan.blocks if (pool_name, cidr.version) == (name, family)
    )
    return PoolNeed(name, family, held=held, blocks=blocks, problem=problem)
