"""Findings about PodCIDRs of a cluster, and nodes whose blocks in the register differ."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.db import connection

from pools.cilium import node_status
from pools.cilium.node_status import ListedCIDR, NodeStatus
from pools.cilium.pod_pools import PodPools
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.clusters.reconcile.storage import GRACE
from pools.core.cilium import podippool
from pools.core.cilium.ciliumnode import KIND, NodeDemand
from pools.models import ObservedObject, Severity
from pools.platform import database
from pools.sql import statements

MAX_LISTED_NODES = 20


def cluster_findings(
    context: SyncContext, demands: Sequence[NodeDemand], *, serving: bool
) -> Iterator[ReconcileFinding]:
    """Yield the findings of a cluster; `demands` are the nodes that need work.

    With `serving`, unpublished blocks are about to be written to their nodes and are no finding.
    """
    cluster_id = context.cluster.pk
    pools = PodPools(cluster_id)
    statuses = ingest.find_together(
        context,
        KIND,
        demands,
        lambda batch: node_status.node_statuses(pools, batch),
        name=lambda demand: demand.name,
    )
    objects = _pool_objects(cluster_id) if statuses else {}
    yield from ingest.find_each(
        context,
        KIND,
        statuses,
        lambda status: _node_findings(status, objects, serving=serving),
        name=lambda status: status.name,
    )
    nodes = _nodes_by_unknown_pool(context, pools, statuses)
    yield from ingest.find_each(
        context, KIND, nodes, lambda pool: _unknown_pool(pool, nodes[pool], objects.get(pool))
    )
    yield from _each_row(context, _leaks(cluster_id), _leak)
    yield from _each_row(
        context, _rows(_WITHOUT_NODE, {"cluster": cluster_id, "kind": KIND}), _without_node, node=0
    )
    yield from _each_row(
        context,
        _rows(_AGAINST_COOLDOWN, {"cluster": cluster_id}),
        lambda row: _cooldown(row, serving=serving),
    )


def _each_row(
    context: SyncContext,
    rows: Sequence[tuple[Any, ...]],
    find: Callable[[tuple[Any, ...]], Iterator[ReconcileFinding]],
    *,
    node: int = 2,
) -> Iterator[ReconcileFinding]:
    """Yield the findings of rows, of which the column `node` has the name."""
    return ingest.find_each(context, KIND, rows, find, name=lambda row: row[node])


def _node_findings(
    status: NodeStatus, objects: Mapping[str, ObservedObject], *, serving: bool
) -> Iterator[ReconcileFinding]:
    name = status.name
    for overlap in status.overlaps:
        kind, holder = overlap.holder
        yield _finding(
            "pod_cidr_overlap",
            overlap,
            name,
            f"The node {name} lists {overlap.cidr} of the pool {overlap.pool}, but {kind} {holder} holds it.",
            severity=Severity.ERROR,
            holder={"kind": kind, "id": holder},
        )
    for orphan in status.orphans:
        if orphan.pool in status.pools.by_name:
            yield _finding(
                "orphaned_pod_cidr",
                orphan,
                name,
                _orphan_message(orphan, name, objects.get(orphan.pool)),
            )
    for misfit in status.misfits:
        message = f"The node {name} lists {misfit.cidr}, which does not have the mask size of {misfit.pool}."
        yield _finding("pod_cidr_size", misfit, name, message)
    for row in () if serving else status.unpublished:
        message = f"The register has {row.cidr} for the node {name}, but the node does not list it."
        details = {"cidr": str(row.cidr), "node": name}
        yield ReconcileFinding("unlisted_pod_cidr", f"{row.cidr} {name}", message, details=details)


def _pool_objects(cluster_id: int) -> dict[str, ObservedObject]:
    """Return the CiliumPodIPPools that the cluster has, by name."""
    rows = ObservedObject.objects.filter(
        cluster_id=cluster_id, kind=podippool.KIND, missed_at=None
    ).defer("manifest")
    return {row.name: row for row in rows}


def _orphan_message(listed_cidr: ListedCIDR, name: str, pool: ObservedObject | None) -> str:
    cidr, place = listed_cidr.cidr, listed_cidr.pool_cidr
    of_cluster = [
        parent
        for parent in (pool.cidrs or () if pool else ())
        if parent.version == cidr.version and parent.overlaps(cidr)
    ]
    if pool is not None and of_cluster:
        message = (
            f"The node {name} lists {cidr}: the pool {pool.name} has {of_cluster[0]} in the cluster, but not"
            " in the register."
        )
        if place is not None and place.pool.name != pool.name:
            message += f" The register has it in the pool {place.pool.name}."
        return f"{message} {_adoption(pool)}"
    message = f"The node {name} lists {cidr}, which is in no CIDR of the pool {listed_cidr.pool}"
    if place is not None and place.pool.name != listed_cidr.pool:
        return f"{message} but in one of the pool {place.pool.name}."
    return f"{message} in the cluster."


def _adoption(pool: ObservedObject) -> str:
    """Return what leads the CIDRs of a pool's object into the register."""
    if pool.problem_code:
        return f"The register refused its object: {pool.problem.rstrip('.')}. Resolve this first."
    return f"Adopt the object {pool.name} into the register."


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


