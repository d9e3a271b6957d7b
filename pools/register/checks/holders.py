"""Who has what: an address one block, a holder one block where one is the rule."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection

from pools.models.pools import SINGLE
from pools.platform.checks import checks
from pools.sql import statements

# In the order of networks, one that lies inside another follows it or one that lies inside it too:
# neighbours tell.
UNIQUE = checks.Check(
    code="one_block_per_address",
    invariants="address-has-one-holder",
    proves="No address of an address space belongs to two blocks.",
    steps=checks.spaces,
    find=checks.find_by_statement(statements.read("pools/check_overlapping_blocks")),
)


def _by_holder(after: str | None) -> Iterator[tuple[str, tuple[str, str]]]:
    """Some thousand held and cooling blocks at a time, in the order of their holders."""
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
    proves="A node, an instance or an environment holds at most one block of a family, of each"
    " category of which one is the rule.",
    steps=_by_holder,
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
    """),  # noqa: S608  # our words
)

CHECKS = [UNIQUE, SINGLES]
