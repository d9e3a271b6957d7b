"""Checks of the counts of pools: they sum to the capacity, and stored counts are recent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pools.models import Pool
from pools.platform import events
from pools.platform.checks import checks, repairs
from pools.register import usage
from pools.register.allocator import window

_OLDEST = "1 hour"  # the worker counts every half minute


def _find_violations(pool_id: int) -> Iterator[checks.Violation]:
    pool = Pool.objects.select_related("cluster").filter(pk=pool_id).first()
    if pool is None:
        return
    counted = {
        family: numbers for family, *numbers in checks.rows(_COUNT_BLOCKS, {"pool": pool_id})
    }
    for family, family_usage in usage.pool_usage(pool).items():
        held, cooling = counted.get(family, (0, 0))
        free = family_usage.capacity - held - cooling - family_usage.reserved
        name = f"Pool {pool}, IPv{family}"
        if (family_usage.held, family_usage.cooling) != (held, cooling):
            yield checks.Violation(
                f"{name}: the usage shows {family_usage.held} held and {family_usage.cooling} cooling"
                f" blocks, but there are {held} and {cooling}",
                pool_id,
            )
        if free < 0 or free != family_usage.free:
            yield checks.Violation(
                f"{name}: {held} held, {cooling} cooling, {family_usage.reserved} reserved and {family_usage.free} free"
                f" blocks do not sum to the capacity of {family_usage.capacity}",
                pool_id,
            )
    yield from (
        checks.Violation(text, pool_id)
        for (text,) in checks.rows(_WRONG_STORED_COUNTS, {"pool": pool_id})
    )


# A separate statement, independent of the one that pages use (pools/register/usage.py).
_COUNT_BLOCKS = """
    SELECT family, count(*) FILTER (WHERE state = 'held'),
        count(*) FILTER (WHERE state = 'cooling' AND available_from > ipam_now())
    FROM pools_block WHERE pool_id = %(pool)s AND state IN ('held', 'cooling') GROUP BY family
"""
# A stored count of a large pool is right for its time: it can differ by no more than the events since.
# An event has the time of the beginning of its transaction, hence the ten minutes.
_WRONG_STORED_COUNTS = f"""
    SELECT 'The count of IPv' || u.family || ' blocks ' || CASE
        WHEN CASE u.family WHEN 4 THEN p.mask_size_v4 ELSE p.mask_size_v6 END IS NULL
            THEN 'is of a family that the pool does not have'
        WHEN u.counted_at < ipam_now() - interval '{_OLDEST}'
            THEN 'is outdated (' || to_char(u.counted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
                || ' UTC)'
        ELSE 'is ' || u.held || ' held, but there are ' || n.held END
    FROM pools_poolusage u JOIN pools_pool p ON p.id = u.pool_id
    CROSS JOIN LATERAL (SELECT count(*) AS held FROM pools_block b
        WHERE b.pool_id = u.pool_id AND b.family = u.family AND b.state = 'held') n
    WHERE u.pool_id = %(pool)s AND (
        CASE u.family WHEN 4 THEN p.mask_size_v4 ELSE p.mask_size_v6 END IS NULL
        OR u.counted_at < ipam_now() - interval '{_OLDEST}'
        OR abs(n.held - u.held) > (SELECT count(*) FROM (
            SELECT FROM pools_blockevent e WHERE e.pool_id = u.pool_id
              AND e.pgh_created_at >= u.counted_at - interval '10 minutes'
            LIMIT abs(n.held - u.held)) s))
"""  # noqa: S608  # constants of this module


def _repair_counts(pool_id: int, _by: events.Author) -> int:
    """Count all large pools again, and delete counts of other pools."""
    wrong_count = sum(1 for _ in checks.rows(_WRONG_STORED_COUNTS, {"pool": pool_id}))
    if wrong_count:
        usage.refresh_counts()
        repairs.record_pool_repairs([pool_id])
    return wrong_count


CHECK = checks.Check(
    code="counts",
    invariants="usage-adds-up",
    proves="Held, cooling, reserved and free blocks of every pool sum to its capacity; the stored counts"
    " of large pools are less than an hour old and differ by no more than the events since.",
    steps=checks.pools,
    find=_find_violations,
    mend=_repair_counts,
)

_WITHOUT_FAMILY = """
    FROM pools_window w JOIN pools_pool p ON p.id = w.pool_id
    WHERE CASE w.family WHEN 4 THEN p.mask_size_v4 WHEN 6 THEN p.mask_size_v6 END IS NULL
"""
_AHEAD_OF_CLOCK = """
    FROM pools_window w JOIN pools_pool p ON p.id = w.pool_id
    WHERE w.since > ipam_clock() + interval '1 minute'
"""
_OUTDATED_CACHE = f"""
    FROM pools_window w JOIN pools_pool p ON p.id = w.pool_id
    JOIN pools_cluster c ON c.id = p.cluster_id
    WHERE w.pool_name IS NOT NULL AND ({", ".join(f"w.{column}" for column in window.CACHED_COLUMNS)})
      IS DISTINCT FROM ({", ".join(window.CACHED_COLUMNS.values())})
"""


def _repair_windows(_at: Any, _by: events.Author) -> int:
    outdated = list(
        checks.rows(
            f"SELECT p.id, w.id {_WITHOUT_FAMILY} UNION SELECT p.id, w.id {_OUTDATED_CACHE}"
        )
    )
    ahead_of_clock = list(checks.rows(f"SELECT p.id, w.id {_AHEAD_OF_CLOCK}"))
    ids = [[pk for _, pk in rows] for rows in (outdated, ahead_of_clock)]
    repaired = checks.execute("DELETE FROM pools_window WHERE id = ANY(%s)", [ids[0]])
    repaired += checks.execute(
        "UPDATE pools_window SET since = to_timestamp(0) WHERE id = ANY(%s)", [ids[1]]
    )
    repairs.record_pool_repairs(pool_id for pool_id, _ in outdated + ahead_of_clock)
    return repaired


WINDOWS = checks.Check(
    code="windows",
    invariants="usage-adds-up",
    proves="The allocator cache has only families that its pools have, agrees with pool and cluster,"
    " and no window begins ahead of the clock.",
    find=checks.find_by_statement(f"""
        SELECT 'Pool ' || p.name || ' has a window of IPv' || w.family || ', but no mask size of it',
            p.id {_WITHOUT_FAMILY}
        UNION ALL
        SELECT 'The IPv' || w.family || ' window of pool ' || p.name || ' begins ahead of the clock',
            p.id {_AHEAD_OF_CLOCK}
        UNION ALL
        SELECT 'The IPv' || w.family || ' allocator cache of pool ' || p.name
            || ' differs from the pool or its cluster', p.id {_OUTDATED_CACHE}
    """),  # noqa: S608  # constants of this module
    mend=_repair_windows,
)

CHECKS = [CHECK, WINDOWS]
