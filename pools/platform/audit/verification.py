"""Verification: the chain is worked out anew from the events, and what differs is named.

Segments are read a few at a time and events page by page, so that a register of any size is verified
in little memory. What a fault's code means stands in docs/reference/history-and-audit.md.
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
from pools.platform import database, events
from pools.platform.audit import anchors as audit_anchors
from pools.platform.audit import event_rows, sealing
from pools.platform.checks import checks
from pools.platform.checks.checks import Check

SHOWN = 20  # numbers of events that a fault names
MOST = 1000  # faults that are told; all are counted
KEPT = 100  # verifications
_AT_ONCE = 10  # segments
_TAIL = 100_000  # events that are not sealed yet, counted at most


# They compare rows of the register with the events of the log; filled by pools.extension.
TABLE_CHECKS: list[Check] = []


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong; `numbers` are the first events that it is about."""

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
    """What was verified. `unsealed` are events after the last segment, which is no fault."""

    since: date | None = None
    segments: int = 0
    events: int = 0
    purged: int = 0  # events that went with the retention
    unsealed: int = 0
    head: str = ""  # the last digest
    complete: bool = True  # False: the time was over before the end
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
    """Verify the segments from that day on (all: None), and that the chain has these anchors.

    With `tables` the rows of the register are compared with what the events say of them too.
    """
    started = database.now()
    deadline = None if seconds is None else time.monotonic() + seconds
    report = Report(since=since)
    before = _before(since)
    for batch in _batches(before):
        before = _batch(before, batch, report)
        if deadline is not None and time.monotonic() > deadline:
            report.complete = False
            break
    if report.complete:
        _end(before, report)
    kept = list(anchors)
    for mismatch in audit_anchors.compare(kept):
        report.add(Fault(mismatch.code, mismatch.message, mismatch.segment))
    if tables:
        for message in _changed_rows():
            report.add(Fault("row_changed", message))
    _record(report, started, before, looked={"anchor": bool(kept), "row": tables})
    return report


def _changed_rows() -> Iterator[str]:
    """One sentence for each row that is not what its last event says: changed past the triggers."""
    for check in TABLE_CHECKS:
        for _, step in check.steps(None):
            with checks.snapshot():
                for violation in check.find(step):
                    yield violation.text


def verified(segment: AuditSegment) -> bool:
    """Whether the events of one segment are those that were sealed."""
    found = Report()
    _compare_events([segment], found)
    return found.ok


def standing() -> AuditVerification | None:
    """The last verification."""
    return AuditVerification.objects.first()


# --- the chain ------------------------------------------------------------------------------------


def _before(since: date | None) -> AuditSegment | None:
    """The segment before the first one that is verified."""
    if since is None:
        return None
    first = AuditSegment.objects.filter(day__gte=since).order_by("id").first()
    rows = AuditSegment.objects.order_by("-id").select_related("layout")
    return rows.filter(pk__lt=first.pk).first() if first else rows.first()


def _batches(before: AuditSegment | None) -> Iterator[list[AuditSegment]]:
    """Some segments at a time that have one layout, in order."""
    at = before.pk if before else -(1 << 62)
    while True:
        rows = AuditSegment.objects.filter(pk__gt=at).select_related("layout").order_by("pk")
        found = list(rows[:_AT_ONCE])
        for _, same in groupby(found, key=lambda one: one.layout_id):
            yield list(same)
        if len(found) < _AT_ONCE:
            return
        at = found[-1].pk


def _batch(
    before: AuditSegment | None, batch: list[AuditSegment], report: Report
) -> AuditSegment | None:
    trial = _compare(before, batch)
    if trial.faults and _purged_meanwhile(batch):
        batch = list(
            AuditSegment.objects.filter(pk__in=[one.pk for one in batch])
            .select_related("layout")
            .order_by("pk")
        )
        trial = _compare(before, batch)
    for fault in trial.faults:
        report.add(fault)
    report.segments += len(batch)
    report.events += trial.events
    report.purged += trial.purged
    report.head = batch[-1].digest
    return batch[-1]


def _purged_meanwhile(batch: list[AuditSegment]) -> bool:
    now = dict(
        AuditSegment.objects.filter(pk__in=[one.pk for one in batch]).values_list("pk", "purged_at")
    )
    return any(now.get(one.pk) != one.purged_at for one in batch)


def _compare(before: AuditSegment | None, batch: list[AuditSegment]) -> Report:
    found = Report()
    previous = before
    for segment in batch:
        for fault in _link(previous, segment):
            found.add(fault)
        previous = segment
    _compare_events(batch, found)
    return found


