"""Forecast of the addresses that a node requests, and of the blocks that it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pools.cilium import configuration as cilium_configuration
from pools.core import addresses
from pools.core.cilium import ciliumnode, configuration, multipool, pod_cidr_plan, podippool
from pools.models import Cluster

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
    plans = pod_cidr_plan.plan(
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
    node_plan: pod_cidr_plan.NodePlan,
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
