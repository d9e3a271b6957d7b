"""Record blocks in use that no cluster shows, in recovery mode (pools/clusters/recovery_mode.py)."""

from __future__ import annotations

from pools.clusters import recovery_mode
from pools.core import errors
from pools.core.block_fields import BlockAnswer
from pools.core.holders import BlockDemand
from pools.models import Block
from pools.models.blocks import BlockState
from pools.platform import events
from pools.register.allocator import allocation


def hold(pool_id: int, demand: BlockDemand, *, author: events.Author) -> list[BlockAnswer]:
    """Record that the holder uses the block `demand.cidr`, although recovery mode stops allocations.

    A cooldown of another holder does not prevent it. Raises what `allocation.allocate` raises for
    one exact block, and Conflict if the register is not in recovery mode.
    """
    with events.recorded_by(author):
        if recovery_mode.current_recovery() is None:
            raise errors.Conflict(
                "The register is not in recovery mode: allocate the block instead."
            )
        recovery_mode.allow_recording()
        for block in Block.objects.filter(
            pool_id=pool_id, cidr=str(demand.cidr), state=BlockState.COOLING
        ):
            allocation.skip_cooldown(block.pk, author=author)
        result = allocation.allocate(pool_id, demand, author=author)
    return result.blocks if isinstance(result, allocation.Allocation) else []
