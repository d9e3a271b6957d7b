"""The audit chain: segments of events, each with a digest that covers the previous one (docs/reference/history-and-audit.md).

`seal` makes segments of complete events; `verify` computes them again, newest first, and reports every difference. The
digest of an event covers its table and the JSON of its columns as PostgreSQL writes it (`to_jsonb`, in UTC), so that a
change of any column changes the digest.
"""

import hashlib
import json
import logging
import math
import re
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import Max

from pools.core import errors
from pools.models import AuditLayout, AuditSegment, CountedUntil
from pools.platform import checks, database, events
from pools.platform.history import event_numbers

log = logging.getLogger(__name__)

LOG = "audit"  # the row of CountedUntil with the number of the last sealed event
SIZE = 1000  # largest number of events in a segment
SHOWN = 20  # event numbers that a fault lists
_GENESIS = "0" * 64
_MARK = struct.Struct(">q16s")  # the number of an event, and the first 16 bytes of its SHA-256
# Checks that compare rows of the register with the events of the log.
_TABLE_CHECKS = ("history", "event_blocks", "row_history")
_ANCHOR = re.compile(r"(?P<segment>[0-9]{1,18}):(?P<digest>[0-9a-f]{64})")

Layout = dict[str, list[str]]


class SealedEvent(NamedTuple):
    """An event as the chain reads it; `mark` is the beginning of its digest."""

    number: int
    mark: bytes
    created_at: datetime  # UTC


@dataclass(frozen=True)
class Fault:
    """A difference; `numbers` are the first events that it concerns, of `count`."""

    code: str
    message: str
    segment: int | None = None
    numbers: list[int] = field(default_factory=list)
    count: int = 1


@dataclass
class Report:
    """The result of a verification, and what it could not check."""

    segments: int = 0
    events: int = 0
    purged: int = 0  # events that the retention deleted
    unsealed: int = 0  # events after the last segment
    unchecked: int = 0  # the last of the segments that are too old, or that no time was left for
    anchor: str = ""  # of the last segment
    faults: list[Fault] = field(default_factory=list)


def seal(*, seconds: float = 20) -> int:
    """Seal all complete events, for about `seconds` at most; return their number.

    Each segment is one transaction: a process that is killed leaves no partial segment, and the next sealing
    continues. A second process waits for the segment of the first one.
    """
    deadline, total = time.monotonic() + seconds, 0
    while count := _seal_segment():
        total += count
        if time.monotonic() > deadline:
            break
    if total and (last := AuditSegment.objects.defer("marks").last()):
        # A log that is kept elsewhere shows that a chain was cut off or written anew.
        log.info("audit: sealed the events up to %s, anchor %s", last.last_id, last.anchor)
    return total


@transaction.atomic
def _seal_segment() -> int:
    position, _ = CountedUntil.objects.select_for_update().get_or_create(log=LOG)
    complete = event_numbers.complete_number(position)
    layout, _ = AuditLayout.objects.get_or_create(columns=current_columns())
    rows = read_events(position.counted, complete, layout.columns, limit=SIZE)
    # Events of one day: the retention deletes those of whole segments.
    rows = [*takewhile(lambda row: row.created_at.date() <= rows[0].created_at.date(), rows)]
    if rows:
        before = AuditSegment.objects.defer("marks").last()
        times = [row.created_at for row in rows]
        segment = AuditSegment(
            id=before.pk + 1 if before else 1,
            after_id=position.counted,
            last_id=rows[-1].number,
            count=len(rows),
            layout=layout,
            oldest_at=min(times),
            newest_at=max([*times, before.newest_at] if before else times),
            marks=b"".join(_MARK.pack(row.number, row.mark) for row in rows),
        )
        segment.digest = _digest(before, segment)
        segment.save(force_insert=True)
        position.counted = segment.last_id
    position.save()
    return len(rows)


