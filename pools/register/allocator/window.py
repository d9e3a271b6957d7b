"""The allocator's window: available blocks whose rows are written ahead of their allocation.

Which blocks exist is arithmetic over free spans (pools/core/blocks.py). A window of them is written
in advance, so that an allocation is a single SQL statement without arithmetic. The functions here
run under the pool's advisory lock, which the triggers of pools/sql/rules.sql take too.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, transaction

from pools.core import addresses, blocks, errors
from pools.models import Block, Cluster, FreeSpan, Pool, PoolCIDR
from pools.platform import advisory_locks, database
from pools.sql import statements

WINDOW = 512  # blocks that one refill adds
STEP = 128  # allocations between two checks of the window
LOW = 160  # a check that finds fewer blocks refills; the rest serves the requests until then


def lock(*pool_ids: int) -> None:
    """Take the allocation locks of pools until the end of the transaction, in the order of every other writer."""
    for pool_id in sorted({*pool_ids}):
        advisory_locks.take(advisory_locks.POOL, pool_id)


def layout(cidr: PoolCIDR) -> blocks.Layout:
    """Return the layout of blocks in one CIDR of a pool."""
    return _layout(cidr.pool, cidr.cidr)


def _layout(pool: Pool, network: addresses.Network) -> blocks.Layout:
    mask_size = pool.mask_size(network.version)
    if mask_size is None:  # a trigger forbids it
        raise AssertionError(f"{network} has no mask size in {pool}")
    return blocks.Layout(
        network, mask_size, allow_first=pool.allow_first_ip, allow_last=pool.allow_last_ip
    )


def load_pool(pool_id: int, *, lock_name: bool = False) -> Pool | None:
    """Return the pool with the columns that the allocator needs and its cluster's name.

    Other columns are deferred. `lock_name` locks the pool's name until the end of the transaction,
    as an inserted block does. Returns None if the pool does not exist.
    """
    rows = database.rows(_POOL_AND_NAME if lock_name else _POOL, [pool_id])
    if not rows:
        return None
    *values, cluster = rows[0]
    pool = Pool.from_db(DEFAULT_DB_ALIAS, _POOL_COLUMNS, values)
    pool.cluster = Cluster.from_db(DEFAULT_DB_ALIAS, ["id", "name"], [pool.cluster_id, cluster])
    return pool


_POOL_COLUMNS = (
    "id",
    "cluster_id",
    "space_id",
    "name",
    "category",
    "mask_size_v4",
    "mask_size_v6",
    "allow_first_ip",
    "allow_last_ip",
)
_POOL = (
    f"SELECT {', '.join(f'p.{column}' for column in _POOL_COLUMNS)}, c.name"  # noqa: S608  # our names
    " FROM pools_pool p JOIN pools_cluster c ON c.id = p.cluster_id WHERE p.id = %s"
)
_POOL_AND_NAME = f"{_POOL} FOR KEY SHARE OF p"


def top_up(pool_id: int, family: int) -> None:
    """Refill the family's window if fewer than LOW blocks are in it.

    The window is counted without the pool's lock. Inside a transaction it is counted with the lock,
    because the transaction would keep the allocator cache's row locked, and a refill locks that row
    while it holds the pool's lock.
    """
    if connection.in_atomic_block or not _inspect(pool_id, family, LOW).suffices(LOW):
        refill(pool_id, family, at_least=LOW)


def refill(pool_id: int, family: int, *, at_least: int = 1) -> bool:
    """Refill the family's window if fewer than `at_least` blocks are in it.

    Returns False if the pool has no available block left. Raises NotFound.
    """
    with transaction.atomic():
        lock(pool_id)
        # The name is locked before the cache: a transaction that renames the pool has locked the name
        # and deletes the cache after that.
        pool = load_pool(pool_id, lock_name=True)
        if pool is None:  # deleted while this transaction waited for the lock
            raise errors.NotFound("There is no such pool.")
        state = _inspect(pool_id, family, at_least)
        if state.ready < at_least:
            cidrs = take_free_blocks(pool, family, WINDOW)
            if cidrs:
                values = (
                    pool.pk,
                    pool.space_id,
                    pool.category,
                    family,
                    database.join_values(cidrs),
                )
                with connection.cursor() as cursor:
                    cursor.execute(_INSERT_AVAILABLE, values)
            state = _inspect(pool_id, family, at_least)
        if state.cached != state.all_drawn:
            database.rows(_WRITE_CACHE, [family, state.oldest, state.all_drawn, pool_id])
        return state.ready > 0


class _WindowState(NamedTuple):
    ready: int  # blocks that can be allocated at once, counted up to a limit
    oldest: datetime  # when the oldest of them became available
    all_drawn: bool  # no free span is left
    cached: bool | None  # `all_drawn` in the allocator cache; None without a valid cache

    def suffices(self, ready: int) -> bool:
        return self.ready >= ready and self.cached == self.all_drawn


def _inspect(pool_id: int, family: int, limit: int) -> _WindowState:
    """Return the state of the window; at most `most` blocks are counted."""
    values = {"pool": pool_id, "family": family, "most": limit}
    (row,) = database.rows(_COUNT_READY, values)
    return _WindowState(*row)


# Counts the blocks that can be allocated at once: fresh ones, and released ones if no free span is
# left. Writes the time of the oldest one into the cache. Rows that other transactions are allocating
# count: the pool is exhausted only after their commit.
_COUNT_READY = statements.read("pools/available_in_window")

# What the allocator cache copies from the pool p and its cluster c: column -> expression.
CACHED_COLUMNS = {
    "only_family": "num_nulls(p.mask_size_v4, p.mask_size_v6) = 1",
    "space_id": "p.space_id",
    "category": "p.category",
    "cluster_id": "p.cluster_id",
    "pool_name": "p.name",
    "cluster_name": "c.name",
}
# Runs under the pool's lock and with the names locked: a transaction that changes a copied column waits
# and then deletes the cache (pools/sql/rules.sql). A name is part of a key, so that its change waits for
# KEY SHARE. While a cluster is being renamed no cache is written, and nothing waits for it.
_WRITE_CACHE = f"""
    INSERT INTO pools_window (pool_id, family, since, all_drawn, {", ".join(CACHED_COLUMNS)})
    SELECT p.id, %s, %s, %s, {", ".join(CACHED_COLUMNS.values())}
    FROM pools_pool p JOIN pools_cluster c ON c.id = p.cluster_id WHERE p.id = %s
    FOR KEY SHARE SKIP LOCKED
    ON CONFLICT (pool_id, family) DO UPDATE SET
        {", ".join(f"{column} = EXCLUDED.{column}" for column in ("since", "all_drawn", *CACHED_COLUMNS))}
    RETURNING id
