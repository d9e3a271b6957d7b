"""Checks of holders: one block per address, and one block per holder in the categories that allow one."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection

from pools.models.pools import SINGLE
from pools.platform.checks import checks
from pools.sql import statements

# In the order of networks, a network follows the one that contains it, or another one inside of that:
# comparing neighbours is enough.
UNIQUE = checks.Check(
    code="one_block_per_address",
    invariants="address-has-one-holder",
    proves="No address of an address space belongs to two blocks.",
    steps=checks.spaces,
    find=checks.find_by_statement(statements.read("pools/check_overlapping_blocks")),
)


def _holder_slices(after: str | None) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield ranges of holder ids with some thousand held and cooling blocks each."""
    low = after or ""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT max(holder_id) FROM (SELECT holder_id FROM pools_block"
                " WHERE state IN ('held', 'cooling') AND holder_id > %s"
                " ORDER BY holder_id LIMIT %s) s",
                [low, checks.SLICE],
            )
            high = cursor.fetchone()[0]
        if high is None:
            return
        yield high, (low, high)
        low = high


SINGLES = checks.Check(
    code="one_block_per_holder",
    invariants="one-block-per-holder",
    proves="A node, an instance or an environment holds at most one block of each family in the"
    " categories node, instance and public IPv4.",
    steps=_holder_slices,
    find=checks.find_by_statement(f"""
        SELECT min(holder_kind) || ' ' || holder_id || ' holds ' || count(*) || ' '
            || category || ' blocks: ' || string_agg(cidr::text, ', '), min(pool_id)
        FROM pools_block
        WHERE state IN ('held', 'cooling') AND state = 'held' AND holder_id > %(low)s
          AND holder_id <= %(high)s
          AND category IN ({", ".join(f"'{category.value}'" for category in SINGLE)})
        GROUP BY holder_id, holder_kind, CASE holder_kind WHEN 'env' THEN org ELSE '' END,
            space_id, category, family
        HAVING count(*) > 1 ORDER BY holder_id
    """),  # noqa: S608  # constants of the code
)

CHECKS = [UNIQUE, SINGLES]
