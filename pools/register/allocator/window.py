"""The allocator's window: blocks that have a row because they are about to be handed out.

Which blocks exist is arithmetic over free spans (pools/core/blocks.py); a window of them is
written ahead of need, so that handing one out is a single SQL statement without arithmetic.
Everything here runs under the pool's advisory lock, which the triggers of pools/sql/rules.sql
take too.
"""

from __future__ import annotations

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

WINDOW = 512
STEP = 128  # how many blocks are handed out between two looks at the window
LOW = 160  # it is filled up when a look finds fewer: some are left for those who come meanwhile


def lock(pool_id: int) -> None:
    """Hold the pool's allocation lock until the transaction ends."""
    database.rows("SELECT pg_advisory_xact_lock(%s::int, %s::int)", [advisory_locks.POOL, pool_id])


def layout(cidr: PoolCIDR) -> blocks.Layout:
    """The arithmetic of one CIDR of a pool."""
    return _layout(cidr.pool, cidr.cidr)


def _layout(pool: Pool, network: addresses.Network) -> blocks.Layout:
    mask_size = pool.mask_size(network.version)
    if mask_size is None:  # a trigger forbids it
        raise AssertionError(f"{network} has no mask size in {pool}")
    return blocks.Layout(
        network, mask_size, allow_first=pool.allow_first_ip, allow_last=pool.allow_last_ip
    )


def load_pool(pool_id: int, *, keep_name: bool = False) -> Pool | None:
    """What the allocator must know of a pool, and its cluster's name; other columns are deferred.

    `keep_name` locks the pool's name until the transaction ends, as blocks that are written do.
    """
    rows = database.rows(_POOL_AND_NAME if keep_name else _POOL, [pool_id])
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
    """Fill the family's window before it is empty.

    The look is taken without the pool's lock; in a transaction with it, because a transaction keeps
    the row of the hint, and whoever refills wants that row while it has the lock.
    """
    if connection.in_atomic_block or not _look(pool_id, family, LOW).suffices(LOW):
        refill(pool_id, family, at_least=LOW)


def refill(pool_id: int, family: int, *, at_least: int = 1) -> bool:
    """Fill the family's window when fewer than `at_least` blocks are in it.

    False when the pool has nothing left to hand out.
    """
    with transaction.atomic():
        lock(pool_id)
        # The name before the note: who changes it has it locked, and then wants to remove the note.
        pool = load_pool(pool_id, keep_name=True)
        if pool is None:  # it went while we waited
            raise errors.NotFound("There is no such pool.")
        look = _look(pool_id, family, at_least)
        if look.noted is None:
            database.rows(_REDATE, [pool_id, family], prepare=False)
            look = _look(pool_id, family, at_least)
        if look.ready < at_least:
            texts = draw(pool, family, WINDOW)
            if texts:
                drawn = (pool.pk, pool.space_id, pool.category, family, database.joined(texts))
                with connection.cursor() as cursor:
                    cursor.execute(_INSERT_AVAILABLE, drawn)
            look = _look(pool_id, family, at_least)
        if look.noted != look.all_drawn:
            database.rows(_NOTE, [family, look.oldest, look.all_drawn, pool_id])
        return look.ready > 0


class _Look(NamedTuple):
    ready: int  # how many blocks can be taken at once, as far as they were counted
    oldest: datetime  # since when the oldest of them is available
    all_drawn: bool  # no free span is left
    noted: (
        bool | None
    )  # what the note says of that; None without a note, or with an older version's

    def suffices(self, ready: int) -> bool:
        return self.ready >= ready and self.noted == self.all_drawn


def _look(pool_id: int, family: int, most: int) -> _Look:
    """What is in the window, of which at most so many are counted."""
    values = {"pool": pool_id, "family": family, "most": most}
    (row,) = database.rows(_READY, values)
    return _Look(*row)


# How many blocks can be taken at once: fresh ones, and released ones when no fresh one can be drawn.
# Notes where the oldest one is. Rows that others are taking at this moment count: a pool is exhausted
# when they are gone for good.
_READY = statements.read("pools/available_in_window")

# What the note repeats of the pool p and its cluster c: column -> expression.
NOTED = {
    "only_family": "num_nulls(p.mask_size_v4, p.mask_size_v6) = 1",
    "space_id": "p.space_id",
    "category": "p.category",
    "cluster_id": "p.cluster_id",
    "pool_name": "p.name",
    "cluster_name": "c.name",
}
# Under the pool's lock, and with the names locked: whoever changes what is repeated here waits, and then
# removes the note (pools/sql/rules.sql). A name is part of a key, so that its change waits for KEY SHARE.
# While a cluster gets another name there is no note: nothing waits for it.
_NOTE = f"""
    INSERT INTO pools_window (pool_id, family, since, all_drawn, {", ".join(NOTED)})
    SELECT p.id, %s, %s, %s, {", ".join(NOTED.values())}
    FROM pools_pool p JOIN pools_cluster c ON c.id = p.cluster_id WHERE p.id = %s
    FOR KEY SHARE SKIP LOCKED
    ON CONFLICT (pool_id, family) DO UPDATE SET
        {", ".join(f"{column} = EXCLUDED.{column}" for column in ("since", "all_drawn", *NOTED))}
    RETURNING id
"""  # noqa: S608  # our names

