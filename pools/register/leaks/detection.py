"""Blocks that nobody refers to any more (rule `leak-needs-two-observations`).

A held block leaked when two complete observations, at least IPAM_LEAK_GRACE_SECONDS apart by the
database's clock, did not see its holder. Observations are the complete reports of tooling
(pools/register/leaks/references.py) and the full passes over clusters. Whoever is seen by one source is
referenced, whatever another one missed. By rule `unknown-is-not-absent` no list that failed, was partial
or is not served makes or confirms a leak.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Func, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import Exact
from psycopg import sql

from pools.models import Block, Leak
from pools.models.blocks import BlockState
from pools.platform import database
from pools.sql import statements

if TYPE_CHECKING:
    from pools.clusters.reconcile.handler import SyncContext


@dataclass(frozen=True)
class LeakSource:
    """What full passes over a cluster say of the holders of some blocks.

    `kinds` are those of which a pass must have listed everything, `holders` the kinds of holders that
    it knows. `covers` is an SQL condition over the block `b` and its pool `p`: whose absence it sees.
    Each of `referenced` is a subquery that answers a row when the block's holder is there, of any
    block that such a holder has; both may name `%(cluster)s`.
    `give_back` is told of blocks that were just reclaimed, in that transaction, when more has to be
    done for them than to let them cool down; it leaves those alone that are not its own.
    """

    name: str
    kinds: frozenset[str]
    holders: frozenset[str]
    covers: sql.Composable
    referenced: tuple[sql.Composable, ...]
    give_back: Callable[[Collection[Block]], None] | None = None


TOOLING = "tooling"
SOURCES: list[LeakSource] = []  # filled by pools.extension


@dataclass(frozen=True)
class LeakObservation:
    """How many blocks an observation missed, and how many of them leaked."""

    missed: int
    leaked: int


def observe_full_sync(context: SyncContext, whole: Collection[str], began: datetime) -> None:
    """A full pass: judged by each source of whose kinds all were listed."""
    for source in SOURCES:
        if source.kinds <= set(whole):
            with context.holding():
                record_observation(
                    source.name,
                    source.covers,
                    cluster_id=context.cluster.pk,
                    holders=source.holders,
                    began=began,
                )


def record_observation(
    source: str,
    covers: sql.Composable,
    *,
    cluster_id: int,
    holders: Collection[str],
    began: datetime,
) -> LeakObservation:
    """Note what a complete observation missed; whom it saw is no longer suspected.

    `began` is when the owners began to be read: a block that was allocated later is not missed.
    Two statements, however many blocks there are; they stand in a transaction of the caller.
    """
    values = {
        "cluster": cluster_id,
        "holders": sorted(holders),
        "source": source,
        "began": began,
        "grace": settings.IPAM_LEAK_GRACE_SECONDS,
        # Of this very moment: a transaction may observe twice.
        "observed": database.call("SELECT ipam_clock()", []),
        **_ids_of_cluster(cluster_id),
    }
    unreferenced = sql.SQL("").join(
        sql.SQL(" AND NOT EXISTS ({})").format(reference) for reference in _references(holders)
    )
    note = _RECORD_MISSED.format(covers=covers, unreferenced=unreferenced, same=_SAME_HOLDING)
    with database.hash_joins_only():
        ((missed, leaked),) = database.rows(note, values, prepare=False)
        database.rows(_DELETE_SEEN.format(covers=covers), values, prepare=False)
    return LeakObservation(missed, leaked)


def _ids_of_cluster(cluster_id: int) -> dict[str, list[int]]:
    """Pools and feeds by their ids: the planner sees what they lead to."""
    pools = database.rows("SELECT id FROM pools_pool WHERE cluster_id = %s", [cluster_id])
    feeds = database.rows("SELECT id FROM pools_referencefeed WHERE cluster_id = %s", [cluster_id])
    return {"pools": [pk for (pk,) in pools], "feeds": [pk for (pk,) in feeds]}


def _references(holders: Collection[str]) -> Iterator[sql.Composable]:
    """What says of holders of these kinds that they are there.

    Without a uid, or without an organisation, any of that name is meant.
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
# What the observation covered and did not note. Blocks by their ids, or all would be read.
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
    """Whoever is referenced again is not suspected: after a report that only added holders."""
    if not Leak.objects.filter(cluster_id=cluster_id, holder_kind=kind).exists():
        return
    values = {"cluster": cluster_id, "kind": kind, **_ids_of_cluster(cluster_id)}
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
    """Those of these blocks of the cluster whose holders are seen at this moment; in a transaction."""
    every = {kind for source in SOURCES for kind in source.holders}
    values = {"cluster": cluster_id, "ids": list(block_ids), **_ids_of_cluster(cluster_id)}
    with database.hash_joins_only(many=len(block_ids) > _FEW):
        rows = database.rows(
            sql.SQL(" UNION ").join(
                _FIND_REFERENCED.format(referenced=reference) for reference in _references(every)
            ),
            values,
            prepare=False,
        )
    return {pk for (pk,) in rows}


