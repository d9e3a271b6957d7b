"""CIDRs of which nothing new is handed out: orphans, and changes that the cluster has not followed.

An orphan is a CIDR that a cluster's pool lost while blocks of it are in use.

Cilium accepts such a removal: the blocks become orphans and stay with their nodes, and the same
pool gets them back when it regains the CIDR (operator/pkg/ipam/allocator/multipool). Here the row
of the CIDR stays too, so that no other pool of the address space can hand the same addresses out.
Everything runs under the pool's allocation lock.
"""

from __future__ import annotations

from pools import window
from pools.core import blocks
from pools.models import Block, FreeSpan, PoolCIDR
from pools.models.blocks import State
from pools.models.fields import Now
from pools.models.pools import Pending


def withhold(cidr: PoolCIDR) -> None:
    """Nothing of the CIDR is handed out any more; what is held or cooling stays until its end."""
    FreeSpan.objects.filter(pool_cidr=cidr).delete()
    grid = window.layout(cidr)
    rows = Block.objects.filter(
        space=cidr.space_id,
        cidr__gte=str(grid.block_at(0)),
        cidr__lte=str(grid.block_at(grid.count - 1)),
    )
    rows.filter(state=State.AVAILABLE).delete()
    rows.filter(withheld=False).update(withheld=True)


def mark(cidr: PoolCIDR) -> None:
    """The CIDR is an orphan from now on."""
    PoolCIDR.objects.filter(pk=cidr.pk, orphaned_at=None).update(orphaned_at=Now(), pending="")
    cidr.refresh_from_db(fields=["orphaned_at", "pending"])


def suspend(cidr: PoolCIDR, pending: Pending) -> None:
    """Hand out nothing of the CIDR until the cluster has followed the change."""
    withhold(cidr)
    PoolCIDR.objects.filter(pk=cidr.pk).update(orphaned_at=None, pending=pending)
    cidr.orphaned_at, cidr.pending = None, pending


def adopt(cidr: PoolCIDR) -> None:
    """The pool and its cluster have the CIDR: hand it out again. Does nothing to an open one."""
    if not cidr.closed:
        return
    PoolCIDR.objects.filter(pk=cidr.pk).update(orphaned_at=None, pending="")
    cidr.orphaned_at, cidr.pending = None, ""
    grid = window.layout(cidr)
    whole = blocks.Span(0, grid.count - 1)
    window.give_back(cidr, whole, still_withheld=grid.withheld(window.ranges(cidr)))
