"""The horizon: the event number up to which no event can appear any more, however late a transaction commits.

A transaction draws the numbers of its events from a sequence, and they become visible when it commits, thus
out of order. A transaction that draws a number holds a lock on the sequence from before the draw until its
end (PostgreSQL: `nextval` takes ROW EXCLUSIVE). Therefore the last number is read first, and the holders of
such locks afterwards. When these transactions have ended, every event up to that number is visible or will
never exist. Long readers, and writers that record no event, delay nothing.
"""

from __future__ import annotations

from pools.models import AuditState
from pools.platform import database
from pools.platform.audit import event_rows
from pools.sql import statements


def advance(state: AuditState) -> int | None:
    """Update `state` and return the number up to which the log is complete; None while it is unknown.

    The transactions that it waits for are stored in the row, so that no worker has to wait for them.
    """
    drawn = event_rows.newest_number()
    transactions = open_transactions()  # after the number was read, never before
    if PREPARED in transactions or transactions & set(state.waits_for):
        return None
    complete = state.horizon if transactions else drawn
    state.horizon, state.waits_for = drawn, sorted(transactions)
    return complete


PREPARED = "prepared"  # a two-phase commit: a prepared transaction has lost its virtual id


def open_transactions() -> set[str]:
    """Return the virtual ids of other open transactions that have drawn an event number."""
    rows = database.rows(_HOLDERS, {"prepared": PREPARED}, prepare=False)
    return {name for (name,) in rows}


_HOLDERS = statements.read("pools/transactions_with_event_numbers")
