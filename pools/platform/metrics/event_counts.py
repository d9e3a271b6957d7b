"""Counters of block events, counted from the event tables: each event once, and never on the hot path.

A transaction can commit later than one that drew higher numbers, so only complete numbers are counted
(pools/platform/history/event_numbers.py). Counting locks the row of the position; totals and position are written in
one transaction. Events that the retention deletes later stay counted.
"""

from __future__ import annotations

import time

from django.db import connection, transaction

from pools.models import CountedUntil
from pools.platform.history import event_numbers
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
        position, _ = CountedUntil.objects.select_for_update().get_or_create(log=LOG)
        complete = event_numbers.complete_number(position)
        last = min(complete, position.counted + STEP)
        if last > position.counted:
            cursor.execute(_COUNT, {"after": position.counted, "upto": last})
        position.counted = last
        position.save()
    return last >= complete


# Labels as pools.platform.process_metrics writes them, in the order of the unique index.
_COUNT = statements.read("pools/count_events")
