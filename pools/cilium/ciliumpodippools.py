"""CiliumPodIPPools: the pools of pod CIDRs of a cluster, in both versions and all shapes.

Who is right where the register and an object differ:

- In an observed cluster, and in a managed one without the managed resource `pools`, the object. The register
  takes in every object and follows it: also what somebody changed in the register goes back.
- With the managed resource `pools`, the register, for the pools that were made or changed in it. A pool that was
  only ever taken in (`Pool.follows_cluster`) goes on following its object; it becomes the register's
  when somebody changes it, or takes it over (services/drift.py). Nothing of another field manager is
  forced: what is not ours to change is shown as a difference.
- Objects are made and changed, and never deleted. A pool that was deleted in the register while its
  object is there is shown (`pool_not_in_register`), because the register may be the one that forgot:
  after a restore, deleting what it does not know would take pools in use away.

The two versions of one CRD are views of one stored object, with one uid, so that the list of the
preferred version has all objects, and no API server has anything to convert. What can happen is that an
object was written in words which the served v2 does not take: a finding, with the manifest that mends it.
With the managed resource `conversion` v2alpha1 is listed too, and an object that v2 does not have (each version with
a store of its own, as CFP-42466 thinks) is created there; what is in v2alpha1 is never written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from django.db import IntegrityError, transaction

from pools.cilium import (
    pending_cidrs,
    pool_agreement,
    pool_findings,
    pool_pending,
    pool_shapes,
    pool_sync,
    pool_writes,
)
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import (
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core import errors
from pools.core.cilium import podippool
from pools.core.cilium.podippool import PodIPPool
from pools.core.kubernetes.resources import (
    CILIUM_POD_IP_POOL,
    CILIUM_POD_IP_POOL_V2ALPHA1,
    Resource,
)
from pools.models import ObservedObject, Pool, PoolCIDR
from pools.models.connections import ManagedResource
from pools.models.pools import Category
from pools.platform import database

KIND = podippool.KIND
_BATCH = 200  # objects in one transaction
_SHAPE = "the shape of the cluster's CRD"  # a note
_ROOM = "a pool lost addresses"  # a note: in this pass, so that another one may have them


class CiliumPodIPPools(Handler):
    """The handler; see the module."""

    kind = KIND
    resources: Sequence[Resource] = (CILIUM_POD_IP_POOL, CILIUM_POD_IP_POOL_V2ALPHA1)

    def parse(self, manifest: Manifest) -> PodIPPool:
        return pool_sync.parse(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        ingest(
            context, [(parsed_object.row, parsed_object.parsed) for parsed_object in parsed_objects]
        )

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        """Only of the object that a pool last agreed with: a later one of its name is another."""
        uids = {row.name: row.uid for row in rows}
        pools = Pool.objects.filter(
            cluster=context.cluster, category=Category.POD, name__in=list(uids), orphaned_at=None
        )
        for pool in pools:
            if not registers(context, pool) and pool.agreed.startswith(f"{uids[pool.name]} "):
                pool_sync.lose(pool, author=context.author)
                context.notes[_ROOM] = True

    def desired(self, context: SyncContext) -> Iterator[Write]:
        catch_up(context)
        notes: list[ReconcileFinding] = []
        context.notes[KIND] = notes
        shape = self._shape(context)
        if context.connection.manages(ManagedResource.POOLS):
            yield from pool_writes.writes(context, shape, notes)
        if context.connection.manages(ManagedResource.CONVERSION):
            yield from pool_writes.conversions(context, shape, notes)

    def _shape(self, context: SyncContext) -> Callable[[], pool_writes.Shaped]:
        """Asked of the cluster at most once in a pass."""
        cached_shape: Callable[[], pool_writes.Shaped] = context.notes.setdefault(
            _SHAPE, functools.cache(lambda: pool_writes.shape_of(context))
        )
        return cached_shape

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        pending_cidrs.update_pending(
            context.cluster, author=context.author, holding=context.holding
        )
        yield from context.notes.get(KIND, ())
        yield from pool_pending.findings(context)
        yield from pool_findings.orphans(context)
        yield from pool_findings.overlaps(context)
        yield from pool_findings.unmatched(context)
        yield from pool_shapes.unreadable(context, self._shape(context))


def registers(context: SyncContext, pool: Pool) -> bool:
    """Whether the register is right where the pool and its object differ."""
    is_own = not pool.follows_cluster and pool.orphaned_at is None
    return is_own and context.connection.manages(ManagedResource.POOLS)


# --- from the cluster into the register -----------------------------------------------------------


def ingest(
    context: SyncContext, observed_pools: Sequence[tuple[ObservedObject, PodIPPool]]
) -> None:
    """Take in objects, in any order: one may have a CIDR that another has just lost."""
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
            and pool_writes.ours(row.manifest)
        ):
            continue  # it was deleted in the register, or the register forgot it
        if pool is not None and registers(context, pool):
            continue  # what is to be done is worked out in `desired`
        if pool is None:
            new.append(manifest)
        else:
            changed.append((pool, manifest))
        ingested.append(row.pk)
    _bring(context, changed)
    context.notes[_ROOM] = context.notes.get(_ROOM, False) or bool(changed)
    pool_sync.take_in(context.cluster, new, author=context.author)
    pool_agreement.agree(ingested)


def _bring(context: SyncContext, changed: Sequence[tuple[Pool, PodIPPool]]) -> None:
    """Again and again, as long as one of them makes room for another."""
    registered_manifests = pool_sync.registered_manifests([pool for pool, _ in changed])
    remaining = changed
    while remaining:
        refused: list[tuple[Pool, PodIPPool]] = []
        last: errors.IpamError | None = None
        for pool, manifest in remaining:
            try:
                with transaction.atomic():
                    pool_sync.bring(
                        pool,
                        manifest,
                        author=context.author,
                        registered_manifest=registered_manifests[pool.pk],
                    )
            except errors.CIDROverlap as error:
                refused.append((pool, manifest))
                last = error
        if last is not None and len(refused) == len(remaining):
            raise last
        remaining = refused


def catch_up(context: SyncContext) -> None:
    """What the cluster did not tell: pools that were changed here, and orphans that nothing holds."""
    orphaned = pool_sync.orphaned(context.cluster)
    rows = pool_agreement.different(context.cluster)
    if not (orphaned or rows):
        return
    tidied = bool(orphaned) and _tidied(context, orphaned)
    if tidied or context.notes.get(_ROOM):
        again = [row for row in rows if row.problem_code in {"", errors.CIDROverlap.code}]
    else:
        again = [row for row in rows if not row.problem_code]
    for first in range(0, len(again), _BATCH):
        batch = again[first : first + _BATCH]
        if not _ingested_together(context, batch):
            for row in batch:
                _ingest_alone(context, row)


def _ingested_together(context: SyncContext, rows: Sequence[ObservedObject]) -> bool:
    if any(row.problem_code for row in rows):
        return False
    try:
        with context.holding():
            ingest(context, [(row, pool_sync.parse(row.manifest)) for row in rows])
    except (errors.InvalidInput, errors.Conflict, IntegrityError):
        return False  # a lost lease shows again, where each is taken alone
    return True


def _tidied(context: SyncContext, orphaned: Sequence[PoolCIDR]) -> bool:
    with context.holding():
        return pool_sync.tidy(orphaned, author=context.author) > 0


def _ingest_alone(context: SyncContext, row: ObservedObject) -> None:
    code = message = ""
    with context.holding():
        try:
            with transaction.atomic():
                ingest(context, [(row, pool_sync.parse(row.manifest))])
        except errors.IpamError as error:
            code, message = error.code, error.message
        except IntegrityError as error:
            code, message = database.constraint(error), str(error).splitlines()[0]
        if (code, message[:1000]) != (row.problem_code, row.problem):
            ObservedObject.objects.filter(pk=row.pk).update(
                problem_code=code[:63], problem=message[:1000]
            )
