"""Sealing: segments of events, each with a digest that covers the previous one (docs/reference/history-and-audit.md)."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

from django.db import transaction

from pools.models import AuditLayout, AuditSegment, AuditState, SegmentName, SegmentTally
from pools.platform import advisory_locks, database
from pools.platform.alerts import outbox
from pools.platform.audit import event_rows, horizon
from pools.platform.audit.event_rows import Row

log = logging.getLogger(__name__)

SIZE = 1000  # largest number of events in a segment
GENESIS = "0" * 64
LONGEST = 253  # characters of a name that segments are looked up by


@dataclass(frozen=True)
class SealResult:
    """The result of a sealing; `waiting` is True while a transaction that drew a number is open."""

    segments: int = 0
    events: int = 0
    waiting: bool = False
    busy: bool = False  # another process is sealing


def seal(*, seconds: float = 20) -> SealResult:
    """Seal all complete events, for about `seconds` at most.

    Each batch is one transaction: a process that is killed leaves no partial batch, and the next
    sealing continues.
    """
    deadline = time.monotonic() + seconds
    segments = events = 0
    while True:
        new_segments, result = _seal_batch()
        segments += len(new_segments)
        events += sum(segment.count for segment in new_segments)
        _log_anchors(new_segments)
        if not new_segments or time.monotonic() > deadline:
            return SealResult(segments, events, result.waiting, result.busy)


@transaction.atomic
def _seal_batch() -> tuple[list[AuditSegment], SealResult]:
    if not database.call("SELECT pg_try_advisory_xact_lock(%s)", [advisory_locks.AUDIT_SEALING]):
        return [], SealResult(busy=True)
    state, _ = AuditState.objects.get_or_create(pk=1)
    complete = horizon.advance(state)
    last = AuditSegment.objects.order_by("-id").first()
    segments: list[AuditSegment] = []
    if complete is not None:
        segments = _create_segments(last, complete, state)
    state.save()
    return segments, SealResult(waiting=complete is None)


def _create_segments(
    last: AuditSegment | None, complete: int, state: AuditState
) -> list[AuditSegment]:
    layout, previous = _layout(), last
    after = last.last_id if last else 0
    rows = event_rows.read_rows(after, complete, layout=layout.columns, limit=event_rows.PAGE)
    now = database.now()
    parts = list(_split(rows, last.day if last else date.min, now.astimezone(UTC).date()))
    segments: list[AuditSegment] = []
    for number, (day, part) in enumerate(parts, start=1):
        # No event can appear any more between the last of all events and the horizon.
        to_the_end = number == len(parts) and len(rows) < event_rows.PAGE
        through = complete if to_the_end else part[-1].number
        state.lag_seconds = max(state.lag_seconds, _lag(last, part))
        last = _segment(last, day, part, through=through, layout=layout, now=now)
        segments.append(last)
    AuditSegment.objects.bulk_create(segments)
    if segments and (previous is None or _hour(previous.sealed_at) != _hour(now)):
        outbox.write_anchor(now)
    _index_names(zip(segments, (part for _, part in parts), strict=True))
    if last is not None:
        state.segment = last.pk
    return segments


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _split(rows: list[Row], day: date, today: date) -> Iterator[tuple[date, list[Row]]]:
    """Yield parts of at most SIZE events of one day; days never decrease and never exceed today."""
    part: list[Row] = []
    for row in rows:
        row_day = max(day, min(row.created_at.astimezone(UTC).date(), today))
        if part and (row_day != day or len(part) == SIZE):
            yield day, part
            part = []
        day = row_day
        part.append(row)
    if part:
        yield day, part


def _lag(last: AuditSegment | None, rows: list[Row]) -> float:
    """Return the most seconds by which an event is older than an event with a smaller number."""
    newest = last.newest_at if last else rows[0].created_at
    lag = 0.0
    for row in rows:
        newest = max(newest, row.created_at)
        lag = max(lag, (newest - row.created_at).total_seconds())
    return lag


def _segment(
    last: AuditSegment | None,
    day: date,
    rows: list[Row],
    *,
    through: int,
    layout: AuditLayout,
    now: datetime,
) -> AuditSegment:
    newest = max(row.created_at for row in rows)
    after = last.last_id if last else 0
    packed = event_rows.pack_marks(after, rows)
    segment = AuditSegment(
        id=last.pk + 1 if last else 1,
        day=day,
        after_id=after,
        last_id=through,
        count=len(rows),
        layout=layout,
        oldest_at=min(row.created_at for row in rows),
        newest_at=max(newest, last.newest_at) if last else newest,
        marks=packed,
        marks_digest=hashlib.sha256(packed).hexdigest(),
        sealed_at=now,
    )
    segment.digest = digest(last.digest if last else GENESIS, segment)
    return segment


def digest(before: str, segment: AuditSegment) -> str:
    """Return SHA-256 over the previous digest, the segment's own columns, and its marks (all as hex)."""
    content = [
        segment.pk,
        segment.day.isoformat(),
        segment.after_id,
        segment.last_id,
        segment.count,
        segment.layout.columns,
        *(
            moment.astimezone(UTC).isoformat()
            for moment in (segment.oldest_at, segment.newest_at, segment.sealed_at)
        ),
        segment.marks_digest,
    ]
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()


def _layout() -> AuditLayout:
    columns = event_rows.current_layout()
    newest = AuditLayout.objects.order_by("-id").first()
    if newest is not None and newest.columns == columns:
        return newest
    return AuditLayout.objects.create(columns=columns, made_at=database.now())


def _index_names(sealed: Iterable[tuple[AuditSegment, list[Row]]]) -> None:
    """Store what segments are looked up by: the names in their events, and the changes of pools."""
    names: list[tuple[str, str, int]] = []
    tallies: list[tuple[int, int, int, int]] = []
    for segment, rows in sealed:
        held: Counter[tuple[int, int]] = Counter()
        names_found: set[tuple[str, str]] = set()
        for row in rows:
            names_found |= {
                ("actor", row.actor),
                ("org", row.org),
                ("env", row.env),
                ("uid", row.uid),
            }
            if row.pool_id is not None:
                held[row.pool_id, row.family] += row.held
        names += [(kind, name[:LONGEST], segment.pk) for kind, name in sorted(names_found) if name]
        tallies += [
            (pool, family, segment.pk, count) for (pool, family), count in held.items() if count
        ]
    database.copy(SegmentName._meta.db_table, ("kind", "name", "segment_id"), dict.fromkeys(names))
    database.copy(SegmentTally._meta.db_table, ("pool_id", "family", "segment_id", "held"), tallies)


def _log_anchors(segments: list[AuditSegment]) -> None:
    """Log the anchors: a log that is kept elsewhere shows that a chain was cut or rewritten."""
    for segment in {segment.day: segment for segment in segments}.values():  # the last of each day
        log.info(
            "audit anchor: day %s event %s anchor %s:%s",
            segment.day,
            segment.last_id,
            segment.pk,
            segment.digest,
        )
