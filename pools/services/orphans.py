"""CIDRs that a cluster's pool lost while blocks of them are in use.

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
    PoolCIDR.objects.filter(pk=cidr.pk, orphaned_at=None).update(orphaned_at=Now())
    cidr.refresh_from_db(fields=["orphaned_at"])


def adopt(cidr: PoolCIDR) -> None:
    """The pool has its CIDR again; nothing is done to one that is no orphan."""
    if cidr.orphaned_at is None:
        return
    PoolCIDR.objects.filter(pk=cidr.pk).update(orphaned_at=None)
    cidr.orphaned_at = None
    grid = window.layout(cidr)
    whole = blocks.Span(0, grid.count - 1)
    window.give_back(cidr, whole, still_withheld=grid.withheld(window.ranges(cidr)))
