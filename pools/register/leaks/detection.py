"""Detect held blocks that no object refers to any more (rule `leak-needs-two-observations`).

A held block is leaked when two complete observations, at least IPAM_LEAK_GRACE_SECONDS apart by the
database's clock, did not contain its holder. Observations are the complete reports of tooling
(pools/register/leaks/references.py) and the full sync runs of clusters. A holder that one source
contains is referenced, even if another source missed it. By rule `unknown-is-not-absent`, a list that
failed, was partial or is not served neither creates nor confirms a leak.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Func, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import Exact
from psycopg import sql

from pools.clusters.reconcile import sync_runs
from pools.models import Block, BlockState, Leak
from pools.platform import database
from pools.sql import statements

if TYPE_CHECKING:
    from pools.clusters.reconcile.handler import SyncContext


@dataclass(frozen=True)
class LeakSource:
    """How full sync runs of a cluster observe the holders of some blocks.

    `kinds` are the object kinds that the sync run must have listed completely, `holders` the kinds of
    holders that the source knows. `covers` is an SQL condition over the block `b` and its pool `p`: it
    selects the blocks whose missing holder the source detects. Each of `referenced` is a subquery that
    returns a row if the holder of block `b` exists. Both may use `%(cluster)s`, and `%(complete)s`: the kinds of
    which the last full sync run knew all objects.
    `on_reclaimed` is called with blocks that were just reclaimed, in the same transaction, for what has
    to be done besides the cooldown; it ignores blocks of other sources.
    """

    name: str
    kinds: frozenset[str]
    holders: frozenset[str]
    covers: sql.Composable
    referenced: tuple[sql.Composable, ...]
    on_reclaimed: Callable[[Collection[Block]], None] | None = None


TOOLING = "tooling"
SOURCES: list[LeakSource] = []  # filled by pools.extension


@dataclass(frozen=True)
class LeakObservation:
    """How many blocks an observation missed, and how many of them are confirmed leaks."""

    missed: int
    leaked: int


def observe_full_sync(
    context: SyncContext, complete_kinds: Collection[str], began: datetime
) -> None:
    """Record a full sync run as an observation of each source whose kinds were all listed."""
    for source in SOURCES:
        if source.kinds <= set(complete_kinds):
            with context.transaction():
                record_observation(
                    source.name,
                    source.covers,
                    cluster_id=context.cluster.pk,
                    holders=source.holders,
                    began=began,
                    complete=complete_kinds,
                )


def record_observation(
    source: str,
    covers: sql.Composable,
    *,
    cluster_id: int,
    holders: Collection[str],
    began: datetime,
    complete: Collection[str] | None = None,
) -> LeakObservation:
    """Record the blocks whose holders a complete observation missed; delete the leaks of the others.

    `began` is the time when the source began to read the holders: a block that was allocated later is
    not missed. `complete` are the kinds that were listed completely; None for those of the last full sync run.
    Runs two statements, whatever the number of blocks, in the caller's transaction.
    """
    values = {
        "cluster": cluster_id,
        "holders": sorted(holders),
        "source": source,
        "began": began,
        "grace": settings.IPAM_LEAK_GRACE_SECONDS,
        # The clock, not the start of the transaction: a transaction may record two observations.
        "observed": database.call("SELECT ipam_clock()", []),
        **_values_of_cluster(cluster_id, complete),
    }
    unreferenced = sql.SQL("").join(
        sql.SQL(" AND NOT EXISTS ({})").format(reference) for reference in _references(holders)
    )
    record_missed = _RECORD_MISSED.format(
        covers=covers, unreferenced=unreferenced, same=_SAME_HOLDING
    )
    with database.hash_joins_only():
        ((missed, leaked),) = database.rows(record_missed, values, prepare=False)
        database.rows(_DELETE_SEEN.format(covers=covers), values, prepare=False)
    return LeakObservation(missed, leaked)


def _values_of_cluster(
    cluster_id: int, complete: Collection[str] | None = None
) -> dict[str, list[Any]]:
    """Return the ids of the cluster's pools and feeds, for the planner's estimates, and its complete kinds."""
    pools = database.rows("SELECT id FROM pools_pool WHERE cluster_id = %s", [cluster_id])
    feeds = database.rows("SELECT id FROM pools_referencefeed WHERE cluster_id = %s", [cluster_id])
    kinds = sync_runs.complete_kinds(cluster_id) if complete is None else complete
    return {
        "pools": [pk for (pk,) in pools],
        "feeds": [pk for (pk,) in feeds],
        "complete": sorted(kinds),
    }


def _references(holders: Collection[str]) -> Iterator[sql.Composable]:
    """Return the subqueries that prove that holders of these kinds exist.

    A reference without a uid, or without an organization, matches every holder of that name.
    """
    yield _REPORTED
    for source in SOURCES:
        if not source.holders.isdisjoint(holders):
            yield from source.referenced


_REPORTED = sql.SQL("""
    SELECT FROM pools_referencefeed f JOIN pools_reference r ON r.feed_id = f.id
    WHERE f.cluster_id = %(cluster)s AND r.feed_id = ANY(%(feeds)s::bigint[])
      AND f.holder_kind = b.holder_kind AND r.holder_id = b.holder_id
      AND (r.holder_uid = '' OR b.holder_uid = '' OR r.holder_uid = b.holder_uid)
      AND r.org IN ('', b.org)
