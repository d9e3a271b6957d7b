"""Up to which number no event can appear any more, however late somebody commits.

A number is drawn from the sequence inside a transaction and seen when that commits, so numbers become
visible out of order. Whoever has drawn one holds a lock on the sequence until the end of the
transaction (PostgreSQL: `nextval` takes ROW EXCLUSIVE), and takes it before drawing. So: read the last
number first, then who holds such a lock; when these have ended, all events up to that number are there
or will never be. Long readers, and writers that record nothing, hold up nothing.
"""

from __future__ import annotations

from pools.models import AuditState
from pools.platform import database
from pools.platform.audit import event_rows
from pools.sql import statements


def advance(state: AuditState) -> int | None:
    """The number up to which the log is complete, None while it is not known; changes `state`.

    What it waits for is kept in the row, so that no worker sits and waits.
    """
    drawn = event_rows.newest_number()
    others = drawing()  # after the number, never before
    if PREPARED in others or others & set(state.waits_for):
        return None
    complete = state.horizon if others else drawn
    state.horizon, state.waits_for = drawn, sorted(others)
    return complete


PREPARED = "prepared"  # for two-phase commit: it lost the id by which it was known while it ran


def drawing() -> set[str]:
    """Virtual ids of the transactions, but our own, that have drawn a number and have not ended."""
    found = database.rows(_HOLDERS, {"prepared": PREPARED}, prepare=False)
    return {name for (name,) in found}


_HOLDERS = statements.read("pools/transactions_with_event_numbers")
