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
from pools.cilium.node_status import HOLDER, Place, PodPools, Row, Standing
from pools.core import addresses, blocks
from pools.core.cilium import ciliumnode
from pools.models import ObservedObject
from pools.platform import database
from pools.register.allocator import window


def record(
    cluster_id: int, demands: Sequence[ciliumnode.NodeDemand], *, release: bool
) -> list[Standing]:
    """Bring the register to what the nodes list; how they stand then.

    1. With `release`, blocks that a node's own object lists no more are released (into cooldown), and
    those that a node was not told of while another lists them, as after a restore of the register.
    2. What it lists and nobody holds is held by it, also in a reserved range, in a CIDR that the
    pool has lost, or in the midst of another's cooldown: in use is in use. 3. Its blocks are those
    of the object that lists them now. What somebody else holds stays his.

    The transaction holds no rows of blocks when it is called, or it could wait for itself.
    """
    pools = PodPools(cluster_id)
    standings = node_status.survey(pools, demands)
    locked: set[int] = set()
    while (
        touched := {one.place.pool.id for each in standings for one in each.free if one.place}
        - locked
    ):
        for pool_id in sorted(touched):
            window.lock(pool_id)
        locked |= touched
        now = PodPools(cluster_id)
        if now.version == pools.version:
            break
        pools, standings = now, node_status.survey(now, demands)
    freed = _given_up(standings) if release else set()
    if freed:
        window.release(sorted(freed), kind=HOLDER)
        # What one node gave back another may list.
        standings = node_status.survey(pools, demands)
    fresh, known = _free(standings)
    got = insert(fresh)
    take(
        [(row.id, one.name, one.demand.uid) for row, one in known],
        against_cooldown=any(row.cools for row, _ in known),
    )
    if _confirm(standings) or known or len(got) < len(fresh):
        return node_status.survey(pools, demands)
    return node_status.with_rows(standings, got)


def _given_up(standings: Sequence[Standing]) -> set[int]:
    waiting = {row.id for one in standings for row in one.unpublished}
    elsewhere = {each.row.id for one in standings for each in one.overlaps if each.row}
    return {row.id for one in standings for row in one.unlisted} | waiting & elsewhere


def _free(standings: Iterable[Standing]) -> tuple[list[Fresh], list[tuple[Row, Standing]]]:
    """What nodes list and nobody holds: blocks without a row, and rows, each with who gets it."""
    fresh: list[Fresh] = []
    known: list[tuple[Row, Standing]] = []
    seen: set[tuple[int, str]] = set()
    for standing in standings:
        for one in standing.free:
            key = (one.place.pool.id if one.place else 0, one.text)
            if key in seen:  # the first node that lists it has it
                continue
            seen.add(key)
            if one.row is not None:
                known.append((one.row, standing))
            elif one.place is not None and one.index is not None:
                name, uid = standing.name, standing.demand.uid
                fresh.append(Fresh(one.place, one.index, one.text, name, uid))
    return fresh, known


def _confirm(standings: Iterable[Standing]) -> int:
    """The blocks are those of the object that lists them now, by its uid."""
    found = [
        (one.row.id, standing.demand.uid)
        for standing in standings
        for one in standing.listed
        if one.row and one.row.held_by(standing.name) and one.row.uid != standing.demand.uid
    ]
    if found:
        ids, uids = zip(*found, strict=True)
        with connection.cursor() as cursor:
            cursor.execute(_CONFIRM, [list(ids), list(uids), HOLDER])
    return len(found)


_CONFIRM = """
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
            _OF_GONE,
            [
                cluster_id,
                ciliumnode.KIND,
                [row.pk for row in rows],
                [row.name for row in rows],
                [row.uid for row in rows],
                cluster_id,
            ],
        )
        found = cursor.fetchall()
    window.release([block for (block,) in found], kind=HOLDER)


_OF_GONE = """
    WITH later AS (
        SELECT name FROM pools_observedobject
        WHERE cluster_id = %s AND kind = %s AND NOT id = ANY(%s::bigint[]))
    SELECT DISTINCT b.id FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
    JOIN unnest(%s::text[], %s::text[]) AS gone(name, uid) ON gone.name = b.holder_id
    WHERE p.cluster_id = %s AND p.category = 'pod' AND b.state = 'held' AND b.holder_kind = 'node'
      AND (b.holder_uid = gone.uid OR gone.name NOT IN (SELECT name FROM later))
