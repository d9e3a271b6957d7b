"""Blocks of nodes in the register, recorded from the CiliumNodes of the cluster.

All functions run in a transaction of the caller, which holds the lease of the cluster, and lock the
pools in the order of their ids before they decide. A block of a node has no uid until the node was
observed to list it (pools/cilium/node_status.py). This distinguishes blocks that were not written to
the cluster yet from blocks that the node released.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_network

from django.db import connection

from pools.cilium import node_status
from pools.cilium.node_status import HOLDER, BlockRow, NodeStatus
from pools.cilium.pod_pools import PodPoolCIDR, PodPools
from pools.clusters.reconcile import sync_runs
from pools.core import addresses, blocks
from pools.core.cilium import ciliumnode
from pools.core.kubernetes.resources import NODE
from pools.models import ObservedObject
from pools.platform import database
from pools.register.allocator import window
from pools.sql import statements


def record(
    cluster_id: int, demands: Sequence[ciliumnode.NodeDemand], *, release: bool
) -> list[NodeStatus]:
    """Update the blocks of nodes from the CIDRs that the nodes list; return their new status.

    1. With `release`, blocks that the node's object listed before and no longer lists are released into
    cooldown, and so are unpublished blocks that another node lists, as after a restore of the register.
    2. A listed block without a holder becomes the node's, even in a reserved range, in an orphaned CIDR
    or in a cooldown: the cluster uses it, unless it was reclaimed from this node and the node has no Node. 3. Blocks get the uid of the object that lists them. Blocks of
    other holders are not changed.

    The transaction must not hold locks on rows of blocks yet, to avoid deadlocks.
    """
    pools = PodPools(cluster_id)
    statuses = node_status.node_statuses(pools, demands)
    locked: set[int] = set()
    while (
        touched := {
            listed_cidr.pool_cidr.pool.id
            for status in statuses
            for listed_cidr in status.free
            if listed_cidr.pool_cidr
        }
        - locked
    ):
        window.lock(*touched)
        locked |= touched
        now = PodPools(cluster_id)
        if now.version == pools.version:
            break
        pools, statuses = now, node_status.node_statuses(now, demands)
    freed = _released_block_ids(statuses) if release else set()
    if freed:
        window.release_blocks(sorted(freed), kind=HOLDER)
        # Another node may list a block that was just released.
        statuses = node_status.node_statuses(pools, demands)
    fresh, existing_rows = _free_blocks(statuses, _reclaimed_block_ids(cluster_id, statuses))
    insert_blocks(fresh)
    assign(
        [(row.id, status.name, status.demand.uid) for row, status in existing_rows],
        against_cooldown=any(row.cools for row, _ in existing_rows),
    )
    if _update_uids(statuses) or existing_rows or fresh:
        return node_status.node_statuses(pools, demands)
    return statuses


def _released_block_ids(statuses: Sequence[NodeStatus]) -> set[int]:
    waiting = {row.id for status in statuses for row in status.unpublished}
    elsewhere = {
        listed_cidr.row.id
        for status in statuses
        for listed_cidr in status.overlaps
        if listed_cidr.row
    }
    return {row.id for status in statuses for row in status.unlisted} | waiting & elsewhere


def _reclaimed_block_ids(cluster_id: int, statuses: Iterable[NodeStatus]) -> set[int]:
    """Return the listed blocks without a holder whose last one was this CiliumNode, if its Node is gone."""
    candidates = [
        (status.name, listed_cidr.row.id)
        for status in statuses
        for listed_cidr in status.free
        if listed_cidr.row
        and listed_cidr.row.holder == (HOLDER, status.name)
        and listed_cidr.row.uid == status.demand.uid
    ]
    if not candidates or NODE.kind not in sync_runs.complete_kinds(cluster_id):
        return set()
    rows = ObservedObject.objects.filter(cluster=cluster_id, kind=NODE.kind, missed_at=None)
    nodes = set(rows.values_list("name", flat=True))
    return {pk for name, pk in candidates if nodes and name not in nodes}


def _free_blocks(
    statuses: Iterable[NodeStatus], reclaimed: Collection[int]
) -> tuple[list[FreshBlock], list[tuple[BlockRow, NodeStatus]]]:
    """Return the listed blocks without a holder: new blocks, and existing rows with their new node."""
    fresh: list[FreshBlock] = []
    existing_rows: list[tuple[BlockRow, NodeStatus]] = []
    seen_keys: set[tuple[int, str]] = set()
    for status in statuses:
        for listed_cidr in status.free:
            key = (listed_cidr.pool_cidr.pool.id if listed_cidr.pool_cidr else 0, listed_cidr.text)
            if listed_cidr.row is not None and listed_cidr.row.id in reclaimed:
                continue
            if key in seen_keys:  # the first node that lists a block gets it
                continue
            seen_keys.add(key)
            if listed_cidr.row is not None:
                existing_rows.append((listed_cidr.row, status))
            elif listed_cidr.pool_cidr is not None and listed_cidr.index is not None:
                name, uid = status.name, status.demand.uid
                fresh.append(
                    FreshBlock(
                        listed_cidr.pool_cidr, listed_cidr.index, listed_cidr.text, name, uid
                    )
                )
    return fresh, existing_rows


def _update_uids(statuses: Iterable[NodeStatus]) -> int:
    """Set the uid of blocks to that of the object that lists them; return the number of blocks."""
    confirmed = [
        (listed_cidr.row.id, status.demand.uid)
        for status in statuses
        for listed_cidr in status.listed
        if listed_cidr.row
        and listed_cidr.row.held_by(status.name)
        and listed_cidr.row.uid != status.demand.uid
    ]
    if confirmed:
        ids, uids = zip(*confirmed, strict=True)
        with connection.cursor() as cursor:
            cursor.execute(_UPDATE_UIDS, [list(ids), list(uids), HOLDER])
    return len(confirmed)


_UPDATE_UIDS = """
    UPDATE pools_block b SET holder_uid = w.uid
    FROM unnest(%s::bigint[], %s::text[]) AS w(id, uid)
    WHERE b.id = w.id AND b.state = 'held' AND b.holder_kind = %s
