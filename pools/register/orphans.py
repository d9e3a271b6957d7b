"""CIDRs from which no new blocks are allocated: orphans, those that drain, and changes that the cluster has not applied yet.

An orphan is a CIDR that was removed from a cluster's pool while blocks of it are in use.

Cilium accepts such a removal: the blocks become orphans and stay with their nodes, and the same
pool gets them back when the CIDR is added again (operator/pkg/ipam/allocator/multipool). The
register keeps the row of the CIDR, so that no other pool of the address space can allocate the same
addresses. Every function that changes something runs under the pool's allocation lock.

The register does not write a list of CIDRs that another field manager owns. Therefore a CIDR that is
removed in the register while the object has it stays as a pending removal, and an added one is a pending
addition until the object has it. An object whose CIDRs cannot be read changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.db import connection
from django.db.models import Max, Q, QuerySet

from pools import models
from pools.core import addresses, blocks, errors
from pools.core.cilium import podippool
from pools.platform import database
from pools.register.allocator import window
from pools.sql import statements


def withhold_blocks(cidr: models.PoolCIDR) -> None:
    """Stop allocations from the CIDR; held and cooling blocks stay until they are released or expire."""
    models.FreeSpan.objects.filter(pool_cidr=cidr).delete()
    rows = blocks_of(cidr)
    rows.filter(state=models.BlockState.AVAILABLE).delete()
    rows.filter(withheld=False).update(withheld=True)


def blocks_of(cidr: models.PoolCIDR) -> QuerySet[models.Block]:
    """Return the blocks of a CIDR that have a row."""
    grid = window.layout(cidr)
    return models.Block.objects.filter(
        space=cidr.space_id,
        cidr__gte=str(grid.block_at(0)),
        cidr__lte=str(grid.block_at(grid.count - 1)),
    )


def mark_orphaned(cidr: models.PoolCIDR) -> None:
    """Mark the CIDR as an orphan."""
    models.PoolCIDR.objects.filter(pk=cidr.pk, orphaned_at=None).update(
        orphaned_at=models.Now(), pending=""
    )
    cidr.refresh_from_db(fields=["orphaned_at", "pending"])


def suspend_allocation(cidr: models.PoolCIDR, pending: models.Pending) -> None:
    """Stop allocations from the CIDR until the cluster has applied the pending change."""
    withhold_blocks(cidr)
    models.PoolCIDR.objects.filter(pk=cidr.pk).update(orphaned_at=None, pending=pending)
    cidr.orphaned_at, cidr.pending = None, pending


def resume_allocation(cidr: models.PoolCIDR) -> None:
    """Resume allocations from a CIDR that pool and cluster both have; an open CIDR is not changed."""
    if not cidr.closed:
        return
    models.PoolCIDR.objects.filter(pk=cidr.pk).update(orphaned_at=None, pending="")
    cidr.orphaned_at, cidr.pending = None, ""
    end_withholding(cidr)


def end_withholding(cidr: models.PoolCIDR) -> None:
    """Let all blocks of the CIDR be allocated, but for those in its reserved ranges."""
    grid = window.layout(cidr)
    all_blocks = blocks.Span(0, grid.count - 1)
    window.end_withholding(
        cidr, all_blocks, still_withheld=grid.withheld(window.reserved_ranges(cidr))
    )


def replace_lost_cidrs(
    pool: models.Pool, lost: Iterable[models.PoolCIDR], new_cidrs: Sequence[addresses.Network]
) -> list[models.PoolCIDR]:
    """Replace CIDRs that the pool has lost by the new CIDRs that overlap them.

    Blocks do not change. The new CIDRs are created as orphans, which the caller resumes. The
    remainders of the lost CIDRs are created as orphans too and returned; the caller keeps those with
    blocks in use.
    """
    replaced = [cidr for cidr in lost if any(cidr.cidr.overlaps(network) for network in new_cidrs)]
    replacements = [
        network for network in new_cidrs if any(network.overlaps(cidr.cidr) for cidr in replaced)
    ]
    if not replaced:
        return []
    delete_keeping_blocks(replaced)
    for network in replacements:
        _create_orphan(pool, network, next(row for row in replaced if row.cidr.overlaps(network)))
    return [
        _create_orphan(pool, network, cidr)
        for cidr in replaced
        for network in remainder(cidr.cidr, replacements)
    ]


def delete_keeping_blocks(cidrs: Sequence[models.PoolCIDR]) -> None:
    """Delete CIDRs whose held and cooling blocks lie in others that the caller creates, in the same transaction."""
    for cidr in cidrs:
        withhold_blocks(cidr)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.regrouping', 'on', true)")
        models.PoolCIDR.objects.filter(pk__in=[cidr.pk for cidr in cidrs]).delete()
        cursor.execute("SELECT set_config('ipam.regrouping', '', true)")


def _create_orphan(
    pool: models.Pool, cidr: addresses.Network, lost: models.PoolCIDR
) -> models.PoolCIDR:
    """Create the orphan of a part of a lost CIDR, whose tags, owner and custom fields it gets."""
    last = pool.cidrs.aggregate(last=Max("position"))["last"]
    row = models.PoolCIDR(
        pool=pool,
        space_id=pool.space_id,
        cidr=cidr,
        position=0 if last is None else last + 1,
        orphaned_at=database.now(),
        **{name: getattr(lost, name) for name in models.ATTRIBUTES},
    )
    database.save(row)
    withhold_blocks(row)
    return row


def remainder(
    cidr: addresses.Network, holes: Sequence[addresses.Network]
) -> Iterator[addresses.Network]:
    """Return the parts of a CIDR outside the holes; of two CIDRs, one contains the other or they are disjoint."""
    inside = next((hole for hole in holes if hole.overlaps(cidr)), None)
    if inside is None:
        yield cidr
    elif inside.prefixlen > cidr.prefixlen:
        for part in cidr.subnets():
            yield from remainder(part, holes)


MOST = 1000  # CIDRs with many reserved addresses that are checked


def reserved_ranges(cidr: models.PoolCIDR) -> list[addresses.AddressRange]:
    return [addresses.AddressRange(row.first, row.last) for row in cidr.reserved_ranges.all()]


def is_reserved(cidr: models.PoolCIDR) -> bool:
    """Return True if reserved ranges cover the whole CIDR."""
    return not window.layout(cidr).allocatable(reserved_ranges(cidr))


def draining_cidrs() -> list[models.PoolCIDR]:
    """Return the CIDRs that are reserved as a whole, in the order of their pools."""
    return [cidr for cidr in _candidates(None)[:MOST] if is_reserved(cidr)]


def draining_pools(pool_ids: Iterable[int]) -> set[int]:
    """Return the pools that have a CIDR which is reserved as a whole."""
    return {cidr.pool_id for cidr in _candidates(list(pool_ids)) if is_reserved(cidr)}


def _candidates(pool_ids: list[int] | None) -> QuerySet[models.PoolCIDR]:
    ids = [pk for (pk,) in database.rows(_CANDIDATES, {"pools": pool_ids}, prepare=False)]
    rows = models.PoolCIDR.objects.filter(pk__in=ids).order_by("pool_id", "position", "id")
    return rows.select_related("pool__cluster").prefetch_related("reserved_ranges")


# Most pools reserve a few addresses of each CIDR.
_CANDIDATES = statements.read("pools/cidrs_with_many_reserved")


# --- comparison with the objects of clusters ------------------------------------------------------


def is_written_to_cluster(pool: models.Pool) -> bool:
    """Return True if the pool's object is written from the register."""
    if pool.category != models.Category.POD:
        return False
    connection = models.Connection.objects.filter(cluster=pool.cluster_id).first()
    return connection is not None and connection.manages(models.ManagedResource.POOLS)