def _digest(before: AuditSegment | None, segment: AuditSegment) -> str:
    """Return SHA-256, as hex, over the previous digest and all that the segment says about its events."""
    content = [
        *(segment.pk, segment.after_id, segment.last_id, segment.count, segment.layout.columns),
        *(segment.oldest_at.isoformat(), segment.newest_at.isoformat(), bytes(segment.marks).hex()),
    ]
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(f"{before.digest if before else _GENESIS}\n{text}".encode()).hexdigest()


def current_columns() -> Layout:
    """Return the columns of each event table as this version defines them."""
    return {
        model._meta.db_table: sorted(field.column for field in model._meta.concrete_fields)
        for model in events.event_models().values()
    }


def read_events(
    after: int | None, through: int, layout: Layout, *, limit: int
) -> list[SealedEvent]:
    """Return the first `limit` events with numbers in (after, through], by number; None: no lower bound."""
    with connection.cursor() as cursor:  # to_jsonb writes timestamps in the session's time zone
        cursor.execute("SET timezone TO 'UTC'")
    parts = []
    for table, columns in layout.items():
        names = ", ".join(f'"{column}"' for column in columns)
        parts.append(
            f"(SELECT r.pgh_id, '{table}', to_jsonb(r)::text, r.pgh_created_at"  # noqa: S608  # our own names
            f' FROM (SELECT {names} FROM "{table}"'
            "  WHERE pgh_id > %(a)s AND pgh_id <= %(b)s ORDER BY pgh_id LIMIT %(n)s) r)"
        )
    values = {"a": -(1 << 63) if after is None else after, "b": through, "n": limit}
    statement = f"{' UNION ALL '.join(parts)} ORDER BY 1 LIMIT %(n)s"
    return [
        SealedEvent(number, hashlib.sha256(f"{table}\n{text}".encode()).digest()[:16], created_at)
        for number, table, text, created_at in database.rows(statement, values, prepare=False)
    ]


def verify(
    *, since: datetime | None = None, anchors: Iterable[str] = (), seconds: float = math.inf
) -> Report:
    """Verify the segments with events since a time (None: all), and that the chain has these anchors.

    Raises InvalidInput `anchor`.
    """
    deadline = time.monotonic() + seconds
    segments = AuditSegment.objects.select_related("layout").order_by("-id")
    report, segment = Report(), segments.first()
    report.faults += [fault for text in anchors for fault in _check_anchor(text)]
    report.faults += _check_end(segment, report)
    while segment is not None:
        if (since and segment.newest_at < since) or time.monotonic() > deadline:
            report.unchecked = segment.pk
            break
        if faults := [*_compare(segment)]:
            segment.refresh_from_db()  # the retention may have deleted its events meanwhile
            faults = [*_compare(segment)]
        purged = 0 if segment.retained is None else segment.count - segment.retained
        report.segments += 1
        report.events += segment.count - purged
        report.purged += purged
        before = segments.filter(pk__lt=segment.pk).first()
        report.faults += [*faults, *_check_link(before, segment)]
        segment = before
    report.faults.sort(key=lambda fault: fault.segment or 0)
    return report


def changed_rows() -> Iterator[Fault]:
    """Yield a fault for each row that differs from its last event, as it was changed past the triggers."""
    for _, text in checks.run(_TABLE_CHECKS):
        yield Fault("row_changed", text)


def is_intact(segment: AuditSegment) -> bool:
    """Return True if the events of a segment are those that were sealed."""
    return not [*_compare(segment)]


def _check_anchor(text: str) -> Iterator[Fault]:
    match = _ANCHOR.fullmatch(text.strip().lower())
    if match is None:
        message = "write an anchor as SEGMENT:DIGEST, where the digest has 64 hexadecimal digits"
        raise errors.InvalidInput.for_field("--anchor", "anchor", message, text[:100])
    number = int(match["segment"])
    segment = AuditSegment.objects.defer("marks").filter(pk=number).first()
    if segment is None:
        last = AuditSegment.objects.defer("marks").last()
        message = f"Segment {number} of anchor {text} is missing; the chain ends at segment {last.pk if last else 0}."
        yield Fault("anchor_missing", message)
    elif segment.digest != match["digest"]:
        message = f"Segment {number} has digest {segment.digest}; its anchor says {text}."
        yield Fault("anchor_differs", message, number)