"""  # noqa: S608  # our names

_INSERT_AVAILABLE = """
    INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
        holder_kind, holder_id, holder_uid, org, env, available_from)
    SELECT %s, %s, %s, %s, cidr, 'available', false, '', '', '', '', '',
        ipam_now() - interval '1000 years'
    FROM unnest(string_to_array(%s, ',')::cidr[]) WITH ORDINALITY AS drawn(cidr, n) ORDER BY n
"""


def take_free_blocks(pool: Pool, family: int, count: int) -> list[str]:
    """Take up to `count` blocks out of the free spans, in address order, as canonical CIDR strings."""
    cidrs: list[str] = []
    withheld: dict[int, list[blocks.Span]] = {}
    for span_id, lowest, highest, cidr_id, cidr in database.rows(_SPANS, [pool.pk, family, count]):
        first, last = int(lowest), int(highest)
        last_index = min(last, first + count - len(cidrs) - 1)
        grid = _layout(pool, ip_network(cidr))
        if cidr_id not in withheld:
            reserved = database.rows(_RANGES, [cidr_id])
            withheld[cidr_id] = grid.withheld(
                [addresses.AddressRange(ip_address(a), ip_address(b)) for a, b in reserved]
            )
        # Free spans contain no reserved block, unless a range was inserted past the services.
        for part in blocks.subtract([blocks.Span(first, last_index)], withheld[cidr_id]):
            cidrs += grid.cidr_strings(part)
        if last_index == last:
            FreeSpan.objects.filter(pk=span_id).delete()
        else:
            database.rows(_SHORTEN, [Decimal(last_index + 1), span_id])
        if len(cidrs) == count:
            break
    return cidrs


_SPANS = """
    SELECT s.id, s.first, s.last, c.id, c.cidr::text
    FROM pools_freespan s JOIN pools_poolcidr c ON c.id = s.pool_cidr_id
    WHERE c.pool_id = %s AND family(c.cidr) = %s ORDER BY c.position, c.id, s.first LIMIT %s