def cluster_has_cidr(pool: models.Pool, cidr: addresses.Network) -> bool | None:
    """Return True if the cluster's object of this pool has the CIDR; None without an object or if unknown."""
    if pool.category != models.Category.POD:
        return None
    rows = models.ObservedObject.objects.filter(
        cluster=pool.cluster_id, kind=podippool.KIND, name=pool.name
    )
    cidr_lists = [listed for listed in rows.values_list("cidrs", flat=True) if listed is not None]
    return any(cidr in listed for listed in cidr_lists) if cidr_lists else None


def refuse_observed_elsewhere(pool: models.Pool, cidr: addresses.Network) -> None:
    """Raise CIDROverlap if another pool's object in the cluster has the CIDR, or a part of it."""
    if pool.space.name:
        return
    ((name, other_cidr),) = database.rows(
        _FIND_OBSERVED_ELSEWHERE, [pool.cluster_id, pool.name, str(cidr)]
    )
    if name is not None:
        raise errors.CIDROverlap(
            f"{cidr} overlaps {other_cidr}, which the pool {name} has in the cluster {pool.cluster}."
        )


_FIND_OBSERVED_ELSEWHERE = "SELECT name, cidr::text FROM ipam_observed_elsewhere(%s, %s, %s::cidr)"


class CIDRChange(NamedTuple):
    """A CIDR whose pending state differs from what the cluster's object requires."""

    id: int
    pending: str  # the pending state that it should have; "" for none
    gone: bool  # removed in the register, and the object does not have it any more


# A pool whose object cannot be read (cidrs IS NULL) is left unchanged.
_FIND_CHANGES = statements.read("pools/pending_cidr_changes")


def pending_changes(cluster: models.Cluster) -> list[CIDRChange]:
    """Return the CIDRs of pod pools whose pending state differs from the objects as last observed."""
    connection = models.Connection.objects.filter(cluster=cluster).first()
    written = connection is not None and connection.manages(models.ManagedResource.POOLS)
    values = {"cluster": cluster.pk, "kind": podippool.KIND, "written": written}
    return [CIDRChange(*row) for row in database.rows(_FIND_CHANGES, values)]


def pending_cidrs(cluster: models.Cluster) -> list[models.PoolCIDR]:
    """Return the CIDRs of a cluster's pod pools with a change that the cluster has not applied yet."""
    rows = models.PoolCIDR.objects.filter(~Q(pending=""), pool__cluster=cluster)
    return list(rows.select_related("pool__cluster").order_by("pool__name", "position"))
