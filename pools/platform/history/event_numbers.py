"""Which event numbers can belong to a period of time, computed from the segments of the audit chain.

Event numbers follow the times of events roughly, not exactly: a transaction dates its events by its
beginning. `AuditSegment.newest_at` never decreases, and no event is older than an earlier one by more
than `AuditState.lag_seconds`. From both follow exact bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import QuerySet

from pools.models import AuditSegment, AuditState, SegmentName
from pools.platform.audit import event_rows, sealing

Span = tuple[int, int]  # event numbers: greater than the first, at most the second
LEAST = 0
_SLICE = 20_000  # unsealed event numbers that are searched at once
_SPANS_PER_BATCH = 40


def span_between(since: datetime | None, until: datetime | None) -> Span:
    """Return the event numbers that events of [since, until) can have; unsealed events are included."""
    after, last_number = LEAST, event_rows.newest_number()
    rows = AuditSegment.objects.order_by("newest_at", "id")
    if since is not None:
        segment_after = rows.filter(newest_at__gte=since).values_list("after_id", flat=True).first()
        after = sealed_through() if segment_after is None else segment_after
    if until is not None:
        end = until + timedelta(seconds=lag_seconds())
        segment_last = rows.filter(newest_at__gte=end).values_list("last_id", flat=True).first()
        last_number = last_number if segment_last is None else segment_last
    return after, last_number


def lag_seconds() -> float:
    """Return by how many seconds an event can be older than an event with a smaller number."""
    seconds = AuditState.objects.filter(pk=1).values_list("lag_seconds", flat=True).first()
    return seconds or 0.0


def sealed_through() -> int:
    """Return the last event number that is sealed; 0 if none is."""
    newest = AuditSegment.objects.order_by("-id").values_list("last_id", flat=True).first()
    return newest or LEAST


def spans_naming(names: dict[str, str], span: Span) -> Iterator[list[Span]]:
    """Yield the parts of a span whose events can have all of these names, in batches, newest first.

    Unsealed events have no index of names: their numbers are yielded as slices, whatever they name.
    """
    low, high = span
    sealed = max(low, min(high, sealed_through()))
    while high > sealed:
        beneath = max(sealed, high - _SLICE)
        yield [(beneath, high)]
        high = beneath
    oldest = None
    while True:
        rows = _segments_naming(names).filter(last_id__gt=low, after_id__lt=high).order_by("-id")
        if oldest is not None:
            rows = rows.filter(pk__lt=oldest)
        segments = list(rows.values_list("pk", "after_id", "last_id")[:_SPANS_PER_BATCH])
        if not segments:
            return
        yield [(max(low, after), min(high, last)) for _, after, last in segments]
        oldest = segments[-1][0]


def slices(span: Span) -> Iterator[list[Span]]:
    """Yield a span in parts that double in size, newest first, so that a frequent match reads little."""
    low, high = span
    size = _SLICE
    while high > low:
        yield [(max(low, high - size), high)]
        high, size = high - size, 2 * size


def _segments_naming(names: dict[str, str]) -> QuerySet[AuditSegment]:
    rows = AuditSegment.objects.all()
    for kind, name in names.items():
        entries = SegmentName.objects.filter(kind=kind, name=name[: sealing.LONGEST])
        rows = rows.filter(pk__in=entries.values("segment_id"))
    return rows
