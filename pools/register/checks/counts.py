"""The numbers of pools: what is counted sums to the capacity, and what was counted is not old."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pools.models import Pool
from pools.platform import events
from pools.platform.checks import checks, repairs
from pools.register import usage
from pools.register.allocator import window

_OLD = "1 hour"  # a count is made every half minute


def _find(pool_id: int) -> Iterator[checks.Violation]:
    pool = Pool.objects.select_related("cluster").filter(pk=pool_id).first()
    if pool is None:
        return
    counted = {family: numbers for family, *numbers in checks.rows(_COUNTED, {"pool": pool_id})}
    for family, family_usage in usage.of_pool(pool).items():
        held, cooling = counted.get(family, (0, 0))
        free = family_usage.capacity - held - cooling - family_usage.reserved
        name = f"Pool {pool}, IPv{family}"
        if (family_usage.held, family_usage.cooling) != (held, cooling):
            yield checks.Violation(
                f"{name}: {family_usage.held} held and {family_usage.cooling} cooling are said, there are {held} and {cooling}",
                pool_id,
            )
        if free < 0 or free != family_usage.free:
            yield checks.Violation(
                f"{name}: {held} held, {cooling} cooling, {family_usage.reserved} reserved and {family_usage.free} free"
                f" blocks do not sum to the capacity of {family_usage.capacity}",
                pool_id,
            )
    yield from (
        checks.Violation(text, pool_id) for (text,) in checks.rows(_KEPT, {"pool": pool_id})
    )


# Of its own, beside the one that pages ask (pools/register/usage.py).
_COUNTED = """
    SELECT family, count(*) FILTER (WHERE state = 'held'),
        count(*) FILTER (WHERE state = 'cooling' AND available_from > ipam_now())
    FROM pools_block WHERE pool_id = %(pool)s AND state IN ('held', 'cooling') GROUP BY family
"""
# A count of large pools is of its moment: no more can differ than has happened since. A transaction
# is dated by its beginning, hence the ten minutes.
_KEPT = f"""
    SELECT 'The count of IPv' || u.family || ' blocks ' || CASE
        WHEN CASE u.family WHEN 4 THEN p.mask_size_v4 ELSE p.mask_size_v6 END IS NULL
            THEN 'is of a family that the pool has not'
        WHEN u.counted_at < ipam_now() - interval '{_OLD}'
            THEN 'is of ' || to_char(u.counted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
        ELSE 'says ' || u.held || ' held, there are ' || n.held END
    FROM pools_poolusage u JOIN pools_pool p ON p.id = u.pool_id
    CROSS JOIN LATERAL (SELECT count(*) AS held FROM pools_block b
        WHERE b.pool_id = u.pool_id AND b.family = u.family AND b.state = 'held') n
    WHERE u.pool_id = %(pool)s AND (
        CASE u.family WHEN 4 THEN p.mask_size_v4 ELSE p.mask_size_v6 END IS NULL
        OR u.counted_at < ipam_now() - interval '{_OLD}'
        OR abs(n.held - u.held) > (SELECT count(*) FROM (
            SELECT FROM pools_blockevent e WHERE e.pool_id = u.pool_id
              AND e.pgh_created_at >= u.counted_at - interval '10 minutes'
            LIMIT abs(n.held - u.held)) s))
"""  # noqa: S608  # our words


def _mend(pool_id: int, _by: events.Author) -> int:
    """Count again; what is no count of this pool goes."""
    wrong = sum(1 for _ in checks.rows(_KEPT, {"pool": pool_id}))
    if wrong:
        usage.refresh()
        repairs.record_pool_repairs([pool_id])
    return wrong


CHECK = checks.Check(
    code="counts",
    invariants="usage-adds-up",
    proves="Held, cooling, reserved and free blocks of every pool sum to its capacity; the stored"
    " counts of large pools are of this hour and no further off than what happened since.",
    steps=checks.pools,
    find=_find,
    mend=_mend,
)

_ORPHANED = """
    FROM pools_window w JOIN pools_pool p ON p.id = w.pool_id
    WHERE CASE w.family WHEN 4 THEN p.mask_size_v4 WHEN 6 THEN p.mask_size_v6 END IS NULL
"""
_AHEAD = """
    FROM pools_window w JOIN pools_pool p ON p.id = w.pool_id
    WHERE w.since > ipam_clock() + interval '1 minute'
"""
_OTHERWISE = f"""
    FROM pools_window w JOIN pools_pool p ON p.id = w.pool_id
    JOIN pools_cluster c ON c.id = p.cluster_id
    WHERE w.pool_name IS NOT NULL AND ({", ".join(f"w.{column}" for column in window.NOTED)})
      IS DISTINCT FROM ({", ".join(window.NOTED.values())})
"""  # our names


def _mend_windows(_at: Any, _by: events.Author) -> int:
    gone = list(checks.rows(f"SELECT p.id, w.id {_ORPHANED} UNION SELECT p.id, w.id {_OTHERWISE}"))
    ahead = list(checks.rows(f"SELECT p.id, w.id {_AHEAD}"))
    ids = [[pk for _, pk in rows] for rows in (gone, ahead)]
    repaired = checks.execute("DELETE FROM pools_window WHERE id = ANY(%s)", [ids[0]])
    repaired += checks.execute(
        "UPDATE pools_window SET since = to_timestamp(0) WHERE id = ANY(%s)", [ids[1]]
    )
    repairs.record_pool_repairs(pool_id for pool_id, _ in gone + ahead)
    return repaired


WINDOWS = checks.Check(
    code="windows",
    invariants="usage-adds-up",
    proves="The allocator's notes are of families that their pools have, say what pool and cluster say,"
    " and their windows do not begin ahead of the clock.",
    find=checks.find_by_statement(
        f"SELECT 'Pool ' || p.name || ' has a window of IPv' || w.family || ', which it has not', p.id {_ORPHANED}"
        f" UNION ALL SELECT 'The IPv' || w.family || ' window of pool ' || p.name || ' begins ahead of the clock', p.id {_AHEAD}"
        f" UNION ALL SELECT 'The IPv' || w.family || ' note of pool ' || p.name || ' says otherwise than the pool or its cluster', p.id {_OTHERWISE}"
    ),
    mend=_mend_windows,
)

CHECKS = [CHECK, WINDOWS]