def _compare_events(batch: list[AuditSegment], found: Report) -> None:
    gone = event_rows.missing_columns(batch[0].layout.columns)
    if gone:
        message = f"The columns {', '.join(gone[:5])} were removed; events of these cannot be read."
        found.add(Fault("columns_gone", message, batch[0].pk, batch[0].day))
        return
    actual = event_rows.marks(
        batch[0].after_id if batch[0].pk != 1 else None,
        batch[-1].last_id,
        layout=batch[0].layout.columns,
    )
    following = next(actual, None)
    for segment in batch:
        here: list[tuple[int, str, bytes]] = []
        spare = segment.count + event_rows.PAGE
        while following is not None and following[0] <= segment.last_id:
            # What lies in a gap of the chain belongs to no segment that is there.
            if len(here) < spare and (following[0] > segment.after_id or segment.pk == 1):
                here.append(following)
            following = next(actual, None)
        _events(segment, here, found)


def _link(previous: AuditSegment | None, segment: AuditSegment) -> Iterator[Fault]:
    where: dict[str, Any] = {"segment": segment.pk, "day": segment.day}
    expected = previous.pk + 1 if previous else 1
    if segment.pk != expected:
        many = segment.pk - expected
        words = f"{expected} is" if many == 1 else f"{expected} to {segment.pk - 1} are"
        yield Fault("segments_missing", f"Segment {words} missing.", **where, count=many)
        return
    if segment.after_id != (previous.last_id if previous else 0):
        yield Fault("chain_broken", f"Segment {segment.pk} does not go on from the one before it.", **where)  # fmt: skip
    if sealing.digest(previous.digest if previous else sealing.GENESIS, segment) != segment.digest:
        yield Fault(
            "chain_broken",
            f"The digest of segment {segment.pk} is not that of what it says and of the one before.",
            **where,
        )


def _events(segment: AuditSegment, actual: list[tuple[int, str, bytes]], report: Report) -> None:
    """Compare the events that are there with the marks of those that were sealed."""
    report.events += len(actual)
    packed = event_rows.as_bytes(segment.marks)
    emptied = segment.purged_at is not None and segment.kept == 0 and not packed
    if not emptied and hashlib.sha256(packed).hexdigest() != segment.marks_digest:
        _add(report, segment, "marks_changed", "The marks of its events were changed", [])
        return
    left = dict(event_rows.unpacked(segment.after_id, packed))
    for number, table, mark in actual:
        sealed = left.pop(number, None)  # a number that stands in two tables is added in one
        if sealed is None:
            _add(report, segment, "event_added", f"Event {number} of {table} was added", [number])
        elif sealed != mark:
            words = f"Event {number} of {table} was changed"
            _add(report, segment, "event_changed", words, [number])
    if segment.purged_at is None:
        if left:
            _add(report, segment, "events_missing", _missing(segment, list(left)), list(left))
        return
    there = 0 if emptied else segment.count - len(left)
    report.purged += segment.count - there
    if short := (segment.kept or 0) - there:
        words = "Events that the retention kept are missing"
        _add(report, segment, "events_missing", words, [], short)


def _missing(segment: AuditSegment, missing: list[int]) -> str:
    if len(missing) == 1:
        return f"Event {missing[0]} is missing"
    many = f"{len(missing)} of {segment.count} events"
    return f"{many} are missing between {missing[0]} and {missing[-1]}"


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


def _end(last: AuditSegment | None, report: Report) -> None:
    """Segments that were taken from the end, and events after it."""
    state = AuditState.objects.filter(pk=1).first()
    there = last.pk if last else 0
    if last is not None:
        report.head = last.digest
    if state is not None and state.segment > there:
        many = state.segment - there
        message = f"The last {many} segments are missing: {state.segment} were sealed."
        report.add(Fault("segments_missing", message, count=many))
    after = last.last_id if last else 0
    drawn = event_rows.newest_number()
    for model in events.logs().values():
        rows = model.objects.filter(pgh_id__gt=after)
        report.unsealed += rows.order_by().values("pk")[:_TAIL].count()
        beyond = list(rows.filter(pgh_id__gt=drawn).order_by("pgh_id").values_list("pk", flat=True)[:SHOWN])  # fmt: skip
        if beyond and beyond[0] > event_rows.newest_number():  # none was drawn meanwhile
            words = (
                f"Event {beyond[0]} of {model._meta.db_table} has a number that was never drawn."
            )
            report.add(Fault("event_added", words, numbers=beyond, count=len(beyond)))


def _record(
    report: Report, started: Any, last: AuditSegment | None, *, looked: dict[str, bool]
) -> None:
    faults = [fault.as_json() for fault in report.faults[:SHOWN]]
    carried = _carried(report, last.pk if last else 0, looked=looked)
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


def _carried(report: Report, reached: int, *, looked: dict[str, bool]) -> list[dict[str, Any]]:
    """Faults of the verification before that this one did not look for: they stay until one does.

    `looked` says of the first words of codes whether this one looked for such faults at all.
    """
    before = standing()
    if before is None:
        return []
    since = report.since.isoformat() if report.since else ""

    def looked_for(fault: dict[str, Any]) -> bool:
        if (kind := fault["code"].partition("_")[0]) in looked:
            return looked[kind]
        if fault["day"] is None:  # at the end of the chain
            return report.complete
        return fault["day"] >= since and (report.complete or fault["segment"] <= reached)

    return [fault for fault in before.faults if not looked_for(fault)][:SHOWN]
