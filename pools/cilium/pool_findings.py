"""Findings about the pools of a cluster: orphans, overlaps, and pools or objects without counterpart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pools.cilium import pool_sync, pool_writes
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.core import errors
from pools.core.cilium import podippool
from pools.models import ObservedObject, Pool, PoolCIDR
from pools.models.connections import ManagedResource
from pools.models.observed import Severity
from pools.models.pools import Category
from pools.register import pool_cidrs

KIND = podippool.KIND
_MAX_LISTED = 20  # holders in a message


def find_orphans(context: SyncContext) -> Iterator[ReconcileFinding]:
    by_pool: dict[Pool, list[PoolCIDR]] = {}
    for cidr in pool_sync.orphaned_cidrs(context.cluster):
        by_pool.setdefault(cidr.pool, []).append(cidr)
    yield from ingest.find_each(
        context,
        KIND,
        by_pool,
        lambda pool: _orphans_of_pool(pool, by_pool[pool]),
        name=lambda pool: pool.name,
    )


def _orphans_of_pool(pool: Pool, cidrs: list[PoolCIDR]) -> Iterator[ReconcileFinding]:
    if pool.orphaned_at is not None:
        message = f"The cluster no longer has the pool {pool.name}, but blocks of it are in use: "
        yield _orphan_finding("orphaned_pool", pool.name, message, cidrs)
        return
    for cidr in cidrs:
        message = f"The pool {pool.name} no longer has {cidr}, but blocks of it are in use: "
        yield _orphan_finding("orphaned_cidr", f"{pool.name} {cidr}", message, [cidr])


def _orphan_finding(
    code: str, subject: str, message: str, cidrs: Iterable[PoolCIDR]
) -> ReconcileFinding:
    count, holders = 0, list[dict[str, str]]()
    for cidr in cidrs:
        rows = pool_cidrs.blocks_in_use(cidr)
        count += rows.count()
        holders += [
            {"kind": row.holder_kind, "id": row.holder_id, "cidr": str(row.cidr)}
            for row in rows[: _MAX_LISTED - len(holders)]
        ]
    names = ", ".join(f"{holder['id']} ({holder['cidr']})" for holder in holders)
    suffix = f" and {count - len(holders)} more" if count > len(holders) else ""
    details = {
        "cidrs": [str(cidr) for cidr in cidrs],
        "blocks": count,
        "holders": holders,
    }
    end = (
        ". No new blocks are allocated from it. The same pool adopts it when it has the CIDR again."
    )
    return ReconcileFinding(code, subject, f"{message}{names}{suffix}{end}", details=details)


def find_overlaps(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Yield a finding for each CIDR of an object that was refused because another pool has addresses of it."""
    rows = ObservedObject.objects.filter(
        cluster=context.cluster, kind=KIND, problem_code=errors.CIDROverlap.code
    )
    yield from ingest.find_each(
        context,
        KIND,
        rows.order_by("name"),
        lambda row: _overlaps_of_object(context, row),
        name=lambda row: row.name,
    )


def _overlaps_of_object(context: SyncContext, row: ObservedObject) -> Iterator[ReconcileFinding]:
    try:
        manifest = pool_sync.parse(row.manifest)
    except errors.InvalidInput:
        return  # its own CIDRs overlap; the problem of the object says so
    for family in manifest.families.values():
        for entry in family.cidrs:
            yield from _overlap_findings(context, manifest.name, str(entry.cidr))


def _overlap_findings(context: SyncContext, name: str, cidr: str) -> Iterator[ReconcileFinding]:
    overlapping_cidrs = PoolCIDR.objects.filter(
        space__cluster=context.cluster, cidr__net_overlaps=cidr
    ).select_related("pool")
    for overlapping_cidr in overlapping_cidrs[:_MAX_LISTED]:
        if overlapping_cidr.pool.name == name and overlapping_cidr.orphaned_at is None:
            continue
        orphan = ", an orphan" if overlapping_cidr.orphaned_at else ""
        message = (
            f"{cidr} of the pool {name} overlaps {overlapping_cidr} of the pool {overlapping_cidr.pool.name}{orphan}. The"
            " cluster accepts that, and may allocate a block twice. The register does not import it."
        )
        details = {
            "pools": [name, overlapping_cidr.pool.name],
            "cidrs": [cidr, str(overlapping_cidr)],
        }
        subject = f"{name} {cidr}, {overlapping_cidr.pool.name} {overlapping_cidr}"
        yield ReconcileFinding("cidr_overlap", subject, message, Severity.ERROR, details)


def find_unmatched(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Yield a finding for each object without a pool, or pool without an object, that needs a decision."""
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=KIND)
    pool_rows = Pool.objects.filter(cluster=context.cluster, category=Category.POD)
    if context.connection.manages(ManagedResource.POOLS):
        unknown = rows.filter(problem_code="", missed_at=None)
        objects = unknown.exclude(name__in=pool_rows.values("name")).order_by("name")
        yield from ingest.find_each(
            context, KIND, objects, _not_in_register, name=lambda row: row.name
        )
        return
    pools = pool_rows.filter(orphaned_at=None).exclude(name__in=rows.values("name"))
    yield from ingest.find_each(context, KIND, pools, _not_in_cluster, name=lambda pool: pool.name)


def _not_in_register(row: ObservedObject) -> Iterator[ReconcileFinding]:
    if pool_writes.has_our_manager(row.manifest):
        message = (
            f"Cadastre wrote the object {row.name}, but no longer has such a pool. Adopt it"
            f" into the register, or delete it: kubectl delete ciliumpodippool {row.name}"
        )
        yield ReconcileFinding("pool_not_in_register", row.name, message)


def _not_in_cluster(pool: Pool) -> Iterator[ReconcileFinding]:
    message = f"The register has the pool {pool.name}, but the cluster has no such object."
    yield ReconcileFinding("pool_not_in_cluster", pool.name, message)
