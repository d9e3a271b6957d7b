"""Decisions on the drift of CiliumPodIPPools, and the conflicts with other field managers."""

from __future__ import annotations

from collections.abc import Iterable

from pools.cilium import pool_sync
from pools.clusters import drift
from pools.core.cilium import podippool
from pools.models import Drift, ObservedObject, Pool
from pools.models.connections import ManagedResource
from pools.models.pools import Category
from pools.platform import events
from pools.platform.outbound import faults


def _stop_following(cluster_object: drift.ClusterObject) -> int:
    pools = Pool.objects.filter(
        cluster=cluster_object.cluster, name=cluster_object.name, category=Category.POD
    )
    return pools.update(follows_cluster=False, agreed="")


def _adopt(
    cluster_object: drift.ClusterObject, observed_object: ObservedObject, author: events.Author
) -> int:
    """Update the pool from its object; return the id of the pool.

    A CIDR in use that the object does not have stays as an orphan. Raises the errors of
    pool_sync.update_pool: AlreadyExists, ImmutableInUse, CIDROverlap.
    """
    manifest = pool_sync.parse(observed_object.manifest)
    pool = Pool.objects.filter(cluster=cluster_object.cluster, name=cluster_object.name).first()
    if pool is None:
        pool_sync.import_pools(cluster_object.cluster, [manifest], author=author, follows=False)
    else:
        pool_sync.update_pool(pool, manifest, author=author)
    return Pool.objects.values_list("pk", flat=True).get(
        cluster=cluster_object.cluster, name=cluster_object.name
    )


RESOLVER = drift.DriftResolver(
    podippool.KIND,
    ManagedResource.POOLS,
    _stop_following,
    _adopt,
    ("pools.add_pool", "pools.change_pool"),
)


def conflicts_of_pools(pools: Iterable[Pool]) -> dict[int, list[Drift]]:
    """Return the drift of pools that is not written because other managers own the fields, by pool id."""
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
    rows_by_pool: dict[int, list[Drift]] = {}
    for row in rows.order_by("path"):
        pool_id = by_name.get((row.cluster_id, row.name))
        if pool_id is not None:
            rows_by_pool.setdefault(pool_id, []).append(row)
    return rows_by_pool


def conflicts_of_pool(pool: Pool) -> list[Drift]:
    """Return the conflicts of one pool, by path."""
    return conflicts_of_pools([pool]).get(pool.pk, [])
