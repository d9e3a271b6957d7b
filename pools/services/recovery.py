"""What people do in a recovery (pools/recovering.py): record blocks that no cluster shows."""

from __future__ import annotations

from pools import allocation, events, recovering
from pools.core import errors
from pools.core.block_answer import BlockAnswer
from pools.core.demand import Wanted
from pools.models import Block
from pools.models.blocks import State


def hold(pool_id: int, wanted: Wanted, *, by: events.Author) -> list[BlockAnswer]:
    """Record that the block `wanted.cidr` is in use by its holder, though nothing is allocated now.

    In use is in use, also in the midst of another's cooldown. Raises what `allocation.allocate` raises
    for one exact block, and Conflict when the register does not recover.
    """
    with events.recorded(by):
        if recovering.current() is None:
            raise errors.Conflict("The register is not recovering: allocate the block.")
        recovering.recording()
        for block in Block.objects.filter(
            pool_id=pool_id, cidr=str(wanted.cidr), state=State.COOLING
        ):
            allocation.skip_cooldown(block.pk, by=by)
        done = allocation.allocate(pool_id, wanted, by=by)
    return done.blocks if isinstance(done, allocation.Allocation) else []
