"""Findings about the pools of a cluster: orphans, overlaps, missing counterparts, pending CIDRs, and shapes that the served CRD refuses.

A CRD stores an object once, as it was written: strings in `cidrs` by v2alpha1 and by the shipped v2,
objects by the v2 of the proposal (CFP-42466). An API server returns the strings through a v2 with
objects, where no reader can decode them, and hides objects from a version with strings (`cidrs: [{}]`;
tests/real/test_unreadable_pools.py). The manager that applied the object has to write it again.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from pools import models
from pools.cilium import pool_sync, pool_writes
from pools.cilium.pool_writes import ServedShape
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import MANAGER, ReconcileFinding, SyncContext
from pools.core import errors
from pools.core.cilium import conversion, podippool
from pools.core.cilium.podippool import Shape
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.resources import CILIUM_POD_IP_POOL, Manifest
from pools.models.pools import MigrationOutcome
from pools.platform import events
from pools.register import orphans, pool_cidrs, pools

KIND = podippool.KIND
_MAX_LISTED = 20  # holders in a message


def find_orphans(context: SyncContext) -> Iterator[ReconcileFinding]:
    by_pool: dict[models.Pool, list[models.PoolCIDR]] = {}
    for cidr in pool_sync.orphaned_cidrs(context.cluster):
        by_pool.setdefault(cidr.pool, []).append(cidr)
    yield from ingest.find_each(
        context,
        KIND,
        by_pool,
        lambda pool: _orphans_of_pool(pool, by_pool[pool]),
        name=lambda pool: pool.name,
    )


def _orphans_of_pool(pool: models.Pool, cidrs: list[models.PoolCIDR]) -> Iterator[ReconcileFinding]:
    if pool.orphaned_at is not None:
        message = f"The cluster no longer has the pool {pool.name}, but blocks of it are in use: "
        yield _orphan_finding("orphaned_pool", pool.name, message, cidrs)
        return
    for cidr in cidrs:
        message = f"The pool {pool.name} no longer has {cidr}, but blocks of it are in use: "
        yield _orphan_finding("orphaned_cidr", f"{pool.name} {cidr}", message, [cidr])


def _orphan_finding(
    code: str, subject: str, message: str, cidrs: Iterable[models.PoolCIDR]
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
    rows = models.ObservedObject.objects.filter(
        cluster=context.cluster, kind=KIND, problem_code=errors.CIDROverlap.code
    )
    yield from ingest.find_each(
        context,
        KIND,
        rows.order_by("name"),
        lambda row: _overlaps_of_object(context, row),
        name=lambda row: row.name,
    )


def _overlaps_of_object(
    context: SyncContext, row: models.ObservedObject
) -> Iterator[ReconcileFinding]:
    try:
        manifest = pool_sync.parse(row.manifest)
    except errors.InvalidInput:
        return  # its own CIDRs overlap; the problem of the object says so
    for family in manifest.families.values():
        for entry in family.cidrs:
            yield from _overlap_findings(context, manifest.name, str(entry.cidr))


def _overlap_findings(context: SyncContext, name: str, cidr: str) -> Iterator[ReconcileFinding]:
    overlapping_cidrs = models.PoolCIDR.objects.filter(
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
        yield ReconcileFinding("cidr_overlap", subject, message, models.Severity.ERROR, details)


def find_unmatched(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Yield a finding for each object without a pool, or pool without an object, that needs a decision."""
    rows = models.ObservedObject.objects.filter(cluster=context.cluster, kind=KIND)
    pool_rows = models.Pool.objects.filter(cluster=context.cluster, category=models.Category.POD)
    if context.connection.manages(models.ManagedResource.POOLS):
        unknown = rows.filter(problem_code="", missed_at=None)
        objects = unknown.exclude(name__in=pool_rows.values("name")).order_by("name")
        yield from ingest.find_each(
            context, KIND, objects, _not_in_register, name=lambda row: row.name
        )
        return
    pools = pool_rows.filter(orphaned_at=None).exclude(name__in=rows.values("name"))
    yield from ingest.find_each(context, KIND, pools, _not_in_cluster, name=lambda pool: pool.name)


def _not_in_register(row: models.ObservedObject) -> Iterator[ReconcileFinding]:
    if pool_writes.has_our_manager(row.manifest):
        message = (
            f"Cadastre wrote the object {row.name}, but no longer has such a pool. Adopt it"
            f" into the register, or delete it: kubectl delete ciliumpodippool {row.name}"
        )
        yield ReconcileFinding("pool_not_in_register", row.name, message)


def _not_in_cluster(pool: models.Pool) -> Iterator[ReconcileFinding]:
    message = f"The register has the pool {pool.name}, but the cluster has no such object."
    yield ReconcileFinding("pool_not_in_cluster", pool.name, message)


def update_pending(
    cluster: models.Cluster,
    *,
    author: events.Author,
    isolated: Callable[[str], AbstractContextManager[None]] = lambda _: contextlib.nullcontext(),
) -> None:
    """End pending changes that the cluster has, and mark new ones, after a sync has written.

    `isolated` opens the transaction of each change, given the name of its pool.
    """
    changes = orphans.pending_changes(cluster)
    rows = models.PoolCIDR.objects.filter(pk__in=[change.id for change in changes])
    names = dict(rows.values_list("pk", "pool__name"))
    for change in changes:
        with isolated(names.get(change.id, "")):
            if change.gone:
                running = models.CIDRMigration.objects.filter(ended_at=None)
                ids = list(running.filter(pool_cidr=change.id).values_list("pk", flat=True))
                # The pool's lock comes before the rows of migrations.
                if pools.complete_removal(change.id, author=author):
                    running.filter(pk__in=ids).update(
                        outcome=MigrationOutcome.REMOVED, ended_at=models.Now()
                    )
            else:
                pools.set_pending(change.id, change.pending, author=author)


