"""Verification: compute the chain from the events again, newest segment first, and report every difference.

One segment is read at a time, so that a register of any size is verified in little memory.
docs/reference/history-and-audit.md explains the codes of faults.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Max

from pools.core import errors
from pools.models import AuditSegment, CountedUntil
from pools.platform import checks, events
from pools.platform.audit import sealing
from pools.platform.history import event_numbers

SHOWN = 20  # event numbers that a fault lists
# Checks that compare rows of the register with the events of the log.
_TABLE_CHECKS = ("history", "event_blocks", "row_history")
_ANCHOR = re.compile(r"(?P<segment>[0-9]{1,18}):(?P<digest>[0-9a-f]{64})")


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


def verify(
    *, since: datetime | None = None, anchors: Iterable[str] = (), seconds: float | None = None
) -> Report:
    """Verify the segments with events since a time (None: all), and that the chain has these anchors.

    Raises InvalidInput `anchor`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    rows = AuditSegment.objects.select_related("layout").order_by("-id")
    report, segment = Report(), rows.first()
    report.faults += [fault for text in anchors for fault in _check_anchor(text)]
    report.faults += _check_end(segment, report)
    while segment is not None:
        if (since and segment.newest_at < since) or (deadline and time.monotonic() > deadline):
            report.unchecked = segment.pk
            break
        report.segments += 1
        before = rows.filter(pk__lt=segment.pk).first()
        report.faults += [*_compare(segment, report), *_check_link(before, segment)]
        segment = before
    report.faults.sort(key=lambda fault: fault.segment or 0)
    return report


def changed_rows() -> Iterator[Fault]:
    """Yield a fault for each row that differs from its last event, as it was changed past the triggers."""
    for _, text in checks.run(_TABLE_CHECKS):
        yield Fault("row_changed", text)


def is_intact(segment: AuditSegment) -> bool:
    """Return True if the events of a segment are those that were sealed."""
    return not _compare(segment, Report())


def _check_anchor(text: str) -> Iterator[Fault]:
    match = _ANCHOR.fullmatch(text.strip().lower())
    if match is None:
        message = "write an anchor as SEGMENT:DIGEST, where the digest has 64 hexadecimal digits"
        raise errors.InvalidInput.for_field("--anchor", "anchor", message, text[:100])
    number = int(match["segment"])
    segment = AuditSegment.objects.filter(pk=number).first()
    if segment is None:
        last = AuditSegment.objects.last()
        end = f"ends at segment {last.pk}" if last else "is empty"
        yield Fault(
            "anchor_missing", f"Segment {number} of anchor {text} is missing; the chain {end}."
        )
    elif segment.digest != match["digest"]:
        message = (
            f"Segment {number} has digest {segment.digest}; its anchor says {match['digest']}."
        )
        yield Fault("anchor_differs", message, number)


def _check_end(last: AuditSegment | None, report: Report) -> Iterator[Fault]:
    """Yield what is wrong behind the chain, and count the events after it, which is no fault."""
    report.anchor = last.anchor if last else ""
    end = last.last_id if last else 0
    counted = CountedUntil.objects.filter(log=sealing.LOG).values_list("counted", flat=True).first()
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
    expected = before.pk + 1 if before else 1
    if segment.pk != expected:
        missing = segment.pk - expected
        first = (
            f"Segment {expected}" if missing == 1 else f"Segments {expected} to {segment.pk - 1}"
        )
        message = f"Missing before segment {segment.pk}: {first.lower()}."
        yield Fault("segments_missing", message, segment.pk, count=missing)
        return
    after = before.last_id if before else 0
    sealed = sealing.digest(before.digest if before else sealing.GENESIS, segment)
    if segment.after_id != after or segment.digest != sealed:
        message = f"Segment {segment.pk} does not continue the previous segment, or was changed."
        yield Fault("chain_broken", message, segment.pk)


def _compare(segment: AuditSegment, report: Report) -> list[Fault]:
    """Return the differences between a segment and its events, and count these."""
    result, faults = _compare_once(segment)
    if faults:  # the retention may have deleted its events in between
        segment.refresh_from_db()
        result, faults = _compare_once(segment)
    report.events += result.events
    report.purged += result.purged
    return faults


def _compare_once(segment: AuditSegment) -> tuple[Report, list[Fault]]:
    columns, present = sealing.current_layout(), segment.layout.columns
    removed = [
        f"{table}.{column}"
        for table, names in present.items()
        for column in names
        if column not in columns.get(table, ())
    ]
    if removed:
        message = f"The columns {', '.join(removed[:5])} were removed; their events cannot be read."
        return Report(), [Fault("columns_gone", message, segment.pk)]
    after = None if segment.pk == 1 else segment.after_id
    limit = segment.count + sealing.PAGE
    rows = sealing.read_events(after, segment.last_id, segment.layout.columns, limit=limit)
    emptied = segment.purged_at is not None and segment.retained == 0 and not segment.marks
    if not emptied and hashlib.sha256(segment.marks).hexdigest() != segment.marks_digest:
        message = f"The marks of the events in segment {segment.pk} were changed."
        return Report(events=len(rows)), [Fault("marks_changed", message, segment.pk)]
    marks = sealing.unpack_marks(segment)
    # A number that exists in two tables counts as added in one of them.
    sealed = {id(row): marks.pop(row.number, None) for row in rows}
    added = [row for row in rows if sealed[id(row)] is None]
    changed = [row for row in rows if sealed[id(row)] not in {None, row.mark}]
    faults = [
        *_fault("event_changed", "Changed", segment, [row.number for row in changed]),
        *_fault("event_added", "Added", segment, [row.number for row in added]),
    ]
    result = Report(events=len(rows))
    if segment.purged_at is None:
        faults += _fault("events_missing", "Missing", segment, list(marks))
        return result, faults
    kept = len(rows) - len(added)
    result.purged = segment.count - kept
    if missing := (segment.retained or 0) - kept:
        message = (
            f"Missing events in segment {segment.pk}: {missing} of those that the retention kept."
        )
        faults.append(Fault("events_missing", message, segment.pk, count=missing))
    return result, faults


def _fault(code: str, words: str, segment: AuditSegment, numbers: list[int]) -> Iterator[Fault]:
    if numbers:
        listed = ", ".join(map(str, numbers[:SHOWN]))
        more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
        message = f"{words} events in segment {segment.pk}: {listed}{more}."
        yield Fault(code, message, segment.pk, numbers[:SHOWN], len(numbers))
