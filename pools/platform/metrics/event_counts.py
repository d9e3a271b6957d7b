"""What happened to blocks, counted from the event tables: once each, and never on the hot path.

A transaction may commit later than one that drew higher numbers (pools/platform/audit/horizon.py). So a
number is noted together with those who were drawing, and everything up to it is counted when they ended.
Whoever counts holds a lock meanwhile; totals and position are written in one transaction. Events that
are deleted later (their retention) stay counted.
"""

from __future__ import annotations

import time

from django.db import connection, transaction

from pools.platform import advisory_locks
from pools.platform.audit import event_rows, horizon
from pools.sql import statements

LOG = "events"
STEP = 100_000  # numbers that are counted in one transaction


def count(*, seconds: float = 0.5) -> bool:
    """Add the events since the last time to the totals; False when more are left after that time.

    Whoever comes while another counts waits, and finds the totals of that one. Call it outside of
    transactions of REPEATABLE READ, which do not see what others did meanwhile.
    """
    until = time.monotonic() + seconds
    while not _step():
        if time.monotonic() > until:
            return False
    return True


def _step() -> bool:
    """Whether all was counted that can be."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [advisory_locks.EVENT_COUNTS])
        cursor.execute(_POSITION, [LOG])
        counted, seen, waits_for = cursor.fetchone() or (0, 0, [])
        complete = counted
        others = horizon.open_transactions()
        if horizon.PREPARED not in others and not others & set(waits_for):
            # What was noted is complete; with luck everything up to now is.
            complete = seen
            seen = event_rows.newest_number()
            waits_for = sorted(horizon.open_transactions())
            complete = seen if not waits_for else complete
        upto = min(complete, counted + STEP)
        if upto > counted:
            cursor.execute(_COUNT, {"after": counted, "upto": upto})
        cursor.execute(_KEEP, [LOG, upto, seen, waits_for])
    return upto >= complete


_POSITION = "SELECT counted, seen, waits_for FROM pools_counteduntil WHERE log = %s"
_KEEP = """
    INSERT INTO pools_counteduntil (log, counted, seen, waits_for) VALUES (%s, %s, %s, %s)
    ON CONFLICT (log) DO UPDATE
    SET counted = EXCLUDED.counted, seen = EXCLUDED.seen, waits_for = EXCLUDED.waits_for
"""
# Labels as pools.platform.process_metrics writes them; in the order of the unique index, as it does.
_COUNT = statements.read("pools/count_events")
