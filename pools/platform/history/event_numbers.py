"""Which numbers of events can lie in a time, told by the segments of the audit chain.

Events are numbered about in the order of their times, not quite: a transaction dates its events by
its beginning. `AuditSegment.newest_at` never goes back, and no event is older than one before it by
more than `AuditState.lag_seconds`, which makes exact bounds of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import QuerySet

from pools.models import AuditSegment, AuditState, SegmentName
from pools.platform.audit import event_rows, sealing

Span = tuple[int, int]  # numbers: beyond the first one, up to the second one
LEAST = 0
_SLICE = 20_000  # numbers that are not sealed yet, looked through at once
_TOGETHER = 40  # spans of one statement


def within(since: datetime | None, until: datetime | None) -> Span:
    """The numbers that events of [since, until) can have, as far as they are sealed."""
    after, through = LEAST, event_rows.newest_number()
    rows = AuditSegment.objects.order_by("newest_at", "id")
    if since is not None:
        first = rows.filter(newest_at__gte=since).values_list("after_id", flat=True).first()
        after = sealed_through() if first is None else first
    if until is not None:
        end = until + timedelta(seconds=lag())
        last = rows.filter(newest_at__gte=end).values_list("last_id", flat=True).first()
        through = through if last is None else last
    return after, through


def lag() -> float:
    """Seconds."""
    found = AuditState.objects.filter(pk=1).values_list("lag_seconds", flat=True).first()
    return found or 0.0


def sealed_through() -> int:
    """The last number that is sealed."""
    newest = AuditSegment.objects.order_by("-id").values_list("last_id", flat=True).first()
    return newest or LEAST


def naming(names: dict[str, str], span: Span) -> Iterator[list[Span]]:
    """Parts of a span in which events with all of these names are, newest first, some at a time.

    What is not sealed yet is told as slices, whatever is in them.
    """
    low, high = span
    sealed = max(low, min(high, sealed_through()))
    while high > sealed:
        beneath = max(sealed, high - _SLICE)
        yield [(beneath, high)]
        high = beneath
    before = None
    while True:
        rows = _named(names).filter(last_id__gt=low, after_id__lt=high).order_by("-id")
        if before is not None:
            rows = rows.filter(pk__lt=before)
        found = list(rows.values_list("pk", "after_id", "last_id")[:_TOGETHER])
        if not found:
            return
        yield [(max(low, after), min(high, last)) for _, after, last in found]
        before = found[-1][0]


def slices(span: Span) -> Iterator[list[Span]]:
    """A span in ever larger parts, newest first: of what is often found little is read."""
    low, high = span
    size = _SLICE
    while high > low:
        yield [(max(low, high - size), high)]
        high, size = high - size, 2 * size


def _named(names: dict[str, str]) -> QuerySet[AuditSegment]:
    rows = AuditSegment.objects.all()
    for kind, name in names.items():
        named = SegmentName.objects.filter(kind=kind, name=name[: sealing.LONGEST])
        rows = rows.filter(pk__in=named.values("segment_id"))
    return rows
