"""Numbers of events: up to which number the log is complete, and which numbers can belong to a period of time.

A transaction draws the numbers of its events from a sequence, and they become visible when it commits, thus
out of order. A transaction that draws a number holds a lock on the sequence from before the draw until its
end (PostgreSQL: `nextval` takes ROW EXCLUSIVE). Therefore the last number is read first, and the holders of
such locks afterwards. When these transactions have ended, every event up to that number is visible or will
never exist. Long readers, and writers that record no event, delay nothing.
"""

from collections.abc import Iterator
from datetime import datetime

from pools.models import AuditSegment, CountedUntil
from pools.platform import database
from pools.sql import statements

Span = tuple[int, int]  # event numbers: greater than the first, at most the second
LEAST = 0
_SLICE = 20_000  # event numbers that are searched at once
_PREPARED = "prepared"  # a two-phase commit: a prepared transaction has lost its virtual id


def newest_number() -> int:
    """Return the last number that was drawn for an event; 0 before the first."""
    number: int = database.call(
        "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END"
        " FROM pools_event_number",
        [],
    )
    return number


def complete_number(position: CountedUntil) -> int:
    """Return the number up to which no event can appear any more; `position.counted` while that is unknown.

    Updates `position`, whose row the caller has locked and saves: the transactions that it waits for are stored,
    so that no worker has to wait for them.
    """
    drawn = newest_number()
    open_now = _open_transactions()  # after the number was read, never before
    if _PREPARED in open_now or open_now & {*position.waits_for}:
        return position.counted
    complete = position.assigned if open_now else drawn
    position.assigned, position.waits_for = drawn, sorted(open_now)
    return complete


def _open_transactions() -> set[str]:
    """Return the virtual ids of other open transactions that have drawn an event number."""
    rows = database.rows(_HOLDERS, {"prepared": _PREPARED}, prepare=False)
    return {name for (name,) in rows}


_HOLDERS = statements.read("pools/transactions_with_event_numbers")


def span_between(since: datetime | None, until: datetime | None) -> Span:
    """Return the event numbers that events of [since, until) can have.

    Event numbers follow the times of events only roughly: a transaction dates its events by its beginning. The
    segments of the audit chain have the times of their oldest and newest events, from which follow exact bounds.
    """
    after, last_number = LEAST, newest_number()
    segments = AuditSegment.objects.order_by("id")
    if since is not None:
        newer = segments.filter(newest_at__gte=since).values_list("after_id", flat=True).first()
        after = sealed_through() if newer is None else newer
    if until is not None and segments.filter(newest_at__gte=until).exists():
        older = segments.filter(oldest_at__lt=until).values_list("last_id", flat=True)
        last_number = older.last() or LEAST
    return after, last_number


def sealed_through() -> int:
    """Return the last event number that is sealed; 0 if none is."""
    return AuditSegment.objects.order_by("id").values_list("last_id", flat=True).last() or LEAST


def slices(span: Span) -> Iterator[Span]:
    """Yield a span in parts that double in size, newest first, so that a frequent match reads little."""
    low, high = span
    size = _SLICE
    while high > low:
        yield max(low, high - size), high
        high, size = high - size, 2 * size
