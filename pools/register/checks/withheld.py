"""Marks of blocks that are not handed out any more: where a range reserves them, and nowhere else."""

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

Row = tuple[int, str, str]  # id, CIDR, state


def _blocked(cidr: PoolCIDR) -> list[Span]:
    """The blocks of a CIDR that are never handed out."""
    grid = window.layout(cidr)
    allocatable = [] if cidr.closed else grid.allocatable(window.ranges(cidr))
    return blocks.subtract([Span(0, grid.count - 1)], allocatable)


def _unmarked(cidr: PoolCIDR, blocked: list[Span]) -> Iterator[Row]:
    """Blocks that could be handed out, now or after their release, and must not be."""
    grid = window.layout(cidr)
    for span in blocked:
        ends = [str(grid.block_at(span.first)), str(grid.block_at(span.last))]
        yield from checks.rows(_UNMARKED, [cidr.space_id, *ends])


_UNMARKED = """
    SELECT id, cidr::text, state FROM pools_block
    WHERE space_id = %s AND cidr >= %s::cidr AND cidr <= %s::cidr
      AND (NOT withheld OR state = 'available')
    ORDER BY cidr
"""


def _marked(pool_id: int, cidrs: dict[PoolCIDR, IndexSet]) -> Iterator[Row]:
    """Blocks that would be lost with their release, though nothing reserves them."""
    for pk, text, state in checks.rows(_MARKED, [pool_id]):
        network = ip_network(text)
        for cidr, blocked in cidrs.items():
            grid = window.layout(cidr)
            same = network.version == cidr.cidr.version and network.prefixlen == grid.mask_size
            if same and network.network_address in cidr.cidr:
                index = grid.index_of(network)
                if not blocked.has_all(Span(index, index)):
                    yield pk, text, state


_MARKED = """
    SELECT id, cidr::text, state FROM pools_block
    WHERE pool_id = %s AND state IN ('held', 'cooling') AND withheld
"""


def _find(pool_id: int) -> Iterator[checks.Violation]:
    blocked_spans = {cidr: _blocked(cidr) for cidr in checks.cidrs(pool_id)}
    for cidr, blocked in blocked_spans.items():
        for _, text, state in _unmarked(cidr, blocked):
            will = "is about to be" if state == "available" else "would, after its release, be"
            message = f"Block {text} of pool {cidr.pool} ({state}) {will} handed out although it is reserved"  # fmt: skip
            yield checks.Violation(message, pool_id)
    sets = {cidr: IndexSet(blocked) for cidr, blocked in blocked_spans.items()}
    for _, text, state in _marked(pool_id, sets):
        message = f"Block {text} ({state}) is withheld although nothing reserves it: it would be lost with its release"  # fmt: skip
        yield checks.Violation(message, pool_id)


def _mend(pool_id: int, _by: events.Author) -> int:
    """Rows of the window go, marks of held and cooling blocks become right; holders keep theirs."""
    window.lock(pool_id)
    blocked_spans = {cidr: _blocked(cidr) for cidr in checks.cidrs(pool_id)}
    wrong = [row for cidr, blocked in blocked_spans.items() for row in _unmarked(cidr, blocked)]
    spare = list(
        _marked(pool_id, {cidr: IndexSet(blocked) for cidr, blocked in blocked_spans.items()})
    )
    unmarked = [pk for pk, _, _ in wrong]
    repaired = checks.execute(
        "DELETE FROM pools_block WHERE id = ANY(%s) AND state = 'available'", [unmarked]
    )
    repaired += checks.execute(
        "UPDATE pools_block SET withheld = true WHERE id = ANY(%s) AND NOT withheld", [unmarked]
    )
    repaired += checks.execute(
        "UPDATE pools_block SET withheld = false WHERE id = ANY(%s) AND withheld"
        " AND state IN ('held', 'cooling')",
        [[pk for pk, _, _ in spare]],
    )
    if repaired:
        repairs.record_pool_repairs([pool_id])
    return repaired


CHECK = checks.Check(
    code="reserved_blocks",
    invariants="block-lies-in-one-cidr, used-cidr-stays",
    proves="What a reserved range touches, or lies in a CIDR that its cluster has lost, is withheld"
    " and in no window; nothing else is withheld.",
    steps=checks.pools,
    find=_find,
    mend=_mend,
)
