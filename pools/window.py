"""The allocator's window: blocks that have a row because they are about to be handed out.

Which blocks exist is arithmetic over free spans (pools/core/blocks.py); a window of them is
written ahead of need, so that handing one out is a single SQL statement without arithmetic.
Everything here runs under the pool's advisory lock, which the triggers of pools/sql/rules.sql
take too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from django.db import connection, transaction

from pools.core import addresses, blocks, errors
from pools.models import Block, FreeSpan, Pool, PoolCIDR, Window

WINDOW = 512
STEP = 128  # how many blocks are handed out between two looks at the window
LOCK = 4242  # first key of the advisory locks of pools; the second is the pool's id


def lock(pool_id: int) -> None:
    """Hold the pool's allocation lock until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK, pool_id])


def layout(cidr: PoolCIDR) -> blocks.Layout:
    """The arithmetic of one CIDR of a pool."""
    pool = cidr.pool
    mask_size = pool.mask_size(cidr.cidr.version)
    if mask_size is None:  # a trigger forbids it
        raise AssertionError(f"{cidr} has no mask size")
    return blocks.Layout(
        cidr.cidr, mask_size, allow_first=pool.allow_first_ip, allow_last=pool.allow_last_ip
    )


def refill(pool: Pool, family: int, *, at_least: int = 1) -> bool:
    """Fill the family's window when fewer than `at_least` blocks are in it.

    False when the pool has nothing left to hand out.
    """
    with transaction.atomic():
        lock(pool.pk)
        if not Pool.objects.filter(pk=pool.pk).exists():  # it went while we waited
            raise errors.NotFound("There is no such pool.")
        takeable = _takeable(pool.pk, family, at_least)
        if takeable >= at_least:
            return True
        texts = draw(pool, family, WINDOW)
        if texts:
            with connection.cursor() as cursor:
                cursor.execute(
                    _INSERT_AVAILABLE, [pool.pk, pool.space_id, pool.category, family, texts]
                )
        return bool(texts or takeable)


def _takeable(pool_id: int, family: int, most: int) -> int:
    """How many blocks can be taken at once, at most `most`; remembers where the oldest one is."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKEABLE, [pool_id, family, most])
        count, oldest, now = cursor.fetchone()
    Window.objects.update_or_create(
        pool_id=pool_id, family=family, defaults={"since": oldest or now}
    )
    return int(count)


# Rows that others are taking at this moment count: a pool is exhausted when they are gone for good.
_TAKEABLE = """
    SELECT count(*), min(available_from), ipam_now() FROM (
        SELECT available_from FROM pools_block
        WHERE pool_id = %s AND family = %s AND available_from <= (SELECT ipam_clock())
          AND NOT withheld
        ORDER BY available_from, id LIMIT %s) AS takeable
"""

_INSERT_AVAILABLE = """
    INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
        holder_kind, holder_id, holder_uid, org, env, available_from)
    SELECT %s, %s, %s, %s, cidr, 'available', false, '', '', '', '', '', ipam_now()
    FROM unnest(%s::cidr[]) WITH ORDINALITY AS drawn(cidr, n) ORDER BY n
"""


def draw(pool: Pool, family: int, count: int) -> list[str]:
    """Take up to `count` blocks out of the free spans, in address order, as canonical CIDR texts."""
    texts: list[str] = []
    spans = (
        FreeSpan.objects.filter(pool_cidr__pool=pool, pool_cidr__cidr__family=family)
        .select_related("pool_cidr__pool")
        .order_by("pool_cidr__position", "pool_cidr_id", "first")[:count]
    )
    withheld: dict[int, list[blocks.Span]] = {}
    for span in spans:
        first, last = int(span.first), int(span.last)
        taken = min(last, first + count - len(texts) - 1)
        grid = layout(span.pool_cidr)
        if span.pool_cidr_id not in withheld:
            withheld[span.pool_cidr_id] = grid.withheld(ranges(span.pool_cidr))
        # Free spans have no reserved block, unless somebody wrote a range past the services.
        for part in blocks.subtract([blocks.Span(first, taken)], withheld[span.pool_cidr_id]):
            texts += grid.texts(part)
        if taken == last:
            span.delete()
        else:
            FreeSpan.objects.filter(pk=span.pk).update(first=Decimal(taken + 1))
        if len(texts) == count:
            break
    return texts


def ranges(cidr: PoolCIDR) -> list[addresses.AddressRange]:
    """The reserved ranges of a CIDR."""
    return [addresses.AddressRange(one.first, one.last) for one in cidr.reserved_ranges.all()]


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
    left: list[blocks.Span] = []
    for span in touched:
        left += blocks.subtract([blocks.Span(int(span.first), int(span.last))], [hole])
    touched.delete()
    add(cidr, left)


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
        taken = [grid.index_of(row) for row in rows.values_list("cidr", flat=True)]
        holes = [blocks.Span(index, index) for index in taken]
        add(cidr, blocks.subtract([span], blocks.merge(holes)))
