"""What people do in a recovery (pools/clusters/recovery_mode.py): record blocks that no cluster shows."""

from __future__ import annotations

from pools.clusters import recovery_mode
from pools.core import errors
from pools.core.block_fields import BlockAnswer
from pools.core.demand import BlockDemand
from pools.models import Block
from pools.models.blocks import BlockState
from pools.platform import events
from pools.register.allocator import allocation


def hold(pool_id: int, demand: BlockDemand, *, author: events.Author) -> list[BlockAnswer]:
    """Record that the block `wanted.cidr` is in use by its holder, though nothing is allocated now.

    In use is in use, also in the midst of another's cooldown. Raises what `allocation.allocate` raises
    for one exact block, and Conflict when the register does not recover.
    """
    with events.recorded(author):
        if recovery_mode.current_recovery() is None:
            raise errors.Conflict("The register is not recovering: allocate the block.")
        recovery_mode.allow_recording()
        for block in Block.objects.filter(
            pool_id=pool_id, cidr=str(demand.cidr), state=BlockState.COOLING
        ):
            allocation.skip_cooldown(block.pk, author=author)
        done = allocation.allocate(pool_id, demand, author=author)
    return done.blocks if isinstance(done, allocation.Allocation) else []