def _check_end(last: AuditSegment | None, report: Report) -> Iterator[Fault]:
    """Yield what is wrong behind the chain, and count the events after it, which is no fault."""
    report.anchor = last.anchor if last else ""
    end = last.last_id if last else 0
    counted = CountedUntil.objects.filter(log=LOG).values_list("counted", flat=True).first()
    if counted is not None and counted > end:
        message = f"The last segments are missing: the events {end + 1} to {counted} were sealed."
        yield Fault("segments_missing", message)
    for model in events.event_models().values():
        rows = model.objects.order_by().filter(pgh_id__gt=end)
        report.unsealed += rows.count()
        newest = rows.aggregate(number=Max("pgh_id"))["number"] or 0
        if newest > event_numbers.newest_number():
            message = f"Event {newest} of {model._meta.db_table} has a number that was never drawn."
            yield Fault("event_added", message, numbers=[newest])


def _check_link(before: AuditSegment | None, segment: AuditSegment) -> Iterator[Fault]:
    previous, end = (before.pk, before.last_id) if before else (0, 0)
    if missing := segment.pk - previous - 1:
        span = f"segments {previous + 1} to {segment.pk - 1}"
        message = f"Missing before segment {segment.pk}: {span}."
        yield Fault("segments_missing", message, segment.pk, count=missing)
    elif segment.after_id != end or segment.digest != _digest(before, segment):
        message = f"Segment {segment.pk} does not continue the previous segment, or was changed."
        yield Fault("chain_broken", message, segment.pk)


def _compare(segment: AuditSegment) -> Iterator[Fault]:
    """Yield the differences between a segment and its events."""
    current, columns = current_columns(), segment.layout.columns
    removed = [
        f"{table}.{name}"
        for table, names in columns.items()
        for name in names
        if name not in current.get(table, ())
    ]
    if removed:
        message = f"The columns {', '.join(removed[:5])} were removed; their events cannot be read."
        yield Fault("columns_gone", message, segment.pk)
        return
    after = None if segment.pk == 1 else segment.after_id
    rows = read_events(after, segment.last_id, columns, limit=segment.count + 10 * SIZE)
    size = len(segment.marks) // _MARK.size * _MARK.size  # whoever changed them may have cut one
    marks: dict[int, bytes] = dict(_MARK.iter_unpack(bytes(segment.marks)[:size]))
    # A number that exists in two tables counts as added in one of them.
    sealed = [(row, marks.pop(row.number, None)) for row in rows]
    added = [row.number for row, mark in sealed if mark is None]
    changed = [row.number for row, mark in sealed if mark not in {None, row.mark}]
    yield from _numbered("event_changed", "Changed", segment, changed)
    yield from _numbered("event_added", "Added", segment, added)
    if segment.purged_at is None:
        yield from _numbered("events_missing", "Missing", segment, [*marks])
    elif missing := (segment.retained or 0) - (len(rows) - len(added)):
        code, word = ("events_missing", "Missing") if missing > 0 else ("event_added", "Added")
        reason = "kept" if missing > 0 else "deleted"
        message = (
            f"{word} events in segment {segment.pk}: {abs(missing)} that the retention {reason}."
        )
        yield Fault(code, message, segment.pk, count=abs(missing))


def _numbered(code: str, word: str, segment: AuditSegment, numbers: list[int]) -> Iterator[Fault]:
    if numbers:
        listed = ", ".join(map(str, numbers[:SHOWN]))
        more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
        message = f"{word} events in segment {segment.pk}: {listed}{more}."
        yield Fault(code, message, segment.pk, numbers[:SHOWN], len(numbers))
