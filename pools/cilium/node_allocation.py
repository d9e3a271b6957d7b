"""Allocation of blocks to nodes in the order of Cilium's operator, with the register's rules."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_network

from pools.cilium import node_blocks
from pools.cilium.pod_pools import PodPool, PodPoolCIDR, PodPools
from pools.core import addresses, blocks
from pools.core.blocks import IndexSet
from pools.models import PoolCIDR
from pools.platform import database
from pools.register.allocator import window

_MAX_CANDIDATES = 1 << 20
# Index of the block at which the next search starts, by id of the CIDR: Cilium's next-fit.
_Pointers = dict[int, int]


@dataclass(frozen=True)
class BlockRequest:
    """A request for `count` more blocks of one pool and family for a node."""

    node: str
    pool: str
    family: int
    count: int


def allocate(
    cluster_id: int,
    demands: Sequence[BlockRequest],
    *,
    misfits: Iterable[tuple[PodPoolCIDR, addresses.Network]] = (),
) -> dict[BlockRequest, list[addresses.Network]]:
    """Allocate blocks to nodes as Cilium's operator does, in the order of the requests.

    Returns the allocated blocks by request; fewer than requested if a pool is exhausted. Blocks come
    from the first CIDR of the pool with a free block, after the block that any process allocated last.
    Excluded are blocks in cooldown, blocks that a reserved range overlaps, orphaned CIDRs, and blocks
    that overlap `misfits`: CIDRs in use that are no blocks of their pool.
    """
    by_pool: dict[tuple[str, int], list[BlockRequest]] = {}
    for request in demands:
        by_pool.setdefault((request.pool, request.family), []).append(request)
    pool_names = {name for name, _ in by_pool}
    window.lock(*(pool.id for pool in PodPools(cluster_id).get_by_names(pool_names)))
    pools = PodPools(cluster_id)
    misfit_spans = list(misfits)
    allocations: dict[BlockRequest, list[addresses.Network]] = {request: [] for request in demands}
    for (name, family), pool_requests in by_pool.items():
        pool = pools.get_live(name)
        if pool is None:
            continue
        queue = [request for request in pool_requests for _ in range(request.count)]
        pointers = _pointers(pool)
        picks = _pick(pool, family, len(queue), pointers, misfit_spans)
        pairs = list(zip(queue, picks, strict=False))
        node_blocks.assign(
            [(pick.row, request.node, "") for request, pick in pairs if pick.row is not None]
        )
        node_blocks.insert_blocks(
            [
                node_blocks.FreshBlock(pick.pool_cidr, pick.index, str(pick.cidr), request.node, "")
                for request, pick in pairs
                if not pick.row
            ]
        )
        for request, pick in pairs:
            allocations[request].append(pick.cidr)
        last_picks = {pick.pool_cidr.id: pick for _, pick in pairs}
        for pick in last_picks.values():
            following = Decimal((pick.index + 1) % pick.pool_cidr.layout.count)
            PoolCIDR.objects.filter(pk=pick.pool_cidr.id).update(next_index=following)
    return allocations


def _pointers(pool: PodPool) -> _Pointers:
    rows = PoolCIDR.objects.filter(pk__in=[pool_cidr.id for pool_cidr in pool.cidrs])
    return {pk: int(index) for pk, index in rows.values_list("id", "next_index")}


@dataclass(frozen=True)
class _Pick:
    pool_cidr: PodPoolCIDR
    index: int
    row: int | None  # the id of the block's row, if it has one

    @property
    def cidr(self) -> addresses.Network:
        return self.pool_cidr.layout.block_at(self.index)


def _pick(
    pool: PodPool,
    family: int,
    count: int,
    pointers: _Pointers,
    misfits: Sequence[tuple[PodPoolCIDR, addresses.Network]],
) -> list[_Pick]:
    picked: list[_Pick] = []
    for pool_cidr in pool.cidrs:
        if pool_cidr.gone or pool_cidr.layout.cidr.version != family:
            continue
        misfit_spans = [
            pool_cidr.span_touching(cidr) for parent, cidr in misfits if parent.id == pool_cidr.id
        ]
        excluded = IndexSet(span for span in misfit_spans if span is not None)
        start = pointers[pool_cidr.id]
        missing = count - len(picked)
        max_candidates = min(missing + blocks.total(excluded.spans()), _MAX_CANDIDATES)
        candidates = heapq.merge(
            _free_rows(pool_cidr, start, max_candidates),
            _blocks_of_free_spans(pool_cidr, start, max_candidates),
        )
        usable = (
            _Pick(pool_cidr, index, row or None)
            for _, index, row in candidates
            if excluded.next_missing(index) == index
        )
        picked += itertools.islice(usable, missing)
        if len(picked) == count:
            break
    return picked


# A free block: True if it is before the pointer, its index, the id of its row (0 without a row).
_FreeBlock = tuple[bool, int, int]


def _free_rows(pool_cidr: PodPoolCIDR, start: int, count: int) -> list[_FreeBlock]:
    layout = pool_cidr.layout
    first = layout.block_at(0)
    last_picks = layout.block_at(layout.count - 1)
    pool = pool_cidr.pool
    start_block = layout.block_at(start)
    values = [pool.id, first.version, str(first), str(last_picks), str(start_block), count]
    free_blocks = []
    for pk, text in database.rows(_FREE_ROWS, values):
        index = layout.index_of(ip_network(text))
        free_blocks.append((index < start, index, pk))
    return free_blocks


_FREE_ROWS = """
    SELECT b.id, b.cidr::text FROM pools_block b
    WHERE pool_id = %s AND family = %s AND available_from <= (SELECT ipam_clock())
      AND NOT withheld AND cidr BETWEEN %s::text::cidr AND %s::text::cidr
    ORDER BY b.cidr < %s::text::cidr, b.cidr LIMIT %s FOR UPDATE SKIP LOCKED
"""


def _blocks_of_free_spans(pool_cidr: PodPoolCIDR, start: int, count: int) -> Iterator[_FreeBlock]:
    """Yield free blocks without a row, at least `count` if the CIDR has as many."""
    values = [pool_cidr.id, Decimal(start), count + 1]
    spans = [
        blocks.Span(int(first), int(last_picks))
        for first, last_picks in database.rows(_FREE_SPANS, values)
    ]
    # Free spans have no reserved block, unless a range was inserted directly with SQL.
    spans = blocks.subtract(spans, pool_cidr.withheld.spans())
    before = blocks.subtract(spans, [blocks.Span(start, pool_cidr.layout.count - 1)])
    behind = blocks.subtract(spans, [blocks.Span(0, start - 1)] if start else [])
    for wrapped, part in ((False, behind), (True, before)):
        for span in part:
            for index in range(span.first, span.last + 1):
                yield wrapped, index, 0


_FREE_SPANS = """
    SELECT first, last FROM pools_freespan WHERE pool_cidr_id = %s
    ORDER BY last < %s, first LIMIT %s
"""