""")
_SAME_HOLDING = sql.SQL("""
    (l.holder_kind, l.holder_id, l.holder_uid, l.allocated_at)
    = (EXCLUDED.holder_kind, EXCLUDED.holder_id, EXCLUDED.holder_uid, EXCLUDED.allocated_at)
""")
_RECORD_MISSED = sql.SQL("""
    WITH noted AS (
        INSERT INTO pools_leak AS l (block_id, cluster_id, source, holder_kind, holder_id,
            holder_uid, allocated_at, missed_at, observed_at, observations, confirmed_at)
        SELECT b.id, %(cluster)s, %(source)s, b.holder_kind, b.holder_id, b.holder_uid,
            b.allocated_at, ipam_now(), %(observed)s, 1, NULL
        FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
        WHERE b.pool_id = ANY(%(pools)s::bigint[]) AND b.state = 'held'
          AND b.holder_kind = ANY(%(holders)s::text[]) AND b.allocated_at <= %(began)s
          AND ({covers}) {unreferenced}
        ORDER BY b.id
        ON CONFLICT (block_id) DO UPDATE SET
            source = EXCLUDED.source, cluster_id = EXCLUDED.cluster_id,
            holder_kind = EXCLUDED.holder_kind, holder_id = EXCLUDED.holder_id,
            holder_uid = EXCLUDED.holder_uid, allocated_at = EXCLUDED.allocated_at,
            observed_at = EXCLUDED.observed_at,
            missed_at = CASE WHEN {same} THEN l.missed_at ELSE EXCLUDED.missed_at END,
            observations = CASE WHEN {same} THEN l.observations + 1 ELSE 1 END,
            confirmed_at = CASE WHEN {same} THEN COALESCE(l.confirmed_at,
                CASE WHEN %(began)s >= l.missed_at + make_interval(secs => %(grace)s)
                     THEN ipam_now() END) END
        RETURNING confirmed_at)
    SELECT count(*), count(confirmed_at) FROM noted
""")
# Deletes the leaks that the observation covers and did not record. Blocks are read by their ids; the
# planner would read all of them otherwise.
_DELETE_SEEN = sql.SQL("""
    DELETE FROM pools_leak l USING pools_block b, pools_pool p
    WHERE l.cluster_id = %(cluster)s AND l.observed_at < %(observed)s AND b.id = l.block_id
      AND b.id = ANY(ARRAY(SELECT block_id FROM pools_leak
        WHERE cluster_id = %(cluster)s AND observed_at < %(observed)s))
      AND p.id = b.pool_id AND b.allocated_at <= %(began)s
      AND b.holder_kind = ANY(%(holders)s::text[]) AND ({covers})
    RETURNING NULL
""")


def clear_referenced(cluster_id: int, kind: str) -> None:
    """Delete the leaks of holders that are referenced again, after a report that only added holders."""
    if not Leak.objects.filter(cluster_id=cluster_id, holder_kind=kind).exists():
        return
    values = {"cluster": cluster_id, "kind": kind, **_values_of_cluster(cluster_id)}
    with database.hash_joins_only():
        for reference in _references({kind}):
            database.rows(_DELETE_REFERENCED.format(referenced=reference), values, prepare=False)


_DELETE_REFERENCED = sql.SQL("""
    DELETE FROM pools_leak l USING pools_block b, pools_pool p
    WHERE l.cluster_id = %(cluster)s AND l.holder_kind = %(kind)s
      AND b.id = l.block_id AND p.id = b.pool_id AND b.id = ANY(ARRAY(
        SELECT block_id FROM pools_leak WHERE cluster_id = %(cluster)s AND holder_kind = %(kind)s))
      AND EXISTS ({referenced})
    RETURNING NULL