"""
_SHORTEN = "UPDATE pools_freespan SET first = %s::numeric WHERE id = %s RETURNING id"
_RANGES = "SELECT host(first), host(last) FROM pools_reservedrange WHERE pool_cidr_id = %s"


def reserved_ranges(cidr: PoolCIDR) -> list[addresses.AddressRange]:
    """Return the reserved ranges of a CIDR."""
    return [
        addresses.AddressRange(reserved_range.first, reserved_range.last)
        for reserved_range in cidr.reserved_ranges.all()
    ]


def add_free_spans(cidr: PoolCIDR, spans: Iterable[blocks.Span]) -> None:
    """Make the blocks of these spans available."""
    FreeSpan.objects.bulk_create(
        FreeSpan(pool_cidr=cidr, first=Decimal(span.first), last=Decimal(span.last))
        for span in spans
    )


def remove_free_span(cidr: PoolCIDR, hole: blocks.Span) -> None:
    """Remove a span of blocks, which are withheld or have a row now, from the free spans."""
    overlapping = FreeSpan.objects.filter(
        pool_cidr=cidr, first__lte=Decimal(hole.last), last__gte=Decimal(hole.first)
    )
    remaining: list[blocks.Span] = []
    for span in overlapping:
        remaining += blocks.subtract([blocks.Span(int(span.first), int(span.last))], [hole])
    overlapping.delete()
    add_free_spans(cidr, remaining)


def remove_free_blocks(cidr_id: int, indexes: Sequence[int]) -> None:
    """Remove single blocks, which get a row, from the free spans of a CIDR."""
    rows = database.rows(
        _SPANS_WITH_BLOCKS,
        {"indexes": database.join_values(indexes), "pool_cidr": cidr_id},
        prepare=False,
    )
    if not rows:
        return
    spans = [blocks.Span(int(first), int(last)) for _, first, last in rows]
    remaining = blocks.subtract(spans, blocks.merge(blocks.Span(index, index) for index in indexes))
    FreeSpan.objects.filter(pk__in=[pk for pk, _, _ in rows]).delete()
    FreeSpan.objects.bulk_create(
        FreeSpan(pool_cidr_id=cidr_id, first=Decimal(span.first), last=Decimal(span.last))
        for span in remaining
    )


_SPANS_WITH_BLOCKS = statements.read("pools/free_spans_with_blocks")


def release_blocks(ids: Sequence[int], *, kind: str = "") -> None:
    """Release held blocks into the cooldown of their pools; with `kind`, only of holders of this kind.

    The function ipam_release (pools/sql/allocate.sql) does the same for one block.
    """
    if ids:
        database.rows(_RELEASE, {"ids": list(ids), "kind": kind}, prepare=False)


_RELEASE = statements.read("pools/release_held_blocks")


def end_withholding(
    cidr: PoolCIDR, freed: blocks.Span, *, still_withheld: Sequence[blocks.Span]
) -> None:
    """Make the blocks available that a removed reserved range withheld.

    Of the blocks in `freed` that no other range withholds, those with a row lose the mark `withheld`,
    and those without a row become a free span.
    """
    grid = layout(cidr)
    usable = blocks.subtract(
        grid.usable(), blocks.subtract([blocks.Span(0, grid.count - 1)], [freed])
    )
    for span in blocks.subtract(usable, still_withheld):
        rows = Block.objects.filter(
            space=cidr.space_id,
            cidr__gte=str(grid.block_at(span.first)),
            cidr__lte=str(grid.block_at(span.last)),
        )
        rows.update(withheld=False)
        used_indexes = [grid.index_of(row) for row in rows.values_list("cidr", flat=True)]
        holes = [blocks.Span(index, index) for index in used_indexes]
        add_free_spans(cidr, blocks.subtract([span], blocks.merge(holes)))
