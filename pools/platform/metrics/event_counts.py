"""Counters of block events, counted from the event tables: each event once, and never on the hot path.

A transaction can commit later than one that drew higher numbers (pools/platform/audit/horizon.py). So the last
number is stored together with the transactions that had drawn numbers, and the events up to it are counted when
these have ended. Counting holds a lock; totals and position are written in one transaction. Events that the
retention deletes later stay counted.
"""

from __future__ import annotations

import time

from django.db import connection, transaction

from pools.platform import advisory_locks
from pools.platform.audit import event_rows, horizon
from pools.sql import statements

LOG = "events"
STEP = 100_000  # event numbers that one transaction counts


def count(*, seconds: float = 0.5) -> bool:
    """Add new events to the totals; False if some are left after `seconds`.

    A concurrent call waits and then finds the totals of the first one. Call it outside transactions of
    REPEATABLE READ, which do not see the rows that others commit meanwhile.
    """
    deadline = time.monotonic() + seconds
    while not _step():
        if time.monotonic() > deadline:
            return False
    return True


def _step() -> bool:
    """Count one step of events. Return True if all complete events are counted."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [advisory_locks.EVENT_COUNTS])
        cursor.execute(_POSITION, [LOG])
        counted, noted, waits_for = cursor.fetchone() or (0, 0, [])
        complete = counted
        transactions = horizon.open_transactions()
        if horizon.PREPARED not in transactions and not transactions & set(waits_for):
            # The noted number is complete; if no transaction is open, the newest number is too.
            complete = noted
            noted = event_rows.newest_number()
            waits_for = sorted(horizon.open_transactions())
            complete = noted if not waits_for else complete
        last = min(complete, counted + STEP)
        if last > counted:
            cursor.execute(_COUNT, {"after": counted, "upto": last})
        cursor.execute(_STORE, [LOG, last, noted, waits_for])
    return last >= complete


_POSITION = "SELECT counted, assigned, waits_for FROM pools_counteduntil WHERE log = %s"
_STORE = """
    INSERT INTO pools_counteduntil (log, counted, assigned, waits_for) VALUES (%s, %s, %s, %s)
    ON CONFLICT (log) DO UPDATE
    SET counted = EXCLUDED.counted, assigned = EXCLUDED.assigned, waits_for = EXCLUDED.waits_for
"""
# Labels as pools.platform.process_metrics writes them, in the order of the unique index.
_COUNT = statements.read("pools/count_events")