def end_pending(cluster: models.Cluster, author: events.Author) -> None:
    """End all pending changes of a cluster that is no longer connected."""
    update_pending(cluster, author=author)


_ADDITION = (
    "The register has {cidr} in the pool {pool}, but the cluster's object does not. No blocks are"
    " allocated from it. {owner}"
)
_REMOVAL = (
    "The register has removed {cidr} from the pool {pool}, but the cluster's object still has it. No"
    " other pool can get it. {owner}"
)


def find_pending(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Yield a finding for each pending CIDR, with the managers of the object's list of CIDRs."""
    cidrs = orphans.pending_cidrs(context.cluster)
    if not cidrs:
        return
    rows = models.ObservedObject.objects.filter(
        cluster=context.cluster, kind=KIND, name__in={cidr.pool.name for cidr in cidrs}
    )
    manifests = dict(rows.values_list("name", "manifest"))
    yield from ingest.find_each(
        context,
        KIND,
        [
            cidr for cidr in cidrs if manifests.get(cidr.pool.name)
        ],  # else the whole pool is reported
        lambda cidr: _pending_finding(cidr, manifests[cidr.pool.name]),
        name=lambda cidr: cidr.pool.name,
    )


def _pending_finding(cidr: models.PoolCIDR, manifest: dict[str, Any]) -> Iterator[ReconcileFinding]:
    path = ("spec", f"ipv{cidr.cidr.version}", "cidrs")
    owners = {entry.manager for entry in managed_fields.parse(manifest) if entry.owns(path)}
    other_managers = sorted(owners - {MANAGER})
    owner = "The next sync writes the object."
    if other_managers:
        owner = f"{', '.join(other_managers)} owns spec.{path[1]}.cidrs: change it there, or take the field over."
    addition = cidr.pending == models.Pending.ADDITION
    message = (_ADDITION if addition else _REMOVAL).format(
        cidr=cidr, pool=cidr.pool.name, owner=owner
    )
    details = {"pool": cidr.pool.name, "cidr": str(cidr), "managers": other_managers}
    yield ReconcileFinding(
        f"cidr_{cidr.pending}_pending", f"{cidr.pool.name} {cidr}", message, details=details
    )


_FORMS = {Shape.V2_PROPOSAL: "objects", Shape.V2: "strings", Shape.V2ALPHA1: "strings"}


def find_unreadable(
    context: SyncContext, shape: Callable[[], ServedShape]
) -> Iterator[ReconcileFinding]:
    """Yield a finding for each unreadable object; `details.manifest` is the corrected manifest."""
    if context.served.get(KIND) != CILIUM_POD_IP_POOL:
        return
    rows = models.ObservedObject.objects.filter(
        cluster=context.cluster, kind=KIND, missed_at=None
    ).order_by("name")
    served = shape().shape if rows.exists() else None
    if served is None:
        return
    yield from ingest.find_each(
        context,
        KIND,
        rows.values_list("name", "manifest").iterator(chunk_size=500),
        lambda pair: _find_unreadable(context, *pair, shape(), _FORMS[served]),
        name=lambda pair: pair[0],
    )


def _find_unreadable(
    context: SyncContext, name: str, manifest: Manifest, shape: ServedShape, expected: str
) -> Iterator[ReconcileFinding]:
    if _cidr_forms(manifest) - {expected}:
        yield _unreadable_finding(
            name, expected, _corrected_manifest(context, name, manifest, shape)
        )


def _cidr_forms(manifest: Manifest) -> set[str]:
    """Return the notations of the CIDRs of both families: "strings", "objects"."""
    spec = manifest.get("spec")
    families = [spec.get(f"ipv{number}") for number in (4, 6)] if isinstance(spec, dict) else []
    lists = [part.get("cidrs") for part in families if isinstance(part, dict)]
    cidrs = [cidr for listed in lists if isinstance(listed, list) for cidr in listed]
    return {"strings" if isinstance(cidr, str) else "objects" for cidr in cidrs}


def _corrected_manifest(
    context: SyncContext, name: str, manifest: Manifest, shape: ServedShape
) -> Manifest | None:
    """Return the object in the served shape; from the register if its CIDRs are hidden."""
    objects = shape.shape is Shape.V2_PROPOSAL
    with contextlib.suppress(errors.InvalidInput):
        return conversion.convert(manifest, Shape.V2_PROPOSAL if objects else Shape.V2)
    rows = models.Pool.objects.filter(
        cluster=context.cluster, category=models.Category.POD, name=name
    )
    with contextlib.suppress(errors.InvalidInput):
        return next(
            (
                shape.render(registered_manifest)
                for registered_manifest in pool_sync.registered_manifests(list(rows)).values()
            ),
            None,
        )
    return None


def _unreadable_finding(name: str, expected: str, manifest: Manifest | None) -> ReconcileFinding:
    written = "strings" if expected == "objects" else "objects"
    details: dict[str, Any] = {"manifest": manifest} if manifest else {}
    instruction = "replace it with the manifest of the details (kubectl replace -f)"
    message = (
        f"The object {name} has CIDRs as {written}, but the v2 of the cluster has {expected}: "
        f"Cilium and other readers of v2 cannot read it. To correct it, "
        f"{instruction if manifest else 'write it again in the shape of v2'}."
    )
    return ReconcileFinding("pool_unreadable", name, message, details=details)
