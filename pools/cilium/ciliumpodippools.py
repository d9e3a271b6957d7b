"""Handler of CiliumPodIPPools: the pod pools of a cluster, in both versions and all shapes.

Which side is authoritative if the register and an object differ:

- Without the managed resource `pools` (always in an observed cluster): the object. The register
  imports every object and follows it; a change in the register is reverted.
- With the managed resource `pools`: the register, for pools that were created or changed in it. An
  imported pool (`Pool.follows_cluster`) keeps following its object until somebody changes it, or
  decides for the register (pools/clusters/drift.py). Fields of other managers are never forced; they
  are reported as drift.
- Objects are created and changed, but never deleted. An object whose pool was deleted in the register is
  reported (`pool_not_in_register`): after a restore the register may lack pools, and deleting their
  objects would remove pools in use.

The two versions of one CRD are views of one stored object with one uid. So the list of the preferred
version has all objects, and an API server has nothing to convert. An object may have been written in a
shape that the served v2 does not accept; this is a finding with the corrected manifest. With the managed
resource `conversion`, v2alpha1 is listed too, and an object that v2 does not have (if each version has
a store of its own, as in CFP-42466) is created in v2. Objects of v2alpha1 are never written.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

from django.db import transaction
from django.db.models import Q

from pools.cilium import pool_findings, pool_sync, pool_writes
from pools.clusters.reconcile import handler, ingest as reconcile_ingest
from pools.core import errors
from pools.core.cilium import ciliumnode, podippool
from pools.core.cilium.podippool import PodIPPool
from pools.core.kubernetes.resources import (
    CILIUM_POD_IP_POOL,
    CILIUM_POD_IP_POOL_V2ALPHA1,
    Manifest,
    Resource,
)
from pools.models import Category, ManagedResource, ObservedObject, Pool, PoolCIDR
from pools.observed import cidrs as observed_cidrs

KIND = podippool.KIND
_BATCH = 200  # objects in one transaction
_SHAPE = "the shape of the cluster's CRD"  # key of context.notes
_CIDRS_FREED = (
    "a pool lost addresses"  # key of context.notes: another pool may use them in this sync
)


class CiliumPodIPPools(handler.Handler):
    """The handler of CiliumPodIPPools; see the module."""

    kind = KIND
    resources: Sequence[Resource] = (CILIUM_POD_IP_POOL, CILIUM_POD_IP_POOL_V2ALPHA1)
    follows = (ciliumnode.KIND,)

    def is_affected(self, context: handler.SyncContext) -> bool:
        """Return True if CIDRs are closed: what nodes release may end them, and findings name the holders."""
        closed = Q(orphaned_at__isnull=False) | ~Q(pending="")
        return PoolCIDR.objects.filter(closed, pool__cluster=context.cluster).exists()

    def parse(self, manifest: Manifest) -> PodIPPool:
        return pool_sync.parse(manifest)

    def ingest(
        self, context: handler.SyncContext, parsed_objects: Sequence[handler.ParsedObject]
    ) -> None:
        ingest(
            context, [(parsed_object.row, parsed_object.parsed) for parsed_object in parsed_objects]
        )

    def forget(self, context: handler.SyncContext, rows: Sequence[ObservedObject]) -> None:
        """Remove the pools of deleted objects, unless a later object of the name replaced the object."""
        observed_cidrs.forget(context.cluster, self.kind, rows)
        uids = {row.name: row.uid for row in rows}
        pools = Pool.objects.filter(
            cluster=context.cluster, category=Category.POD, name__in=list(uids), orphaned_at=None
        )
        for pool in pools:
            if not is_register_authoritative(context, pool) and pool.agreed.startswith(
                f"{uids[pool.name]} "
            ):
                pool_sync.remove_pool(pool, author=context.author)
                context.notes[_CIDRS_FREED] = True

    def desired(self, context: handler.SyncContext) -> Iterator[handler.Write]:
        ingest_register_changes(context)
        notes: list[handler.ReconcileFinding] = []
        context.notes[KIND] = notes
        shape = self._shape(context)
        if context.connection.manages(ManagedResource.POOLS):
            yield from pool_writes.desired_writes(context, shape, notes)
        if context.connection.manages(ManagedResource.CONVERSION):
            yield from pool_writes.conversion_writes(context, shape, notes)

    def _shape(self, context: handler.SyncContext) -> Callable[[], pool_writes.ServedShape]:
        """Return a function that reads the shape from the cluster at most once in a sync."""
        cached_shape: Callable[[], pool_writes.ServedShape] = context.notes.setdefault(
            _SHAPE, functools.cache(lambda: pool_writes.fetch_shape(context))
        )
        return cached_shape

    def findings(self, context: handler.SyncContext) -> Iterator[handler.ReconcileFinding]:
        @contextlib.contextmanager
        def isolated(name: str) -> Iterator[None]:
            with reconcile_ingest.isolate_object(context, KIND, name), context.transaction():
                yield

        pool_findings.update_pending(context.cluster, author=context.author, isolated=isolated)
        with context.transaction():
            pool_sync.store_unregistered_cidrs(context.cluster)
        yield from context.notes.get(KIND, ())
        yield from pool_findings.find_pending(context)
        yield from pool_findings.find_orphans(context)
        yield from pool_findings.find_overlaps(context)
        yield from pool_findings.find_unmatched(context)
        yield from pool_findings.find_unreadable(context, self._shape(context))


def is_register_authoritative(context: handler.SyncContext, pool: Pool) -> bool:
    """Return True if the register is authoritative for the pool."""
    is_own = not pool.follows_cluster and pool.orphaned_at is None
    return is_own and context.connection.manages(ManagedResource.POOLS)


# --- from the cluster into the register -----------------------------------------------------------


def ingest(
    context: handler.SyncContext, observed_pools: Sequence[tuple[ObservedObject, PodIPPool]]
) -> None:
    """Import objects in any order; one may have a CIDR that another one no longer has."""
    pools_by_name = {
        pool.name: pool
        for pool in Pool.objects.filter(
            cluster=context.cluster, name__in=[manifest.name for _, manifest in observed_pools]
        )
    }
    new: list[PodIPPool] = []
    changed: list[tuple[Pool, PodIPPool]] = []
    ingested: list[int] = []
    for row, manifest in observed_pools:
        pool = pools_by_name.get(manifest.name)
        if (
            pool is None
            and context.connection.manages(ManagedResource.POOLS)
            and pool_writes.has_our_manager(row.manifest)
        ):
            continue  # the register deleted the pool, or lost it in a restore
        if pool is not None and is_register_authoritative(context, pool):
            continue  # `desired` computes the write
        if pool is None:
            new.append(manifest)
        else:
            changed.append((pool, manifest))
        ingested.append(row.pk)
    _update_pools(context, changed)
    context.notes[_CIDRS_FREED] = context.notes.get(_CIDRS_FREED, False) or bool(changed)
    pool_sync.import_pools(context.cluster, new, author=context.author)
    pool_writes.mark_agreed(ingested)


def _update_pools(context: handler.SyncContext, changed: Sequence[tuple[Pool, PodIPPool]]) -> None:
    """Update pools; retry refused ones as long as another update freed addresses."""
    registered_manifests = pool_sync.registered_manifests([pool for pool, _ in changed])
    remaining = changed
    while remaining:
        refused: list[tuple[Pool, PodIPPool]] = []
        overlap_error: errors.IpamError | None = None
        for pool, manifest in remaining:
            try:
                with transaction.atomic():
                    pool_sync.update_pool(
                        pool,
                        manifest,
                        author=context.author,
                        registered_manifest=registered_manifests[pool.pk],
                    )
            except errors.CIDROverlap as error:
                refused.append((pool, manifest))
                overlap_error = error
        if overlap_error is not None and len(refused) == len(remaining):
            raise overlap_error
        remaining = refused


def ingest_register_changes(context: handler.SyncContext) -> None:
    """Reconcile pools that changed in the register, and remove orphans without blocks in use."""
    orphaned = pool_sync.orphaned_cidrs(context.cluster)
    rows = pool_writes.changed_objects(context.cluster)
    if not (orphaned or rows):
        return
    orphans_removed = bool(orphaned) and _remove_unused_orphans(context, orphaned)
    if orphans_removed or context.notes.get(_CIDRS_FREED):
        # A pool that was removed meanwhile neither overlaps nor fixes mask sizes any more.
        retried = {"", errors.CIDROverlap.code, errors.ImmutableInUse.code}
        rows_to_ingest = [row for row in rows if row.problem_code in retried]
    else:
        rows_to_ingest = [row for row in rows if not row.problem_code]
    for start in range(0, len(rows_to_ingest), _BATCH):
        batch = rows_to_ingest[start : start + _BATCH]
        if not _try_ingest(context, batch):
            for row in batch:
                _ingest_one(context, row)


def _try_ingest(context: handler.SyncContext, rows: Sequence[ObservedObject]) -> bool:
    if any(row.problem_code for row in rows):
        return False
    try:
        with context.transaction():
            ingest(context, [(row, pool_sync.parse(row.manifest)) for row in rows])
    except reconcile_ingest.OBJECT_ERRORS:
        return False  # a lost lease is raised again when objects are ingested one by one
    return True


def _remove_unused_orphans(context: handler.SyncContext, orphaned: Sequence[PoolCIDR]) -> bool:
    with context.transaction():
        return pool_sync.remove_unused_orphans(orphaned, author=context.author) > 0


def _ingest_one(context: handler.SyncContext, row: ObservedObject) -> None:
    code = message = ""
    with context.transaction():
        for _, error in reconcile_ingest.isolate_failures(
            [row],
            lambda rows: ingest(context, [(row, pool_sync.parse(row.manifest)) for row in rows]),
        ):
            code, message = reconcile_ingest.describe_problem(error, f"{KIND} {row.name}")
        if (code, message) != (row.problem_code, row.problem):
            ObservedObject.objects.filter(pk=row.pk).update(problem_code=code, problem=message)