# Fresh blocks of a window that an older version has written (pools/sql/allocate.sql).
_REDATE = """
    UPDATE pools_block SET available_from = available_from - interval '1000 years'
    WHERE pool_id = %s AND family = %s AND state = 'available' AND allocated_at IS NULL
      AND available_from > ipam_fresh_until() AND NOT withheld
    RETURNING id
"""

_INSERT_AVAILABLE = """
    INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
        holder_kind, holder_id, holder_uid, org, env, available_from)
    SELECT %s, %s, %s, %s, cidr, 'available', false, '', '', '', '', '',
        ipam_now() - interval '1000 years'
    FROM unnest(string_to_array(%s, ',')::cidr[]) WITH ORDINALITY AS drawn(cidr, n) ORDER BY n
"""


def draw(pool: Pool, family: int, count: int) -> list[str]:
    """Take up to `count` blocks out of the free spans, in address order, as canonical CIDR texts."""
    texts: list[str] = []
    withheld: dict[int, list[blocks.Span]] = {}
    for span_id, lowest, highest, cidr_id, cidr in database.rows(_SPANS, [pool.pk, family, count]):
        first, last = int(lowest), int(highest)
        last_taken = min(last, first + count - len(texts) - 1)
        grid = _layout(pool, ip_network(cidr))
        if cidr_id not in withheld:
            reserved = database.rows(_RANGES, [cidr_id])
            withheld[cidr_id] = grid.withheld(
                [addresses.AddressRange(ip_address(a), ip_address(b)) for a, b in reserved]
            )
        # Free spans have no reserved block, unless somebody wrote a range past the services.
        for part in blocks.subtract([blocks.Span(first, last_taken)], withheld[cidr_id]):
            texts += grid.cidr_strings(part)
        if last_taken == last:
            FreeSpan.objects.filter(pk=span_id).delete()
        else:
            database.rows(_SHORTEN, [Decimal(last_taken + 1), span_id])
        if len(texts) == count:
            break
    return texts


_SPANS = """
    SELECT s.id, s.first, s.last, c.id, c.cidr::text
    FROM pools_freespan s JOIN pools_poolcidr c ON c.id = s.pool_cidr_id
    WHERE c.pool_id = %s AND family(c.cidr) = %s ORDER BY c.position, c.id, s.first LIMIT %s
"""
_SHORTEN = "UPDATE pools_freespan SET first = %s::numeric WHERE id = %s RETURNING id"
_RANGES = "SELECT host(first), host(last) FROM pools_reservedrange WHERE pool_cidr_id = %s"


def ranges(cidr: PoolCIDR) -> list[addresses.AddressRange]:
    """The reserved ranges of a CIDR."""
    return [
        addresses.AddressRange(reserved_range.first, reserved_range.last)
        for reserved_range in cidr.reserved_ranges.all()
    ]


def add(cidr: PoolCIDR, spans: Iterable[blocks.Span]) -> None:
    """Blocks that may be handed out from now on."""
    FreeSpan.objects.bulk_create(
        FreeSpan(pool_cidr=cidr, first=Decimal(span.first), last=Decimal(span.last))
        for span in spans
    )


def remove(cidr: PoolCIDR, hole: blocks.Span) -> None:
    """Blocks that may not be drawn any more: they are withheld, or have a row now."""
    touched = FreeSpan.objects.filter(
        pool_cidr=cidr, first__lte=Decimal(hole.last), last__gte=Decimal(hole.first)
    )
    remaining: list[blocks.Span] = []
    for span in touched:
        remaining += blocks.subtract([blocks.Span(int(span.first), int(span.last))], [hole])
    touched.delete()
    add(cidr, remaining)


def cut(cidr_id: int, indexes: Sequence[int]) -> None:
    """Take blocks, which have a row from now on, out of the free spans of a CIDR."""
    rows = database.rows(
        _SPANS_OF, {"indexes": database.joined(indexes), "pool_cidr": cidr_id}, prepare=False
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


_SPANS_OF = statements.read("pools/free_spans_with_blocks")


def release(ids: Sequence[int], *, kind: str = "") -> None:
    """Release held blocks, of holders of this kind only if one is said, into their pools' cooldown.

    For many, as ipam_release (pools/sql/allocate.sql) does it for one.
    """
    if ids:
        database.rows(_RELEASE, {"ids": list(ids), "kind": kind}, prepare=False)


_RELEASE = statements.read("pools/release_held_blocks")


def give_back(cidr: PoolCIDR, freed: blocks.Span, *, still_withheld: Sequence[blocks.Span]) -> None:
    """What a removed reserved range withheld may be handed out again.

    Blocks of `freed` that no other range withholds: those with a row lose the mark, those
    without one become a free span.
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
        add(cidr, blocks.subtract([span], blocks.merge(holes)))
