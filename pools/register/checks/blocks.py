"""Checks of single blocks: their place in the pool, their columns, and their last event."""

from __future__ import annotations

from django.db import connection

from pools.platform import events
from pools.platform.checks import checks, repairs
from pools.register.allocator import window
from pools.sql import statements

# Blocks with the reason `why` a block is misplaced; null if it is not.
_MISPLACED = """
    SELECT b.id, b.pool_id, b.state, b.cidr::text AS cidr, p.id AS pool, CASE
        WHEN p.id IS NULL THEN 'its pool does not exist'
        WHEN b.space_id <> p.space_id THEN 'it is in another address space than its pool'
        WHEN b.category <> p.category THEN 'its category differs from its pool''s'
        WHEN b.family <> family(b.cidr) THEN 'its family differs from its address''s'
        WHEN masklen(b.cidr) IS DISTINCT FROM (CASE family(b.cidr) WHEN 4 THEN p.mask_size_v4
            ELSE p.mask_size_v6 END) THEN 'its prefix length differs from its pool''s mask size'
        WHEN (SELECT count(*) FROM pools_poolcidr c
              WHERE c.pool_id = b.pool_id AND b.cidr <<= c.cidr) <> 1
            THEN 'it is not in exactly one CIDR of its pool'
        END AS why
    FROM pools_block b LEFT JOIN pools_pool p ON p.id = b.pool_id
    WHERE b.id > %(low)s AND b.id <= %(high)s
"""


def _remove_from_windows(id_range: tuple[int, int], _by: events.Author) -> int:
    """Delete misplaced rows of windows; blocks with a present or former holder are not changed."""
    values = {"low": id_range[0], "high": id_range[1]}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, pool_id, pool FROM ({_MISPLACED}) m"  # noqa: S608  # our texts
            " WHERE why IS NOT NULL AND state = 'available' ORDER BY pool_id",
            values,
        )
        rows = cursor.fetchall()
        for pool_id in sorted({pool_id for _, pool_id, _ in rows}):
            window.lock(pool_id)
        cursor.execute(
            "DELETE FROM pools_block WHERE id = ANY(%s) AND state = 'available'",
            [[pk for pk, _, _ in rows]],
        )
        removed = int(cursor.rowcount)
    repairs.record_pool_repairs(pool for _, _, pool in rows if pool is not None)
    return removed


PLACE = checks.Check(
    code="block_place",
    invariants="block-lies-in-one-cidr, used-cidr-stays",
    proves="Every block is in exactly one CIDR of its pool and has the mask size, the address space"
    " and the category of its pool.",
    steps=checks.slices("pools_block"),
    find=checks.find_by_statement(
        f"SELECT 'Block ' || cidr || ' (' || state || '): ' || why, pool FROM ({_MISPLACED}) m"  # noqa: S608
        " WHERE why IS NOT NULL ORDER BY id"
    ),
    mend=_remove_from_windows,
)

FORM = checks.Check(
    code="canonical_form",
    invariants="canonical-addresses",
    proves="No block is stored as an IPv4-mapped IPv6 address, so that an address has one form only.",
    steps=checks.slices("pools_block"),
    find=checks.find_by_statement("""
        SELECT 'Block ' || cidr || ' is an IPv4-mapped IPv6 address', pool_id FROM pools_block
        WHERE id > %(low)s AND id <= %(high)s AND cidr <<= '::ffff:0:0/96'::cidr ORDER BY id
    """),
)

STATE = checks.Check(
    code="block_state",
    invariants="address-has-one-holder, no-reuse-while-cooling",
    proves="A held block has a holder and a time of allocation, a cooldown does not end before the"
    " release, and a withheld block is never available.",
    steps=checks.slices("pools_block"),
    find=checks.find_by_statement(statements.read("pools/check_block_state")),
)

# Uses the index of addresses: the event table has no index of the blocks' ids.
HISTORY = checks.Check(
    code="history",
    invariants="every-change-has-an-event, no-reuse-while-cooling",
    proves="The last event of every held or cooling block has the state, the holder and the times of"
    " its row; no cooldown is shorter than in its event.",
    steps=checks.slices("pools_block"),
    find=checks.find_by_statement(statements.read("pools/check_block_history")),
)

CHECKS: list[checks.Check] = [PLACE, FORM, STATE, HISTORY]
