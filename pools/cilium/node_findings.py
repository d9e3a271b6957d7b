"""What is odd about the PodCIDRs of a cluster, and where the register went astray from its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection

from pools.cilium import node_status
from pools.cilium.node_status import ListedCIDR, NodeStatus, PodPools
from pools.clusters.reconcile.comparison import GRACE
from pools.clusters.reconcile.handler import ReconcileFinding
from pools.core.cilium.ciliumnode import KIND, NodeDemand
from pools.models.observed import Severity
from pools.platform import database

FIRST_NODES = 20


def cluster_findings(
    cluster_id: int, demands: Sequence[NodeDemand], *, serving: bool
) -> Iterator[ReconcileFinding]:
    """The findings of a cluster; `demands` are the nodes about which something is open.

    `serving` says that blocks which a node was not told of are about to be written to it.
    """
    pools = PodPools(cluster_id)
    statuses = node_status.survey(pools, demands)
    for status in statuses:
        yield from _of_node(status, serving=serving)
    yield from _unknown_pools(pools, statuses)
    yield from _leaks(cluster_id)
    yield from _cooldowns(cluster_id)


def _of_node(status: NodeStatus, *, serving: bool) -> Iterator[ReconcileFinding]:
    name = status.name
    for overlap in status.overlaps:
        kind, holder = overlap.holder
        yield _finding(
            "pod_cidr_overlap",
            overlap,
            name,
            f"The node {name} lists {overlap.cidr} of the pool {overlap.pool}, which {kind} {holder} holds.",
            severity=Severity.ERROR,
            holder={"kind": kind, "id": holder},
        )
    for orphan in status.orphans:
        if orphan.pool in status.pools.by_name:
            yield _finding("orphaned_pod_cidr", orphan, name, _orphaned(orphan, name))
    for misfit in status.misfits:
        message = (
            f"The node {name} lists {misfit.cidr}, which is no block of the size of {misfit.pool}."
        )
        yield _finding("pod_cidr_size", misfit, name, message)
    for row in () if serving else status.unpublished:
        message = f"The register has {row.cidr} for the node {name}, which does not list it."
        details = {"cidr": str(row.cidr), "node": name}
        yield ReconcileFinding("unlisted_pod_cidr", f"{row.cidr} {name}", message, details=details)


def _orphaned(listed_cidr: ListedCIDR, name: str) -> str:
    message = f"The node {name} lists {listed_cidr.cidr}, which is in no CIDR of the pool {listed_cidr.pool}"
    elsewhere = (
        listed_cidr.pool_cidr is not None and listed_cidr.pool_cidr.pool.name != listed_cidr.pool
    )
    if listed_cidr.pool_cidr is not None and elsewhere:
        return f"{message} but in one of the pool {listed_cidr.pool_cidr.pool.name}."
    return f"{message} in the cluster."


def _finding(
    code: str,
    listed_cidr: ListedCIDR,
    node: str,
    message: str,
    *,
    severity: Severity = Severity.WARNING,
    **details: Any,
) -> ReconcileFinding:
    details |= {"cidr": str(listed_cidr.cidr), "pool": listed_cidr.pool, "node": node}
    return ReconcileFinding(code, f"{listed_cidr.cidr} {node}", message, severity, details)


def _unknown_pools(pools: PodPools, statuses: Sequence[NodeStatus]) -> Iterator[ReconcileFinding]:
    nodes: dict[str, list[str]] = {}
    for status in statuses:
        listed = {listed_cidr.pool for listed_cidr in status.listed}
        requested_pools = {
            name for name, needed in status.demand.requested.items() if any(needed.values())
        }
        for pool in listed | requested_pools:
            if pool not in pools.by_name:
                nodes.setdefault(pool, []).append(status.name)
    for pool, names in nodes.items():
        first = sorted(names)[:FIRST_NODES]
        more = f" and {len(names) - len(first)} more" if len(names) > len(first) else ""
        yield ReconcileFinding(
            "unknown_pool",
            pool,
            f"The pool {pool}, of which nodes list or ask for addresses, is not there:"
            f" {', '.join(first)}{more}.",
            details={"pool": pool, "nodes": first, "count": len(names)},
        )


def _leaks(cluster_id: int) -> Iterator[ReconcileFinding]:
    with database.hash_joins_only():
        leaked = _rows(_LEAKED, [cluster_id, GRACE, cluster_id, KIND])
    for cidr, pool, node, uid in leaked:
        yield ReconcileFinding(
            "leaked_pod_cidr",
            f"{cidr} {node}",
            f"The register has {cidr} of the pool {pool} for the node {node}, which is not there.",
            details={"cidr": cidr, "pool": pool, "node": node, "uid": uid},
        )


# Only what has been held for a while: the node may have come after the list was made.
_LEAKED = """
    SELECT b.cidr::text, p.name, b.holder_id, b.holder_uid
    FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
    WHERE p.cluster_id = %s AND p.category = 'pod' AND b.state = 'held' AND b.holder_kind = 'node'
      AND b.allocated_at <= ipam_now() - make_interval(secs => %s)
      AND NOT EXISTS (
        SELECT FROM pools_observedobject o
        WHERE o.cluster_id = %s AND o.kind = %s AND o.name = b.holder_id
          AND b.holder_uid IN ('', o.uid))
    ORDER BY b.cidr
