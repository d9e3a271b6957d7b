"""How differences of CiliumPodIPPools are settled, and which of them wait for their owners."""

from __future__ import annotations

from collections.abc import Iterable

from pools.cilium import pool_sync
from pools.clusters import drift
from pools.core.cilium import podippool
from pools.models import Drift, ObservedObject, Pool
from pools.models.connections import Duty
from pools.models.pools import Category
from pools.platform import events
from pools.platform.outbound import faults


def _keep(of: drift.Object) -> int:
    found = Pool.objects.filter(cluster=of.cluster, name=of.name, category=Category.POD)
    return found.update(follows_cluster=False, agreed="")


def _adopt(of: drift.Object, seen: ObservedObject, author: events.Author) -> int:
    """A CIDR in use that the object has not stays as an orphan.

    Raises those of following.bring: AlreadyExists, ImmutableInUse, CIDROverlap.
    """
    said = pool_sync.parse(seen.manifest)
    pool = Pool.objects.filter(cluster=of.cluster, name=of.name).first()
    if pool is None:
        pool_sync.take_in(of.cluster, [said], author=author, follows=False)
    else:
        pool_sync.bring(pool, said, author=author)
    return Pool.objects.values_list("pk", flat=True).get(cluster=of.cluster, name=of.name)


SETTLER = drift.Settler(
    podippool.KIND, Duty.POOLS, _keep, _adopt, ("pools.add_pool", "pools.change_pool")
)


def waiting_of_pools(pools: Iterable[Pool]) -> dict[int, list[Drift]]:
    """The fields of pools' objects that wait because other managers own them, by the pool's id."""
    by_name = {
        (pool.cluster_id, pool.name): pool.pk for pool in pools if pool.category == Category.POD
    }
    if not by_name:
        return {}
    rows = Drift.objects.filter(
        kind=podippool.KIND,
        conflict_code=faults.FieldConflict.code,
        ignored_at=None,
        cluster__in={cluster_id for cluster_id, _ in by_name},
        name__in={name for _, name in by_name},
    )
    found: dict[int, list[Drift]] = {}
    for row in rows.order_by("path"):
        pool_id = by_name.get((row.cluster_id, row.name))
        if pool_id is not None:
            found.setdefault(pool_id, []).append(row)
    return found


def waiting_of_pool(pool: Pool) -> list[Drift]:
    """The same of one pool, in order of their paths."""
    return waiting_of_pools([pool]).get(pool.pk, [])
