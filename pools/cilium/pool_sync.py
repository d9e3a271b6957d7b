"""Import of CiliumPodIPPools into the register, for pools that follow their cluster, and decisions on their drift."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db.models import Exists, F, OuterRef

from pools.clusters import drift
from pools.core import addresses, errors
from pools.core.cilium import conversion, podippool
from pools.core.cilium.podippool import Family, PodIPPool
from pools.core.observed.uses import AddressUse, ObservedUses, Role
from pools.models import (
    AddressSpace,
    Category,
    Cluster,
    Drift,
    FreeSpan,
    ManagedResource,
    Now,
    ObservedCIDR,
    ObservedObject,
    Pool,
    PoolCIDR,
    ReservedRange,
)
from pools.models.pools import DEFAULT_COOLDOWN
from pools.observed import cidrs as observed_cidrs
from pools.platform import events
from pools.platform.outbound import faults
from pools.register import manifests, pool_cidrs, pools
from pools.register.allocator import window


def parse(manifest: Mapping[str, Any]) -> PodIPPool:
    """Return the pool of an observed object. Raises InvalidInput."""
    conversion.check_written_shape(manifest)
    return podippool.parse_document(manifest, strict=False)[0]


def normalize(manifest: PodIPPool) -> PodIPPool:
    """Return a canonical pool: two objects with the same content give equal values."""
    annotations = {
        key: text for key, text in manifest.annotations.items() if key != conversion.LAST_APPLIED
    }
    families = {
        number: dataclasses.replace(
            family,
            cidrs=tuple(
                dataclasses.replace(entry, reserved=tuple(sorted(entry.reserved)))
                for entry in family.cidrs
            ),
        )
        for number, family in sorted(manifest.families.items())
        if family.cidrs
    }
    return dataclasses.replace(
        manifest, families=families, annotations=annotations, api_version=podippool.V2, source=""
    )


def registered_manifests(pool_rows: Sequence[Pool]) -> dict[int, PodIPPool]:
    """Return the canonical manifests of registered pools by their id, in two queries."""
    families = pool_cidrs.families_by_pool(pool_rows)
    return {
        pool.pk: normalize(manifests.build_manifest(pool, families[pool.pk])) for pool in pool_rows
    }


def import_pools(
    cluster: Cluster,
    pool_manifests: Sequence[PodIPPool],
    *,
    author: events.Author,
    follows: bool = True,
) -> None:
    """Create pools from objects of a cluster whose names are unused; many in a few statements.

    For one object, raises CIDROverlap with the name of the other pool. For several, raises
    IntegrityError, and the caller retries with fewer objects.
    """
    if len(pool_manifests) == 1:
        manifest = normalize(pool_manifests[0])
        manifests.create_pool(manifest, cluster, author=author, follows=follows)
    elif pool_manifests:
        with events.recorded_by(author):
            _create_many(
                cluster, [normalize(manifest) for manifest in pool_manifests], follows=follows
            )


def _create_many(cluster: Cluster, pool_manifests: Sequence[PodIPPool], *, follows: bool) -> None:
    space = AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    new_pools = Pool.objects.bulk_create(
        Pool(
            cluster=cluster,
            space=space,
            name=manifest.name,
            category=Category.POD,
            mask_size_v4=manifest.families[4].mask_size if 4 in manifest.families else None,
            mask_size_v6=manifest.families[6].mask_size if 6 in manifest.families else None,
            cooldown_seconds=DEFAULT_COOLDOWN[Category.POD],
            allow_first_ip=manifest.allow_first_ip,
            allow_last_ip=manifest.allow_last_ip,
            annotations=manifest.annotations,
            labels=manifest.labels,
            pod_selector=manifest.pod_selector,
            namespace_selector=manifest.namespace_selector,
            follows_cluster=follows,
        )
        for manifest in pool_manifests
    )
    entries = [
        (pool, position, entry)
        for pool, manifest in zip(new_pools, pool_manifests, strict=True)
        for position, entry in enumerate(
            entry for _, family in sorted(manifest.families.items()) for entry in family.cidrs
        )
    ]
    cidrs = PoolCIDR.objects.bulk_create(
        PoolCIDR(pool=pool, space=space, cidr=entry.cidr, position=position)
        for pool, position, entry in entries
    )
    spans, ranges = [], []
    for cidr, (pool, _, entry) in zip(cidrs, entries, strict=True):
        spans += [
            FreeSpan(pool_cidr=cidr, first=Decimal(span.first), last=Decimal(span.last))
            for span in window.layout(cidr).allocatable(entry.reserved)
        ]
        ranges += [
            ReservedRange(pool=pool, pool_cidr=cidr, first=span.first, last=span.last)
            for span in entry.reserved
        ]
    FreeSpan.objects.bulk_create(spans)
    ReservedRange.objects.bulk_create(ranges)


def update_pool(
    pool: Pool,
    manifest: PodIPPool,
    *,
    author: events.Author,
    registered_manifest: PodIPPool | None = None,
) -> bool:
    """Update a pool from its object; return False if they are equal.

    A CIDR that the object no longer has is removed, or stays as an orphan while blocks of it are in use.
    An orphan that the object has again is adopted. `registered_manifest` is the result of
    `registered_manifests` for the pool, if the caller has it. Raises AlreadyExists (a pool of another
    category has the name), ImmutableInUse and CIDROverlap; then nothing is changed.
    """
    if pool.category != Category.POD:
        message = f"The cluster has a pool of this name in another category ({pool.category})."
        raise errors.AlreadyExists(message)
    manifest, registered_manifest = (
        normalize(manifest),
        registered_manifest or registered_manifests([pool])[pool.pk],
    )
    if pool.orphaned_at is None and registered_manifest == manifest:
        return False
    if (pool.allow_first_ip, pool.allow_last_ip) != (
        manifest.allow_first_ip,
        manifest.allow_last_ip,
    ):
        raise errors.ImmutableInUse("allowFirstIP and allowLastIP of a pool cannot be changed.")
    with events.recorded_by(author):
        if registered_manifest.families != manifest.families:
            families = _complete_families(pool, manifest.families)
            change = pools.PoolChange(families=families, keep_orphans=True)
            pools.change(pool.pk, change, author=author)
        Pool.objects.filter(pk=pool.pk).update(
            annotations=manifest.annotations,
            labels=manifest.labels,
            pod_selector=manifest.pod_selector,
            namespace_selector=manifest.namespace_selector,
            orphaned_at=None,
            follows_cluster=author.source == "cluster" or pool.follows_cluster,
            version=F("version") + 1,
        )
    return True


def _complete_families(pool: Pool, families: Mapping[int, Family]) -> dict[int, Family]:
    """Return all families of the pool; a family that the object does not have has no CIDRs."""
    all_families = dict(families)
    for number in (4, 6):
        mask_size = pool.mask_size(number)
        if mask_size is not None:
            all_families.setdefault(number, Family((), mask_size))
    return all_families


def remove_pool(pool: Pool, *, author: events.Author) -> None:
    """Delete a pool that the cluster no longer has; while it is in use, it stays as an orphan."""
    with events.recorded_by(author):
        empty_families = {
            n: Family((), size) for n in (4, 6) if (size := pool.mask_size(n)) is not None
        }
        pools.change(
            pool.pk, pools.PoolChange(families=empty_families, keep_orphans=True), author=author
        )
        if PoolCIDR.objects.filter(pool=pool).exists():
            Pool.objects.filter(pk=pool.pk).update(orphaned_at=Now(), agreed="")
        else:
            pools.delete(pool.pk, author=author)


def orphaned_cidrs(cluster: Cluster) -> list[PoolCIDR]:
    """Return the orphaned CIDRs of the pod pools of a cluster."""
    rows = PoolCIDR.objects.filter(pool__cluster=cluster, pool__category=Category.POD)
    return list(rows.exclude(orphaned_at=None).select_related("pool__cluster"))


def remove_unused_orphans(orphans: Iterable[PoolCIDR], *, author: events.Author) -> int:
    """Remove the orphans without blocks in use; return the number of removed CIDRs."""
    unused_cidrs = [cidr for cidr in orphans if not pool_cidrs.blocks_in_use(cidr).exists()]
    for cidr in unused_cidrs:
        pools.remove_cidr(cidr.pk, author=author)
    cidrs = PoolCIDR.objects.filter(pool=OuterRef("pk"))
    empty = Pool.objects.filter(pk__in={cidr.pool_id for cidr in unused_cidrs}).exclude(
        orphaned_at=None
    )
    for pool in empty.filter(~Exists(cidrs)):
        pools.delete(pool.pk, author=author)
    return len(unused_cidrs)


def store_unregistered_cidrs(cluster: Cluster) -> None:
    """Store the CIDRs that only the objects of a cluster have as observed CIDRs, so that they are found."""
    registered: dict[str, list[addresses.Network]] = {}
    rows = PoolCIDR.objects.filter(pool__cluster=cluster, pool__category=Category.POD)
    for name, cidr in rows.values_list("pool__name", "cidr"):
        registered.setdefault(name, []).append(cidr)
    objects = ObservedObject.objects.filter(cluster=cluster, kind=podippool.KIND, missed_at=None)
    uses = [
        (
            row,
            ObservedUses(
                tuple(
                    AddressUse(Role.PODS, cidr, "not in the register")
                    for cidr in row.cidrs or ()
                    if not any(
                        cidr.version == known.version and cidr.subnet_of(known)
                        for known in registered.get(row.name, ())
                    )
                )
            ),
        )
        for row in objects.defer("manifest")
    ]
    stored = ObservedCIDR.objects.filter(space__cluster=cluster, kind=podippool.KIND)
    if any(observed.uses for _, observed in uses) or stored.exists():
        observed_cidrs.store(cluster, podippool.KIND, uses)


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
    manifest = parse(observed_object.manifest)
    pool = Pool.objects.filter(cluster=cluster_object.cluster, name=cluster_object.name).first()
    if pool is None:
        import_pools(cluster_object.cluster, [manifest], author=author, follows=False)
    else:
        update_pool(pool, manifest, author=author)
    return Pool.objects.values_list("pk", flat=True).get(
        cluster=cluster_object.cluster, name=cluster_object.name
    )


DRIFT_RESOLVER = drift.DriftResolver(
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