"""


def _cooldowns(cluster_id: int) -> Iterator[ReconcileFinding]:
    for cidr, pool, node, before, until in _rows(_AGAINST_COOLDOWN, [cluster_id]):
        yield ReconcileFinding(
            "cooldown_not_kept",
            f"{cidr} {node}",
            f"The node {node} got {cidr} of the pool {pool} from the cluster while it cooled down"
            f" until {until}; {before} had it before.",
            details={"cidr": cidr, "pool": pool, "node": node, "before": before},
        )


# As long as the cooldown would last.
_AGAINST_COOLDOWN = """
    SELECT b.cidr::text, p.name, b.holder_id, e.holder_id,
        to_char(e.available_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM pools_pool p JOIN pools_block b ON b.pool_id = p.id
    CROSS JOIN LATERAL (
        SELECT x.holder_id, x.available_from FROM pools_blockevent x
        WHERE x.cidr = b.cidr AND x.pool_id = b.pool_id AND x.available_from IS NOT NULL
        ORDER BY x.pgh_id DESC LIMIT 1) e
    WHERE p.cluster_id = %s AND p.category = 'pod' AND p.cooldown_seconds > 0
      AND b.state = 'held' AND b.holder_kind = 'node'
      AND b.allocated_at > ipam_now() - make_interval(secs => p.cooldown_seconds)
      AND e.available_from > GREATEST(b.allocated_at, ipam_now()) AND e.holder_id <> b.holder_id
    ORDER BY b.cidr
"""


def astray(cluster_id: int) -> list[str]:
    """The nodes whose blocks in the register are not those that they list, by name; one query."""
    with database.hash_joins_only():
        return [name for (name,) in _rows(_ASTRAY, [cluster_id, KIND, cluster_id])]


# Texts are compared, because a node may list what is no CIDR to PostgreSQL. What a node lists in a
# CIDR that its pool has lost is looked at too: it counts for nothing that the node asks for.
_ASTRAY = """
    WITH listed AS (
        SELECT o.name, o.uid, jsonb_path_query(
            o.manifest, '$.spec.ipam.pools.allocated[*].cidrs[*]') #>> '{}' AS cidr
        FROM pools_observedobject o
        WHERE o.cluster_id = %s AND o.kind = %s AND o.problem_code = '' AND o.missed_at IS NULL),
    held AS (
        SELECT b.holder_id AS name, b.holder_uid AS uid, b.cidr::text AS cidr,
            p.orphaned_at IS NOT NULL
            OR p.id IN (SELECT pool_id FROM pools_poolcidr WHERE orphaned_at IS NOT NULL)
            AND EXISTS (
                SELECT FROM pools_poolcidr c WHERE c.pool_id = p.id
                AND c.orphaned_at IS NOT NULL AND b.cidr <<= c.cidr) AS gone
        FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
        WHERE p.cluster_id = %s AND p.category = 'pod' AND b.state = 'held'
          AND b.holder_kind = 'node')
    SELECT DISTINCT COALESCE(l.name, h.name) FROM listed l FULL JOIN held h USING (name, uid, cidr)
    WHERE l.name IS NULL OR h.name IS NULL OR h.gone
"""


def _rows(statement: str, values: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