_FEW = 20
_FIND_REFERENCED = sql.SQL("""
    SELECT b.id FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
    WHERE b.id = ANY(%(ids)s::bigint[]) AND EXISTS ({referenced})
""")


def current_leaks() -> QuerySet[Leak]:
    """Leaks and suspicions whose block is still the one that was missed.

    Each block is asked for by its id, whatever the planner knows; a join might read them all for each.
    """
    held = Cast(Value(BlockState.HELD), TextField())
    block = Block.objects.filter(pk=OuterRef("block_id"))
    now = block.values(one=_as_array("state", *_IDENTITY))
    return Leak.objects.filter(Exact(Subquery(now), _as_array(held, *_IDENTITY)))


_IDENTITY = ("holder_kind", "holder_id", "holder_uid", "allocated_at")


def _as_array(*parts: str | Cast) -> Func:
    return Func(*parts, function="jsonb_build_array", output_field=TextField())


def confirmed_leaks() -> QuerySet[Leak]:
    """The blocks that leaked."""
    return current_leaks().filter(confirmed_at__isnull=False)


def suspected_leaks() -> QuerySet[Leak]:
    """The blocks that one observation, or several within the grace, missed."""
    return current_leaks().filter(confirmed_at=None)


def delete_outdated() -> int:
    """Forget leaks whose block is another's by now, or free; how many. Nothing depends on it."""
    return len(database.rows(_DELETE_OUTDATED, []))


_DELETE_OUTDATED = statements.read("pools/delete_outdated_leaks")


# --- nodes ----------------------------------------------------------------------------------------

# PodCIDRs of nodes, and the addresses of node pools where nodes are called as Kubernetes calls them:
# where no holder of the pool has the name of a CiliumNode, tooling has names of its own. Its uids are
# its own in any case: a CiliumNode has another one than its Node.
NODES = LeakSource(
    "nodes",
    frozenset({"CiliumNode"}),
    frozenset({"node"}),
    sql.SQL("""
    (p.category = 'pod' OR p.category = 'node' AND p.id IN (
        SELECT x.pool_id FROM pools_block x JOIN pools_observedobject o ON o.name = x.holder_id
        WHERE x.category = 'node' AND x.state = 'held' AND x.holder_kind = 'node'
          AND o.cluster_id = %(cluster)s AND o.kind = 'CiliumNode'))
    """),
    (
        sql.SQL("""
        SELECT FROM pools_observedobject o
        WHERE o.cluster_id = %(cluster)s AND o.kind = 'CiliumNode' AND o.namespace = ''
          AND o.name = b.holder_id AND b.holder_kind = 'node' AND (p.category = 'node' OR b.holder_uid IN ('', o.uid))
          AND o.missed_at IS NULL
        """),
    ),
)