"""


def take(taken: Sequence[tuple[int, str, str]], *, against_cooldown: bool = False) -> None:
    """Give blocks that have a row to nodes: (id, node, uid); what is held meanwhile stays so."""
    if not taken:
        return
    ids, names, uids = zip(*taken, strict=True)
    with connection.cursor() as cursor:
        if against_cooldown:
            cursor.execute("SELECT set_config('ipam.skip_cooldown', 'on', true)")
        cursor.execute(_TAKE, [HOLDER, list(ids), list(names), list(uids)])
        if against_cooldown:
            cursor.execute("SELECT set_config('ipam.skip_cooldown', 'off', true)")


_TAKE = """
    UPDATE pools_block b
    SET state = 'held', holder_kind = %s, holder_id = w.name, holder_uid = w.uid, org = '', env = '',
        allocated_at = GREATEST(ipam_now(), b.released_at), released_at = NULL,
        available_from = NULL
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS w(id, name, uid)
    WHERE b.id = w.id AND b.state <> 'held'
"""


@dataclass(slots=True)
class Fresh:
    """A block that has no row yet, and who gets it; `text` is its CIDR."""

    place: Place
    index: int
    text: str
    node: str
    uid: str


def insert(fresh: Sequence[Fresh]) -> list[Row]:
    """Held rows for blocks without one, in one statement; the callers hold the pools' locks.

    Answers the rows that were made: what has one by now is left out.
    """
    if not fresh:
        return []
    indexes: dict[int, list[int]] = {}
    for one in fresh:
        indexes.setdefault(one.place.id, []).append(one.index)
    for cidr_id, taken in indexes.items():
        window.cut(cidr_id, taken)
    columns = {
        "kind": HOLDER,
        "pools": database.joined(one.place.pool.id for one in fresh),
        "cidrs": database.joined(one.text for one in fresh),
        "withheld": database.joined(_is_withheld(one) for one in fresh),
        "nodes": database.joined(one.node for one in fresh),
        "uids": database.joined(one.uid for one in fresh),
    }
    asked = {(one.place.pool.id, one.text): one for one in fresh}
    made = []
    for pk, pool_id, cidr in database.rows(_INSERT, columns, prepare=False):
        one = asked[pool_id, node_status.canonical(cidr)]
        made.append(Row(pk, pool_id, one.text, True, (HOLDER, one.node), one.uid, False))
    return made


def _is_withheld(one: Fresh) -> bool:
    return one.place.gone or one.place.withheld.has_all(blocks.Span(one.index, one.index))


_INSERT = """
    INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
        holder_kind, holder_id, holder_uid, org, env, allocated_at)
    SELECT p.id, p.space_id, p.category, family(f.cidr::cidr), f.cidr::cidr, 'held',
        f.withheld::boolean, %(kind)s, f.node, COALESCE(f.uid, ''), '', '', ipam_now()
    FROM unnest(string_to_array(%(pools)s, ','), string_to_array(%(cidrs)s, ','),
                string_to_array(%(withheld)s, ','), string_to_array(%(nodes)s, ','),
                string_to_array(%(uids)s, ','))
         WITH ORDINALITY AS f(pool, cidr, withheld, node, uid, n)
    JOIN pools_pool p ON p.id = f.pool::bigint ORDER BY f.n
    ON CONFLICT DO NOTHING
    RETURNING id, pool_id, cidr::text
"""


def unpublished(
    cluster_id: int, nodes: Sequence[str]
) -> dict[str, list[tuple[str, addresses.Network]]]:
    """What each node was handed and has not been seen to list: (pool, CIDR) by the node's name."""
    found: dict[str, list[tuple[str, addresses.Network]]] = {name: [] for name in nodes}
    for node, pool, cidr in database.rows(_UNPUBLISHED, [cluster_id, list(nodes)]):
        found[node].append((pool, ip_network(cidr)))
    return found


_UNPUBLISHED = """
    SELECT b.holder_id, p.name, b.cidr::text
    FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
    WHERE p.cluster_id = %s AND p.category = 'pod' AND b.state = 'held'
      AND b.holder_kind = 'node' AND b.holder_id = ANY(%s::text[]) AND b.holder_uid = ''
    ORDER BY b.cidr
"""
