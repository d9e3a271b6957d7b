"""The blocks of nodes in the register, recorded as the cluster has them.

Everything here stands in a transaction of the caller (the pass that holds the cluster's lease) and
takes the locks of the pools before it decides, in the order of their ids. A block that a node is
handed has no uid before the node is seen to list it (pools/cilium/node_status.py): so what the
cluster was not told yet is known from what the node gave back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_network

from django.db import connection

from pools.cilium import node_status
from pools.cilium.node_status import HOLDER, BlockRow, NodeStatus, PodPoolCIDR, PodPools
from pools.core import addresses, blocks
from pools.core.cilium import ciliumnode
from pools.models import ObservedObject
from pools.platform import database
from pools.register.allocator import window
from pools.sql import statements


def record(
    cluster_id: int, demands: Sequence[ciliumnode.NodeDemand], *, release: bool
) -> list[NodeStatus]:
    """Bring the register to what the nodes list; how they stand then.

    1. With `release`, blocks that a node's own object lists no more are released (into cooldown), and
    those that a node was not told of while another lists them, as after a restore of the register.
    2. What it lists and nobody holds is held by it, also in a reserved range, in a CIDR that the
    pool has lost, or in the midst of another's cooldown: in use is in use. 3. Its blocks are those
    of the object that lists them now. What somebody else holds stays his.

    The transaction holds no rows of blocks when it is called, or it could wait for itself.
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
        for pool_id in sorted(touched):
            window.lock(pool_id)
        locked |= touched
        now = PodPools(cluster_id)
        if now.version == pools.version:
            break
        pools, statuses = now, node_status.node_statuses(now, demands)
    freed = _released_block_ids(statuses) if release else set()
    if freed:
        window.release(sorted(freed), kind=HOLDER)
        # What one node gave back another may list.
        statuses = node_status.node_statuses(pools, demands)
    fresh, existing_rows = _free_blocks(statuses)
    new_rows = insert_blocks(fresh)
    assign(
        [(row.id, status.name, status.demand.uid) for row, status in existing_rows],
        against_cooldown=any(row.cools for row, _ in existing_rows),
    )
    if _update_uids(statuses) or existing_rows or len(new_rows) < len(fresh):
        return node_status.node_statuses(pools, demands)
    return node_status.add_rows(statuses, new_rows)


def _released_block_ids(statuses: Sequence[NodeStatus]) -> set[int]:
    waiting = {row.id for status in statuses for row in status.unpublished}
    elsewhere = {
        listed_cidr.row.id
        for status in statuses
        for listed_cidr in status.overlaps
        if listed_cidr.row
    }
    return {row.id for status in statuses for row in status.unlisted} | waiting & elsewhere


def _free_blocks(
    statuses: Iterable[NodeStatus],
) -> tuple[list[FreshBlock], list[tuple[BlockRow, NodeStatus]]]:
    """What nodes list and nobody holds: blocks without a row, and rows, each with who gets it."""
    fresh: list[FreshBlock] = []
    existing_rows: list[tuple[BlockRow, NodeStatus]] = []
    seen_keys: set[tuple[int, str]] = set()
    for status in statuses:
        for listed_cidr in status.free:
            key = (listed_cidr.pool_cidr.pool.id if listed_cidr.pool_cidr else 0, listed_cidr.text)
            if key in seen_keys:  # the first node that lists it has it
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
    """The blocks are those of the object that lists them now, by its uid."""
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
    """Nodes that are gone for good lose their blocks.

    When a later object of a node's name is there, only what the older one listed is released.
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
    window.release([block for (block,) in gone_blocks], kind=HOLDER)


_BLOCKS_OF_GONE_NODES = statements.read("pools/blocks_of_gone_nodes")


def assign(assignments: Sequence[tuple[int, str, str]], *, against_cooldown: bool = False) -> None:
    """Give blocks that have a row to nodes: (id, node, uid); what is held meanwhile stays so."""
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


_ASSIGN = statements.read("pools/give_blocks_to_nodes")


@dataclass(slots=True)
class FreshBlock:
    """A block that has no row yet, and who gets it; `text` is its CIDR."""

    pool_cidr: PodPoolCIDR
    index: int
    text: str
    node: str
    uid: str


def insert_blocks(fresh: Sequence[FreshBlock]) -> list[BlockRow]:
    """Held rows for blocks without one, in one statement; the callers hold the pools' locks.

    Answers the rows that were made: what has one by now is left out.
    """
    if not fresh:
        return []
    indexes: dict[int, list[int]] = {}
    for fresh_block in fresh:
        indexes.setdefault(fresh_block.pool_cidr.id, []).append(fresh_block.index)
    for cidr_id, taken_indexes in indexes.items():
        window.cut(cidr_id, taken_indexes)
    columns = {
        "kind": HOLDER,
        "pools": database.joined(fresh_block.pool_cidr.pool.id for fresh_block in fresh),
        "cidrs": database.joined(fresh_block.text for fresh_block in fresh),
        "withheld": database.joined(_is_withheld(fresh_block) for fresh_block in fresh),
        "nodes": database.joined(fresh_block.node for fresh_block in fresh),
        "uids": database.joined(fresh_block.uid for fresh_block in fresh),
    }
    blocks_by_key = {
        (fresh_block.pool_cidr.pool.id, fresh_block.text): fresh_block for fresh_block in fresh
    }
    new_rows = []
    for pk, pool_id, cidr in database.rows(_INSERT, columns, prepare=False):
        fresh_block = blocks_by_key[pool_id, node_status.canonical_cidr(cidr)]
        new_rows.append(
            BlockRow(
                pk,
                pool_id,
                fresh_block.text,
                True,
                (HOLDER, fresh_block.node),
                fresh_block.uid,
                False,
            )
        )
    return new_rows


def _is_withheld(fresh_block: FreshBlock) -> bool:
    return fresh_block.pool_cidr.gone or fresh_block.pool_cidr.withheld.contains_span(
        blocks.Span(fresh_block.index, fresh_block.index)
    )


_INSERT = statements.read("pools/insert_node_blocks")


def unpublished_cidrs(
    cluster_id: int, nodes: Sequence[str]
) -> dict[str, list[tuple[str, addresses.Network]]]:
    """What each node was handed and has not been seen to list: (pool, CIDR) by the node's name."""
    cidrs_by_node: dict[str, list[tuple[str, addresses.Network]]] = {name: [] for name in nodes}
    for node, pool, cidr in database.rows(
        _UNPUBLISHED, {"cluster": cluster_id, "nodes": list(nodes)}
    ):
        cidrs_by_node[node].append((pool, ip_network(cidr)))
    return cidrs_by_node


_UNPUBLISHED = statements.read("pools/unpublished_node_blocks")