def _nodes_by_unknown_pool(
    context: SyncContext, pools: PodPools, statuses: Sequence[NodeStatus]
) -> dict[str, list[str]]:
    nodes: dict[str, list[str]] = {}
    for status in statuses:
        with ingest.isolate_object(context, KIND, status.name):
            listed = {listed_cidr.pool for listed_cidr in status.listed}
            requested_pools = {
                name for name, needed in status.demand.requested.items() if any(needed.values())
            }
            for pool in listed | requested_pools:
                if pool not in pools.by_name:
                    nodes.setdefault(pool, []).append(status.name)
    return nodes


def _unknown_pool(
    pool: str, names: Sequence[str], row: ObservedObject | None
) -> Iterator[ReconcileFinding]:
    first = sorted(names)[:MAX_LISTED_NODES]
    suffix = f" and {len(names) - len(first)} more" if len(names) > len(first) else ""
    listed_names = f"{', '.join(first)}{suffix}"
    message = (
        f"The pool {pool}, from which nodes list or request addresses, does not exist:"
        f" {listed_names}."
    )
    if row is not None:
        message = (
            f"The pool {pool}, from which nodes list or request addresses, is in the cluster, but not in"
            f" the register: {listed_names}. {_adoption(row)}"
        )
    details = {"pool": pool, "nodes": first, "count": len(names)}
    yield ReconcileFinding("unknown_pool", pool, message, details=details)


def _leaks(cluster_id: int) -> list[tuple[Any, ...]]:
    with database.hash_joins_only():
        return _rows(_LEAKED, {"cluster": cluster_id, "grace": GRACE, "kind": KIND})


def _leak(row: tuple[Any, ...]) -> Iterator[ReconcileFinding]:
    cidr, pool, node, uid = row
    yield ReconcileFinding(
        "leaked_pod_cidr",
        f"{cidr} {node}",
        f"The register has {cidr} of the pool {pool} for the node {node}, which does not exist.",
        details={"cidr": cidr, "pool": pool, "node": node, "uid": uid},
    )


# Only blocks that have been held for a while: the node may be newer than the list.
_LEAKED = statements.read("pools/leaked_node_blocks")


def _without_node(row: tuple[Any, ...]) -> Iterator[ReconcileFinding]:
    """Report CiliumNodes whose Node is gone, as leak detection has observed it (pools/register/leaks/detection.py).

    A CiliumNode that is newer than that observation may have its Node by now.
    """
    node, cidrs = row
    yield ReconcileFinding(
        "ciliumnode_without_node",
        node,
        f"The CiliumNode {node} has no Node in Kubernetes, and holds {', '.join(cidrs[:MAX_LISTED_NODES])}."
        f" If the node is gone for good, delete it: kubectl delete ciliumnode {node}",
        details={"node": node, "cidrs": cidrs},
    )


_WITHOUT_NODE = """
    SELECT b.holder_id, array_agg(b.cidr::text ORDER BY b.cidr)
    FROM pools_leak l JOIN pools_block b ON b.id = l.block_id AND b.state = 'held'
        AND b.holder_id = l.holder_id AND b.allocated_at = l.allocated_at AND b.category = 'pod'
    JOIN pools_observedobject o ON o.cluster_id = l.cluster_id AND o.kind = %(kind)s
        AND o.name = l.holder_id AND o.missed_at IS NULL AND l.holder_uid IN ('', o.uid)
        AND o.first_seen_at <= l.observed_at
    WHERE l.cluster_id = %(cluster)s AND l.holder_kind = 'node'
    GROUP BY b.holder_id ORDER BY b.holder_id
"""


_OTHER_WRITER = "Cadastre writes pod-cidrs here, but another controller, such as Cilium's operator, writes them too: stop it."
_NO_COOLDOWN = "The operator knows no cooldown; Cadastre keeps it if it writes pod-cidrs."


def _cooldown(row: tuple[Any, ...], *, serving: bool) -> Iterator[ReconcileFinding]:
    cidr, pool, node, before, until = row
    yield ReconcileFinding(
        "cooldown_not_kept",
        f"{cidr} {node}",
        f"The node {node} got {cidr} of the pool {pool} from the cluster during its cooldown"
        f" (until {until}). The previous holder is {before}."
        f" {_OTHER_WRITER if serving else _NO_COOLDOWN}",
        details={"cidr": cidr, "pool": pool, "node": node, "before": before},
    )


# Reported until the end of the cooldown.
_AGAINST_COOLDOWN = statements.read("pools/node_blocks_against_cooldown")


def nodes_out_of_sync(cluster_id: int) -> list[str]:
    """Return the names of nodes whose blocks in the register differ from their list; one query."""
    with database.hash_joins_only():
        return [
            name for (name,) in _rows(_NODES_OUT_OF_SYNC, {"cluster": cluster_id, "kind": KIND})
        ]


# Strings are compared, because a node may list a value that PostgreSQL does not accept as a CIDR. Listed
# CIDRs in an orphaned CIDR are included: they do not count towards the request of the node.
_NODES_OUT_OF_SYNC = statements.read("pools/nodes_out_of_sync")


def _rows(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