""")


def find_referenced(cluster_id: int, block_ids: Collection[int]) -> set[int]:
    """Return the given blocks of the cluster whose holders are referenced now; needs a transaction."""
    holder_kinds = {kind for source in SOURCES for kind in source.holders}
    values = {"cluster": cluster_id, "ids": list(block_ids), **_values_of_cluster(cluster_id)}
    with database.hash_joins_only(many=len(block_ids) > _FEW):
        rows = database.rows(
            sql.SQL(" UNION ").join(
                _FIND_REFERENCED.format(referenced=reference)
                for reference in _references(holder_kinds)
            ),
            values,
            prepare=False,
        )
    return {pk for (pk,) in rows}


_FEW = 20  # blocks up to which nested loops are quicker than hash joins
_FIND_REFERENCED = sql.SQL("""
    SELECT b.id FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
    WHERE b.id = ANY(%(ids)s::bigint[]) AND EXISTS ({referenced})
""")


def current_leaks() -> QuerySet[Leak]:
    """Return the leaks and suspected leaks whose block still has the holder that was missed.

    Each block is read by its id, whatever the planner's statistics say; a join might read all blocks.
    """
    held = Cast(Value(BlockState.HELD), TextField())
    block = Block.objects.filter(pk=OuterRef("block_id"))
    identity = block.values(identity=_as_array("state", *_IDENTITY))
    return Leak.objects.filter(Exact(Subquery(identity), _as_array(held, *_IDENTITY)))


_IDENTITY = ("holder_kind", "holder_id", "holder_uid", "allocated_at")


def _as_array(*parts: str | Cast) -> Func:
    return Func(*parts, function="jsonb_build_array", output_field=TextField())


def confirmed_leaks() -> QuerySet[Leak]:
    """Return the confirmed leaks."""
    return current_leaks().filter(confirmed_at__isnull=False)


def suspected_leaks() -> QuerySet[Leak]:
    """Return the suspected leaks: missed by one observation, or by several within the grace."""
    return current_leaks().filter(confirmed_at=None)


def delete_outdated() -> int:
    """Delete leaks whose block has another holder or is free, and return their number.

    This is only cleanup: `current_leaks` leaves them out by itself.
    """
    return len(database.rows(_DELETE_OUTDATED, []))


_DELETE_OUTDATED = statements.read("pools/delete_outdated_leaks")


# --- nodes ----------------------------------------------------------------------------------------

# Covers PodCIDRs of nodes, and the addresses of node pools whose holders are named like the nodes in
# Kubernetes. If no holder of a node pool has the name of a node, tooling uses other names. Uids
# of holders in node pools are never compared: a CiliumNode has another uid than its Node.
_NAMED_LIKE_NODES = sql.SQL("""
    p.category = 'node' AND p.id IN (
        SELECT x.pool_id FROM pools_block x JOIN pools_observedobject o ON o.name = x.holder_id
        WHERE x.category = 'node' AND x.state = 'held' AND x.holder_kind = 'node'
          AND o.cluster_id = %(cluster)s AND o.kind IN ('CiliumNode', 'Node') AND o.namespace = '')
""")
_NODE = (
    "n.cluster_id = %(cluster)s AND n.kind = 'Node' AND n.namespace = '' AND n.missed_at IS NULL"
)
# An empty list of Nodes concludes nothing: a cluster with CiliumNodes has Nodes.
NODES_KNOWN = f"""('Node' = ANY(%(complete)s::text[])
    AND EXISTS (SELECT FROM pools_observedobject n WHERE {_NODE}))"""  # our own texts
_CILIUM_NODE = """
    o.cluster_id = %(cluster)s AND o.kind = 'CiliumNode' AND o.namespace = '' AND o.missed_at IS NULL
    AND o.name = b.holder_id AND b.holder_kind = 'node' AND (p.category = 'node' OR b.holder_uid IN ('', o.uid))
"""
NODES = LeakSource(
    "nodes",
    frozenset({"CiliumNode"}),
    frozenset({"node"}),
    sql.SQL("(p.category = 'pod' OR {named})").format(named=_NAMED_LIKE_NODES),
    (
        # Where Nodes are not known, a CiliumNode is a node; elsewhere only one that has a Node.
        sql.SQL(f"SELECT FROM pools_observedobject o WHERE {_CILIUM_NODE} AND NOT {NODES_KNOWN}"),
        sql.SQL(
            f"SELECT FROM pools_observedobject o JOIN pools_observedobject n ON n.name = o.name"
            f" WHERE {_CILIUM_NODE} AND {_NODE}"
        ),
        sql.SQL(
            f"SELECT FROM pools_observedobject n WHERE {_NODE} AND n.name = b.holder_id"
            " AND b.holder_kind = 'node' AND p.category = 'node'"
        ),
    ),
)
# The addresses of node pools in clusters without Cilium.
NODE_POOLS = LeakSource(
    "Nodes",
    frozenset({"Node"}),
    frozenset({"node"}),
    sql.SQL("({named} AND NOT 'CiliumNode' = ANY(%(complete)s::text[]) AND {known})").format(
        named=_NAMED_LIKE_NODES, known=sql.SQL(NODES_KNOWN)
    ),
    (),
)
