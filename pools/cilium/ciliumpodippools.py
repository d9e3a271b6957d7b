"""CiliumPodIPPools: the pools of pod CIDRs of a cluster, in both versions and all shapes.

Who is right where the register and an object differ:

- In an observed cluster, and in a managed one without the duty `pools`, the object. The register
  takes in every object and follows it: also what somebody changed in the register goes back.
- With the duty `pools`, the register, for the pools that were made or changed in it. A pool that was
  only ever taken in (`Pool.follows_cluster`) goes on following its object; it becomes the register's
  when somebody changes it, or takes it over (services/drift.py). Nothing of another field manager is
  forced: what is not ours to change is shown as a difference.
- Objects are made and changed, and never deleted. A pool that was deleted in the register while its
  object is there is shown (`pool_not_in_register`), because the register may be the one that forgot:
  after a restore, deleting what it does not know would take pools in use away.

The two versions of one CRD are views of one stored object, with one uid, so that the list of the
preferred version has all objects, and no API server has anything to convert. What can happen is that an
object was written in words which the served v2 does not take: a finding, with the manifest that mends it.
With the duty `conversion` v2alpha1 is listed too, and an object that v2 does not have (each version with
a store of its own, as spec 000 thinks) is created there; what is in v2alpha1 is never written.
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
from pools.clusters.reconcile.handler import Found, Handler, Pass, Seen, Write
from pools.core import errors
from pools.core.cilium import podippool
from pools.core.cilium.podippool import PodIPPool
from pools.core.kubernetes.resources import (
    CILIUM_POD_IP_POOL,
    CILIUM_POD_IP_POOL_V2ALPHA1,
    Resource,
)
from pools.models import ObservedObject, Pool, PoolCIDR
from pools.models.connections import Duty
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

    def absorb(self, pass_: Pass, seen: Sequence[Seen]) -> None:
        absorb(pass_, [(one.row, one.parsed) for one in seen])

    def forget(self, pass_: Pass, rows: Sequence[ObservedObject]) -> None:
        """Only of the object that a pool last agreed with: a later one of its name is another."""
        uids = {row.name: row.uid for row in rows}
        found = Pool.objects.filter(
            cluster=pass_.cluster, category=Category.POD, name__in=list(uids), orphaned_at=None
        )
        for pool in found:
            if not registers(pass_, pool) and pool.agreed.startswith(f"{uids[pool.name]} "):
                pool_sync.lose(pool, author=pass_.author)
                pass_.notes[_ROOM] = True

    def desired(self, pass_: Pass) -> Iterator[Write]:
        catch_up(pass_)
        notes: list[Found] = []
        pass_.notes[KIND] = notes
        shape = self._shape(pass_)
        if pass_.connection.does(Duty.POOLS):
            yield from pool_writes.writes(pass_, shape, notes)
        if pass_.connection.does(Duty.CONVERSION):
            yield from pool_writes.conversions(pass_, shape, notes)

    def _shape(self, pass_: Pass) -> Callable[[], pool_writes.Shaped]:
        """Asked of the cluster at most once in a pass."""
        asked: Callable[[], pool_writes.Shaped] = pass_.notes.setdefault(
            _SHAPE, functools.cache(lambda: pool_writes.shape_of(pass_))
        )
        return asked

    def findings(self, pass_: Pass) -> Iterator[Found]:
        pending_cidrs.settle(pass_.cluster, author=pass_.author, holding=pass_.holding)
        yield from pass_.notes.get(KIND, ())
        yield from pool_pending.findings(pass_)
        yield from pool_findings.orphans(pass_)
        yield from pool_findings.overlaps(pass_)
        yield from pool_findings.unmatched(pass_)
        yield from pool_shapes.unreadable(pass_, self._shape(pass_))


def registers(pass_: Pass, pool: Pool) -> bool:
    """Whether the register is right where the pool and its object differ."""
    own = not pool.follows_cluster and pool.orphaned_at is None
    return own and pass_.connection.does(Duty.POOLS)


# --- from the cluster into the register -----------------------------------------------------------


def absorb(pass_: Pass, found: Sequence[tuple[ObservedObject, PodIPPool]]) -> None:
    """Take in objects, in any order: one may have a CIDR that another has just lost."""
    known = {
        pool.name: pool
        for pool in Pool.objects.filter(
            cluster=pass_.cluster, name__in=[said.name for _, said in found]
        )
    }
    new: list[PodIPPool] = []
    changed: list[tuple[Pool, PodIPPool]] = []
    absorbed: list[int] = []
    for row, said in found:
        pool = known.get(said.name)
        if pool is None and pass_.connection.does(Duty.POOLS) and pool_writes.ours(row.manifest):
            continue  # it was deleted in the register, or the register forgot it
        if pool is not None and registers(pass_, pool):
            continue  # what is to be done is worked out in `desired`
        if pool is None:
            new.append(said)
        else:
            changed.append((pool, said))
        absorbed.append(row.pk)
    _bring(pass_, changed)
    pass_.notes[_ROOM] = pass_.notes.get(_ROOM, False) or bool(changed)
    pool_sync.take_in(pass_.cluster, new, author=pass_.author)
    pool_agreement.agree(absorbed)


def _bring(pass_: Pass, changed: Sequence[tuple[Pool, PodIPPool]]) -> None:
    """Again and again, as long as one of them makes room for another."""
    known = pool_sync.said([pool for pool, _ in changed])
    left = changed
    while left:
        refused: list[tuple[Pool, PodIPPool]] = []
        last: errors.IpamError | None = None
        for pool, said in left:
            try:
                with transaction.atomic():
                    pool_sync.bring(pool, said, author=pass_.author, known=known[pool.pk])
            except errors.CIDROverlap as error:
                refused.append((pool, said))
                last = error
        if last is not None and len(refused) == len(left):
            raise last
        left = refused


def catch_up(pass_: Pass) -> None:
    """What the cluster did not tell: pools that were changed here, and orphans that nothing holds."""
    orphaned = pool_sync.orphaned(pass_.cluster)
    rows = pool_agreement.different(pass_.cluster)
    if not (orphaned or rows):
        return
    tidied = bool(orphaned) and _tidied(pass_, orphaned)
    if tidied or pass_.notes.get(_ROOM):
        again = [row for row in rows if row.problem_code in {"", errors.CIDROverlap.code}]
    else:
        again = [row for row in rows if not row.problem_code]
    for first in range(0, len(again), _BATCH):
        batch = again[first : first + _BATCH]
        if not _absorbed_together(pass_, batch):
            for row in batch:
                _absorb_alone(pass_, row)


def _absorbed_together(pass_: Pass, rows: Sequence[ObservedObject]) -> bool:
    if any(row.problem_code for row in rows):
        return False
    try:
        with pass_.holding():
            absorb(pass_, [(row, pool_sync.parse(row.manifest)) for row in rows])
    except (errors.InvalidInput, errors.Conflict, IntegrityError):
        return False  # a lost lease shows again, where each is taken alone
    return True


def _tidied(pass_: Pass, orphaned: Sequence[PoolCIDR]) -> bool:
    with pass_.holding():
        return pool_sync.tidy(orphaned, author=pass_.author) > 0


def _absorb_alone(pass_: Pass, row: ObservedObject) -> None:
    code = message = ""
    with pass_.holding():
        try:
            with transaction.atomic():
                absorb(pass_, [(row, pool_sync.parse(row.manifest))])
        except errors.IpamError as error:
            code, message = error.code, error.message
        except IntegrityError as error:
            code, message = database.constraint(error), str(error).splitlines()[0]
        if (code, message[:1000]) != (row.problem_code, row.problem):
            ObservedObject.objects.filter(pk=row.pk).update(
                problem_code=code[:63], problem=message[:1000]
            )
