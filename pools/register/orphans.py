"""CIDRs of which nothing new is handed out: orphans, and changes that the cluster has not followed.

An orphan is a CIDR that a cluster's pool lost while blocks of it are in use.

Cilium accepts such a removal: the blocks become orphans and stay with their nodes, and the same
pool gets them back when it regains the CIDR (operator/pkg/ipam/allocator/multipool). Here the row
of the CIDR stays too, so that no other pool of the address space can hand the same addresses out.
Everything runs under the pool's allocation lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.db import connection
from django.db.models import Max

from pools.core import addresses, blocks
from pools.models import Block, FreeSpan, Pool, PoolCIDR
from pools.models.blocks import BlockState
from pools.models.fields import Now
from pools.models.pools import Pending
from pools.platform import database
from pools.register.allocator import window


def withhold_blocks(cidr: PoolCIDR) -> None:
    """Nothing of the CIDR is handed out any more; what is held or cooling stays until its end."""
    FreeSpan.objects.filter(pool_cidr=cidr).delete()
    grid = window.layout(cidr)
    rows = Block.objects.filter(
        space=cidr.space_id,
        cidr__gte=str(grid.block_at(0)),
        cidr__lte=str(grid.block_at(grid.count - 1)),
    )
    rows.filter(state=BlockState.AVAILABLE).delete()
    rows.filter(withheld=False).update(withheld=True)


def mark_orphaned(cidr: PoolCIDR) -> None:
    """The CIDR is an orphan from now on."""
    PoolCIDR.objects.filter(pk=cidr.pk, orphaned_at=None).update(orphaned_at=Now(), pending="")
    cidr.refresh_from_db(fields=["orphaned_at", "pending"])


def suspend_allocation(cidr: PoolCIDR, pending: Pending) -> None:
    """Hand out nothing of the CIDR until the cluster has followed the change."""
    withhold_blocks(cidr)
    PoolCIDR.objects.filter(pk=cidr.pk).update(orphaned_at=None, pending=pending)
    cidr.orphaned_at, cidr.pending = None, pending


def resume_allocation(cidr: PoolCIDR) -> None:
    """The pool and its cluster have the CIDR: hand it out again. Does nothing to an open one."""
    if not cidr.closed:
        return
    PoolCIDR.objects.filter(pk=cidr.pk).update(orphaned_at=None, pending="")
    cidr.orphaned_at, cidr.pending = None, ""
    grid = window.layout(cidr)
    whole = blocks.Span(0, grid.count - 1)
    window.end_withholding(cidr, whole, still_withheld=grid.withheld(window.reserved_ranges(cidr)))


def replace_lost_cidrs(
    pool: Pool, lost: Iterable[PoolCIDR], new_cidrs: Sequence[addresses.Network]
) -> list[PoolCIDR]:
    """Let CIDRs that the pool has lost make room for those that overlap them.

    Blocks stay as they are. In the place of the lost CIDRs come the wanted ones, as orphans that the
    pool adopts, and what is left of the lost ones: these are answered, and kept while in use.
    """
    going = [cidr for cidr in lost if any(cidr.cidr.overlaps(network) for network in new_cidrs)]
    coming = [
        network for network in new_cidrs if any(network.overlaps(cidr.cidr) for cidr in going)
    ]
    if not going:
        return []
    for cidr in going:
        withhold_blocks(cidr)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.regrouping', 'on', true)")
        PoolCIDR.objects.filter(pk__in=[cidr.pk for cidr in going]).delete()
        cursor.execute("SELECT set_config('ipam.regrouping', '', true)")
    for network in coming:
        _create_orphan(pool, network)
    return [
        _create_orphan(pool, network) for cidr in going for network in _remainder(cidr.cidr, coming)
    ]


def _create_orphan(pool: Pool, cidr: addresses.Network) -> PoolCIDR:
    last = pool.cidrs.aggregate(last=Max("position"))["last"]
    row = PoolCIDR(
        pool=pool,
        space_id=pool.space_id,
        cidr=cidr,
        position=0 if last is None else last + 1,
        orphaned_at=database.now(),
    )
    database.save(row)
    withhold_blocks(row)
    return row


def _remainder(
    cidr: addresses.Network, holes: Sequence[addresses.Network]
) -> Iterator[addresses.Network]:
    """The parts of a CIDR that are in none of these; two CIDRs are one inside the other, or apart."""
    inside = next((hole for hole in holes if hole.overlaps(cidr)), None)
    if inside is None:
        yield cidr
    elif inside.prefixlen > cidr.prefixlen:
        for part in cidr.subnets():
            yield from _remainder(part, holes)
