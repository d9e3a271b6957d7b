"""Check the mark `withheld` of blocks: reserved blocks have it, and no other block has it."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from pools.core import blocks
from pools.core.blocks import Span
from pools.core.index_set import IndexSet
from pools.models import PoolCIDR
from pools.platform import events
from pools.platform.checks import checks, repairs
from pools.register.allocator import window
from pools.sql import statements

Row = tuple[int, str, str]  # id, CIDR, state


def _blocked_spans(cidr: PoolCIDR) -> list[Span]:
    """Return the blocks of a CIDR that must not be allocated."""
    grid = window.layout(cidr)
    allocatable = [] if cidr.closed else grid.allocatable(window.reserved_ranges(cidr))
    return blocks.subtract([Span(0, grid.count - 1)], allocatable)


def _wrongly_unmarked(cidr: PoolCIDR, blocked: list[Span]) -> Iterator[Row]:
    """Yield blocks that could be allocated, now or after their release, although they must not be."""
    grid = window.layout(cidr)
    for span in blocked:
        first, last = str(grid.block_at(span.first)), str(grid.block_at(span.last))
        values = {"space": cidr.space_id, "first": first, "last": last}
        yield from checks.rows(_UNMARKED, values)


_UNMARKED = statements.read("pools/check_unmarked_blocks")


def _wrongly_withheld(pool_id: int, cidrs: dict[PoolCIDR, IndexSet]) -> Iterator[Row]:
    """Yield blocks that would be lost with their release, although nothing reserves them."""
    for pk, text, state in checks.rows(_MARKED, [pool_id]):
        network = ip_network(text)
        for cidr, blocked in cidrs.items():
            grid = window.layout(cidr)
            is_block = network.version == cidr.cidr.version and network.prefixlen == grid.mask_size
            if is_block and network.network_address in cidr.cidr:
                index = grid.index_of(network)
                if not blocked.contains_span(Span(index, index)):
                    yield pk, text, state


_MARKED = """
    SELECT id, cidr::text, state FROM pools_block
    WHERE pool_id = %s AND state IN ('held', 'cooling') AND withheld
"""


def _find_violations(pool_id: int) -> Iterator[checks.Violation]:
    blocked_spans = {cidr: _blocked_spans(cidr) for cidr in checks.cidrs(pool_id)}
    for cidr, blocked in blocked_spans.items():
        for _, text, state in _wrongly_unmarked(cidr, blocked):
            subject = f"Block {text} of pool {cidr.pool} ({state})"
            if state == "available":
                message = f"{subject} can be allocated although it is reserved"
            else:
                message = f"{subject} could be allocated after its release although it is reserved"
            yield checks.Violation(message, pool_id)
    sets = {cidr: IndexSet(blocked) for cidr, blocked in blocked_spans.items()}
    for _, text, state in _wrongly_withheld(pool_id, sets):
        yield checks.Violation(
            f"Block {text} ({state}) is withheld although nothing reserves it: it would be lost with its"
            " release",
            pool_id,
        )


def _repair_marks(pool_id: int, _by: events.Author) -> int:
    """Delete rows of the window and correct the marks of held and cooling blocks; holders do not change."""
    window.lock(pool_id)
    blocked_spans = {cidr: _blocked_spans(cidr) for cidr in checks.cidrs(pool_id)}
    unmarked_rows = [
        row for cidr, blocked in blocked_spans.items() for row in _wrongly_unmarked(cidr, blocked)
    ]
    marked_rows = list(
        _wrongly_withheld(
            pool_id, {cidr: IndexSet(blocked) for cidr, blocked in blocked_spans.items()}
        )
    )
    unmarked_ids = [pk for pk, _, _ in unmarked_rows]
    repaired = checks.execute(
        "DELETE FROM pools_block WHERE id = ANY(%s) AND state = 'available'", [unmarked_ids]
    )
    repaired += checks.execute(
        "UPDATE pools_block SET withheld = true WHERE id = ANY(%s) AND NOT withheld", [unmarked_ids]
    )
    repaired += checks.execute(
        "UPDATE pools_block SET withheld = false WHERE id = ANY(%s) AND withheld"
        " AND state IN ('held', 'cooling')",
        [[pk for pk, _, _ in marked_rows]],
    )
    if repaired:
        repairs.record_pool_repairs([pool_id])
    return repaired


CHECK = checks.Check(
    code="reserved_blocks",
    invariants="block-lies-in-one-cidr, used-cidr-stays",
    proves="Every block in a reserved range, or in a CIDR that its cluster has removed, is withheld and"
    " in no window; no other block is withheld.",
    steps=checks.pools,
    find=_find_violations,
    mend=_repair_marks,
)
