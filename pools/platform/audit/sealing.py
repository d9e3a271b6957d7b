"""Sealing: segments of events, each with a digest that covers the previous one (docs/reference/history-and-audit.md).

The digest of an event covers its table and the JSON of its columns as PostgreSQL writes it (`to_jsonb`, in UTC),
so that a change of any column changes the digest.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache

from django.db import connection, transaction

from pools.models import AuditLayout, AuditSegment, CountedUntil
from pools.platform import database, events
from pools.platform.history import event_numbers

log = logging.getLogger(__name__)

LOG = "audit"  # the row of CountedUntil with the number of the last sealed event
SIZE = 1000  # largest number of events in a segment
PAGE = 10_000  # events that are sealed in one transaction
GENESIS = "0" * 64
MARK = 16  # leading bytes of an event's SHA-256 that a segment stores
_DISTANCE = 4  # bytes of an event number, relative to the beginning of its segment

Layout = dict[str, list[str]]


@dataclass(frozen=True)
class SealedEvent:
    """An event as the chain reads it; `mark` is the beginning of its digest."""

    number: int
    table: str
    mark: bytes
    created_at: datetime


def seal(*, seconds: float = 20) -> int:
    """Seal all complete events, for about `seconds` at most; return their number.

    Each batch is one transaction: a process that is killed leaves no partial batch, and the next sealing
    continues. A second process waits for the batch of the first one.
    """
    deadline, total = time.monotonic() + seconds, 0
    while count := _seal_batch():
        total += count
        if time.monotonic() > deadline:
            break
    return total


@transaction.atomic
def _seal_batch() -> int:
    position, _ = CountedUntil.objects.select_for_update().get_or_create(log=LOG)
    complete = event_numbers.complete_number(position)
    layout, now = _layout(), database.now()
    rows = read_events(position.counted, complete, layout.columns, limit=PAGE)
    segments: list[AuditSegment] = []
    last = AuditSegment.objects.last()
    for part in (parts := list(_divide(rows))):
        # No event can appear any more between the last of all events and the complete number.
        at_end = part is parts[-1] and len(rows) < PAGE
        through = complete if at_end else part[-1].number
        last = _segment(last, part, (position.counted, through), layout, now)
        position.counted = through
        segments.append(last)
    AuditSegment.objects.bulk_create(segments)
    position.save()
    if segments:
        # A log that is kept elsewhere shows that a chain was cut off or written anew.
        newest = segments[-1]
        log.info("audit: sealed the events up to %s, anchor %s", newest.last_id, newest.anchor)
    return len(rows)


def _divide(rows: list[SealedEvent]) -> Iterator[list[SealedEvent]]:
    """Yield up to SIZE events each, of one day: retention deletes the events of whole segments."""
    part: list[SealedEvent] = []
    for row in rows:
        if len(part) == SIZE or (part and _day(row) > _day(part[0])):
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def _day(event: SealedEvent) -> date:
    return event.created_at.astimezone(UTC).date()


def _segment(
    before: AuditSegment | None,
    rows: list[SealedEvent],
    span: event_numbers.Span,
    layout: AuditLayout,
    now: datetime,
) -> AuditSegment:
    newest = max(row.created_at for row in rows)
    after, through = span
    marks = b"".join((row.number - after).to_bytes(_DISTANCE, "big") + row.mark for row in rows)
    segment = AuditSegment(
        id=before.pk + 1 if before else 1,
        after_id=after,
        last_id=through,
        count=len(rows),
        layout=layout,
        oldest_at=min(row.created_at for row in rows),
        newest_at=max(newest, before.newest_at) if before else newest,
        marks=marks,
        marks_digest=hashlib.sha256(marks).hexdigest(),
        sealed_at=now,
    )
    segment.digest = digest(before.digest if before else GENESIS, segment)
    return segment


def digest(before: str, segment: AuditSegment) -> str:
    """Return SHA-256 over the previous digest, the segment's own columns, and its marks (all as hex)."""
    times = (segment.oldest_at, segment.newest_at, segment.sealed_at)
    content = [
        segment.pk,
        segment.after_id,
        segment.last_id,
        segment.count,
        segment.layout.columns,
        *(moment.astimezone(UTC).isoformat() for moment in times),
        segment.marks_digest,
    ]
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()


def unpack_marks(segment: AuditSegment) -> dict[int, bytes]:
    """Return the marks of a segment's events by their numbers."""
    marks, width = bytes(segment.marks), _DISTANCE + MARK
    entries = (marks[start : start + width] for start in range(0, len(marks), width))
    return {
        segment.after_id + int.from_bytes(entry[:_DISTANCE], "big"): entry[_DISTANCE:]
        for entry in entries
    }


def current_layout() -> Layout:
    """Return the columns of each event table as this version defines them."""
    return {
        model._meta.db_table: sorted(field.column for field in model._meta.concrete_fields)
        for model in events.event_models().values()
    }


def _layout() -> AuditLayout:
    columns = current_layout()
    newest = AuditLayout.objects.order_by("-id").first()
    if newest is not None and newest.columns == columns:
        return newest
    return AuditLayout.objects.create(columns=columns, made_at=database.now())


def read_events(
    after: int | None, through: int, layout: Layout, *, limit: int
) -> list[SealedEvent]:
    """Return the first `limit` events with numbers in (after, through], by number; None: no lower bound."""
    with connection.cursor() as cursor:  # to_jsonb writes timestamps in the session's time zone
        cursor.execute("SET timezone TO 'UTC'")
    statement = _statement(tuple((table, tuple(columns)) for table, columns in layout.items()))
    values = {"a": -(1 << 63) if after is None else after, "b": through, "n": limit}
    rows = database.rows(statement, values, prepare=False)
    return [
        SealedEvent(number, table, hashlib.sha256(f"{table}\n{text}".encode()).digest()[:MARK], at)
        for number, table, text, at in rows
    ]


@lru_cache(maxsize=8)
def _statement(layout: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    """Return one statement over all event tables, ordered by number through their primary keys."""
    parts = []
    for table, columns in layout:
        names = ", ".join(f'"{column}"' for column in columns)
        parts.append(
            f"(SELECT r.pgh_id, '{table}', to_jsonb(r)::text, r.pgh_created_at"  # noqa: S608  # our own names
            f' FROM (SELECT {names} FROM "{table}"'
            "  WHERE pgh_id > %(a)s AND pgh_id <= %(b)s ORDER BY pgh_id LIMIT %(n)s) r)"
        )
    return f"{' UNION ALL '.join(parts)} ORDER BY 1 LIMIT %(n)s"
