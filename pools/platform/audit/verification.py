"""Verification: compute the chain from the events again and report every difference.

Segments are read in batches and events page by page, so that a register of any size is verified in
little memory. docs/reference/history-and-audit.md explains the codes of faults.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import Any

from pools.models import AuditSegment, AuditState, AuditVerification
from pools.platform import checks, database, events
from pools.platform.audit import anchors as audit_anchors
from pools.platform.audit import event_rows, sealing

SHOWN = 20  # event numbers that a fault lists
MOST = 1000  # faults that a report lists; all are counted
KEPT = 100  # verifications
_BATCH_SIZE = 10  # segments
_TAIL = 100_000  # most unsealed events of a table that are counted


# Checks that compare rows of the register with the events of the log.
_TABLE_CHECKS = ("history", "event_blocks", "row_history")


@dataclass(frozen=True)
class Fault:
    """A difference; `numbers` are the first events that it concerns."""

    code: str
    message: str
    segment: int | None = None
    day: date | None = None
    numbers: list[int] = field(default_factory=list)
    count: int = 1

    def as_json(self) -> dict[str, Any]:
        day = self.day.isoformat() if self.day else None
        return {**self.__dict__, "day": day}


@dataclass
class Report:
    """The result of a verification; `unsealed` events after the last segment are no fault."""

    since: date | None = None
    segments: int = 0
    events: int = 0
    purged: int = 0  # events that the retention deleted
    unsealed: int = 0
    head: str = ""  # the last digest
    complete: bool = True  # False: the time limit was reached before the end of the chain
    fault_count: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.fault_count == 0

    def add(self, fault: Fault) -> None:
        self.fault_count += 1
        if len(self.faults) < MOST:
            self.faults.append(fault)


def verify(
    *,
    since: date | None = None,
    anchors: Iterable[audit_anchors.Anchor] = (),
    tables: bool = False,
    seconds: float | None = None,
) -> Report:
    """Verify the segments from the day `since` on (all if None), and that the chain has these anchors.

    With `tables` the rows of the register are compared with their last events, too.
    """
    started = database.now()
    deadline = None if seconds is None else time.monotonic() + seconds
    report = Report(since=since)
    before = _last_before(since)
    for batch in _batches(before):
        before = _verify_batch(before, batch, report)
        if deadline is not None and time.monotonic() > deadline:
            report.complete = False
            break
    if report.complete:
        _verify_end(before, report)
    anchor_list = list(anchors)
    for mismatch in audit_anchors.compare(anchor_list):
        report.add(Fault(mismatch.code, mismatch.message, mismatch.segment))
    if tables:
        for message in _changed_rows():
            report.add(Fault("row_changed", message))
    _record(report, started, before, searched={"anchor": bool(anchor_list), "row": tables})
    return report


def _changed_rows() -> Iterator[str]:
    """Yield a sentence for each row that differs from its last event, as it was changed past the triggers."""
    for _, text in checks.run(_TABLE_CHECKS):
        yield text


def is_intact(segment: AuditSegment) -> bool:
    """Return True if the events of a segment are those that were sealed."""
    report = Report()
    _compare_events([segment], report)
    return report.ok


def latest() -> AuditVerification | None:
    """Return the last verification."""
    return AuditVerification.objects.first()


# --- the chain ------------------------------------------------------------------------------------


def _last_before(since: date | None) -> AuditSegment | None:
    """Return the segment before the first one that is verified."""
    if since is None:
        return None
    first = AuditSegment.objects.filter(day__gte=since).order_by("id").first()
    rows = AuditSegment.objects.order_by("-id").select_related("layout")
    return rows.filter(pk__lt=first.pk).first() if first else rows.first()


def _batches(before: AuditSegment | None) -> Iterator[list[AuditSegment]]:
    """Yield batches of consecutive segments with the same layout."""
    last_id = before.pk if before else -(1 << 62)
    while True:
        rows = AuditSegment.objects.filter(pk__gt=last_id).select_related("layout").order_by("pk")
        segments = list(rows[:_BATCH_SIZE])
        for _, same in groupby(segments, key=lambda segment: segment.layout_id):
            yield list(same)
        if len(segments) < _BATCH_SIZE:
            return
        last_id = segments[-1].pk


def _verify_batch(
    before: AuditSegment | None, batch: list[AuditSegment], report: Report
) -> AuditSegment | None:
    result = _compare(before, batch)
    if result.faults and _purged_meanwhile(batch):
        batch = list(
            AuditSegment.objects.filter(pk__in=[segment.pk for segment in batch])
            .select_related("layout")
            .order_by("pk")
        )
        result = _compare(before, batch)
    for fault in result.faults:
        report.add(fault)
    report.segments += len(batch)
    report.events += result.events
    report.purged += result.purged
    report.head = batch[-1].digest
    return batch[-1]


def _purged_meanwhile(batch: list[AuditSegment]) -> bool:
    now = dict(
        AuditSegment.objects.filter(pk__in=[segment.pk for segment in batch]).values_list(
            "pk", "purged_at"
        )
    )
    return any(now.get(segment.pk) != segment.purged_at for segment in batch)


def _compare(before: AuditSegment | None, batch: list[AuditSegment]) -> Report:
    report = Report()
    previous = before
    for segment in batch:
        for fault in _verify_link(previous, segment):
            report.add(fault)
        previous = segment
    _compare_events(batch, report)
    return report


def _compare_events(batch: list[AuditSegment], report: Report) -> None:
    missing = event_rows.missing_columns(batch[0].layout.columns)
    if missing:
        message = (
            f"The columns {', '.join(missing[:5])} were removed; events of these cannot be read."
        )
        report.add(Fault("columns_gone", message, batch[0].pk, batch[0].day))
        return
    actual = event_rows.read_marks(
        batch[0].after_id if batch[0].pk != 1 else None,
        batch[-1].last_id,
        layout=batch[0].layout.columns,
    )
    following = next(actual, None)
    for segment in batch:
        events_here: list[tuple[int, str, bytes]] = []
        spare = segment.count + event_rows.PAGE
        while following is not None and following[0] <= segment.last_id:
            # An event in a gap of the chain belongs to no segment that exists.
            if len(events_here) < spare and (following[0] > segment.after_id or segment.pk == 1):
                events_here.append(following)
            following = next(actual, None)
        _verify_events(segment, events_here, report)


def _verify_link(previous: AuditSegment | None, segment: AuditSegment) -> Iterator[Fault]:
    where: dict[str, Any] = {"segment": segment.pk, "day": segment.day}
    expected = previous.pk + 1 if previous else 1
    if segment.pk != expected:
        count = segment.pk - expected
        words = (
            f"Segment {expected} is"
            if count == 1
            else f"Segments {expected} to {segment.pk - 1} are"
        )
        yield Fault("segments_missing", f"{words} missing.", **where, count=count)
        return
    if segment.after_id != (previous.last_id if previous else 0):
        message = f"Segment {segment.pk} does not continue the previous segment."
        yield Fault("chain_broken", message, **where)
    if sealing.digest(previous.digest if previous else sealing.GENESIS, segment) != segment.digest:
        yield Fault(
            "chain_broken",
            f"The digest of segment {segment.pk} does not match its content and the previous digest.",
            **where,
        )


def _verify_events(
    segment: AuditSegment, actual: list[tuple[int, str, bytes]], report: Report
) -> None:
    """Compare existing events with the marks of the sealed ones."""
    report.events += len(actual)
    packed = event_rows.as_bytes(segment.marks)
    emptied = segment.purged_at is not None and segment.retained == 0 and not packed
    if not emptied and hashlib.sha256(packed).hexdigest() != segment.marks_digest:
        _add(report, segment, "marks_changed", "The marks of its events were changed", [])
        return
    unmatched = dict(event_rows.unpack_marks(segment.after_id, packed))
    for number, table, mark in actual:
        # A number that exists in two tables counts as added in one of them.
        sealed = unmatched.pop(number, None)
        if sealed is None:
            _add(report, segment, "event_added", f"Event {number} of {table} was added", [number])
        elif sealed != mark:
            words = f"Event {number} of {table} was changed"
            _add(report, segment, "event_changed", words, [number])
    if segment.purged_at is None:
        if unmatched:
            _add(
                report,
                segment,
                "events_missing",
                _missing(segment, list(unmatched)),
                list(unmatched),
            )
        return
    present = 0 if emptied else segment.count - len(unmatched)
    report.purged += segment.count - present
    if short := (segment.retained or 0) - present:
        words = "Events that the retention kept are missing"
        _add(report, segment, "events_missing", words, [], short)


def _missing(segment: AuditSegment, missing: list[int]) -> str:
    if len(missing) == 1:
        return f"Event {missing[0]} is missing"
    words = f"{len(missing)} of {segment.count} events"
    return f"{words} are missing between {missing[0]} and {missing[-1]}"


def _add(
    report: Report,
    segment: AuditSegment,
    code: str,
    words: str,
    numbers: list[int],
    count: int = 1,
) -> None:
    report.add(
        Fault(
            code,
            f"{words} (segment {segment.pk}, {segment.day}).",
            segment.pk,
            segment.day,
            numbers[:SHOWN],
            len(numbers) or count,
        )
    )


# --- behind the chain -----------------------------------------------------------------------------


def _verify_end(last: AuditSegment | None, report: Report) -> None:
    """Report segments that were removed from the end, and count the events after it."""
    state = AuditState.objects.filter(pk=1).first()
    last_id = last.pk if last else 0
    if last is not None:
        report.head = last.digest
    if state is not None and state.segment > last_id:
        missing = state.segment - last_id
        message = f"The last {missing} segments are missing: {state.segment} were sealed."
        report.add(Fault("segments_missing", message, count=missing))
    after = last.last_id if last else 0
    drawn = event_rows.newest_number()
    for model in events.event_models().values():
        rows = model.objects.filter(pgh_id__gt=after)
        report.unsealed += rows.order_by().values("pk")[:_TAIL].count()
        beyond = list(
            rows.filter(pgh_id__gt=drawn).order_by("pgh_id").values_list("pk", flat=True)[:SHOWN]
        )
        if beyond and beyond[0] > event_rows.newest_number():  # still not drawn by now
            words = (
                f"Event {beyond[0]} of {model._meta.db_table} has a number that was never drawn."
            )
            report.add(Fault("event_added", words, numbers=beyond, count=len(beyond)))


def _record(
    report: Report, started: Any, last: AuditSegment | None, *, searched: dict[str, bool]
) -> None:
    faults = [fault.as_json() for fault in report.faults[:SHOWN]]
    carried = _carried_over(report, last.pk if last else 0, searched=searched)
    AuditVerification.objects.create(
        started_at=started,
        finished_at=database.call("SELECT ipam_clock()", []),
        since=report.since,
        segments=report.segments,
        events=report.events,
        fault_count=report.fault_count + len(carried),
        faults=[*faults, *carried],
    )
    old = AuditVerification.objects.order_by("-id").values_list("pk", flat=True)[KEPT:]
    AuditVerification.objects.filter(pk__in=list(old)).delete()


def _carried_over(
    report: Report, reached: int, *, searched: dict[str, bool]
) -> list[dict[str, Any]]:
    """Return faults of the previous verification that this one did not search for.

    They remain until a verification searches for them. `searched` says for the first word of a code
    whether this verification searched for such faults.
    """
    previous = latest()
    if previous is None:
        return []
    since = report.since.isoformat() if report.since else ""

    def was_searched(fault: dict[str, Any]) -> bool:
        if (kind := fault["code"].partition("_")[0]) in searched:
            return searched[kind]
        if fault["day"] is None:  # at the end of the chain
            return report.complete
        return fault["day"] >= since and (report.complete or fault["segment"] <= reached)

    return [fault for fault in previous.faults if not was_searched(fault)][:SHOWN]