"""


def forget(cluster_id: int, rows: Sequence[ObservedObject]) -> None:
    """Release the blocks of deleted nodes.

    If a later object of the same name exists, only the blocks of the deleted object are released.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _BLOCKS_OF_GONE_NODES,
            {
                "cluster": cluster_id,
                "kind": ciliumnode.KIND,
                "ids": [row.pk for row in rows],
                "names": [row.name for row in rows],
                "uids": [row.uid for row in rows],
            },
        )
        gone_blocks = cursor.fetchall()
    window.release_blocks([block for (block,) in gone_blocks], kind=HOLDER)


_BLOCKS_OF_GONE_NODES = statements.read("pools/blocks_of_deleted_nodes")


def assign(assignments: Sequence[tuple[int, str, str]], *, against_cooldown: bool = False) -> None:
    """Assign existing blocks to nodes, as (id, node, uid); blocks that are held by now are skipped."""
    if not assignments:
        return
    ids, names, uids = zip(*assignments, strict=True)
    with connection.cursor() as cursor:
        if against_cooldown:
            cursor.execute("SELECT set_config('ipam.skip_cooldown', 'on', true)")
        cursor.execute(
            _ASSIGN, {"kind": HOLDER, "ids": list(ids), "names": list(names), "uids": list(uids)}
        )
        if against_cooldown:
            cursor.execute("SELECT set_config('ipam.skip_cooldown', 'off', true)")


_ASSIGN = statements.read("pools/assign_blocks_to_nodes")


@dataclass(slots=True)
class FreshBlock:
    """A block without a row, and its future node; `text` is its CIDR."""

    pool_cidr: PodPoolCIDR
    index: int
    text: str
    node: str
    uid: str


def insert_blocks(fresh: Sequence[FreshBlock]) -> None:
    """Insert held rows for blocks without a row, in one statement.

    The caller holds the locks of the pools. Blocks that have a row by now are skipped.
    """
    if not fresh:
        return
    indexes: dict[int, list[int]] = {}
    for fresh_block in fresh:
        indexes.setdefault(fresh_block.pool_cidr.id, []).append(fresh_block.index)
    for cidr_id, taken_indexes in indexes.items():
        window.remove_free_blocks(cidr_id, taken_indexes)
    columns = {
        "kind": HOLDER,
        "pools": database.join_values(fresh_block.pool_cidr.pool.id for fresh_block in fresh),
        "cidrs": database.join_values(fresh_block.text for fresh_block in fresh),
        "withheld": database.join_values(_is_withheld(fresh_block) for fresh_block in fresh),
        "nodes": database.join_values(fresh_block.node for fresh_block in fresh),
        "uids": database.join_values(fresh_block.uid for fresh_block in fresh),
    }
    database.rows(_INSERT, columns, prepare=False)


def _is_withheld(fresh_block: FreshBlock) -> bool:
    return fresh_block.pool_cidr.gone or fresh_block.pool_cidr.withheld.contains_span(
        blocks.Span(fresh_block.index, fresh_block.index)
    )


_INSERT = statements.read("pools/insert_node_blocks")


def unpublished_cidrs(
    cluster_id: int, nodes: Sequence[str]
) -> dict[str, list[tuple[str, addresses.Network]]]:
    """Return the blocks that each node holds and was not observed to list, as (pool, CIDR)."""
    cidrs_by_node: dict[str, list[tuple[str, addresses.Network]]] = {name: [] for name in nodes}
    for node, pool, cidr in database.rows(
        _UNPUBLISHED, {"cluster": cluster_id, "nodes": list(nodes)}
    ):
        cidrs_by_node[node].append((pool, ip_network(cidr)))
    return cidrs_by_node


_UNPUBLISHED = statements.read("pools/unpublished_node_blocks")
