"""Runs of the checks: who asks for one, how it is bounded, what it leaves behind.

A run is a row first, a wish; a worker takes it (compare-and-set on `started_at`), so that a lost or
doubled message does no harm. It ends with its time: what it did not come to is said, and the next
run of all checks begins there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, transaction

from pools.core import errors
from pools.models import CheckRun
from pools.models.fields import Now
from pools.platform import advisory_locks, database, events
from pools.platform.checks import checks, registry, reports
from pools.platform.checks.checks import Check
from pools.platform.checks.reports import Entry

SECONDS = 300  # a run's time limit unless another is said
LONGEST = 480  # of a run that a worker does: below the time limit of its task
NIGHT = 2  # the hour (UTC) from which the nightly run is due
KEPT = 500  # runs
_ABANDONED = timedelta(minutes=5)  # beyond its limit; then its worker was killed
_CANCELLED = "57014"  # query_canceled: the statement's time was over

log = logging.getLogger(__name__)


def ask(
    *, author: events.Author, repair: bool = False, only: Sequence[str] = (), seconds: int = SECONDS
) -> CheckRun:
    """A run that a worker will do. Raises InvalidInput `unknown_check`."""
    registry.chosen(only)
    run = CheckRun.objects.create(
        asked_at=Now(),
        repair=repair,
        only=list(dict.fromkeys(only)),
        seconds=seconds,
        actor=author.actor,
        source=author.source,
    )
    run.refresh_from_db()
    return run


def due() -> list[int]:
    """The ids of runs that wait for a worker; the nightly one is asked for here, once a night."""
    with transaction.atomic():
        database.rows("SELECT pg_advisory_xact_lock(%s)::text", [advisory_locks.NIGHTLY_CHECKS])
        by_worker = CheckRun.objects.filter(source=events.WORKER.source, only=[])
        night = _night(database.now())
        if _began() < night and not by_worker.filter(asked_at__gte=night).exists():
            ask(author=events.WORKER)
            _forget_old()
    waiting = CheckRun.objects.filter(started_at=None).order_by("id")
    return list(waiting.values_list("pk", flat=True)[:10])


def _began() -> datetime:
    """Since when there is a register: a new one is not proved before its first night."""
    moment: datetime = database.call("SELECT min(applied) FROM django_migrations", [])
    return moment


def _night(now: datetime) -> datetime:
    """The last time at which a nightly run became due."""
    tonight = now.replace(hour=NIGHT, minute=0, second=0, microsecond=0)
    return tonight if tonight <= now else tonight - timedelta(days=1)


def _forget_old() -> None:
    newest = CheckRun.objects.order_by("-id").values_list("pk", flat=True)[KEPT : KEPT + 1]
    for pk in newest:
        CheckRun.objects.filter(pk__lte=pk).delete()


def state(run: CheckRun, now: datetime) -> str:
    """`waiting`, `running`, `ended`; `abandoned` when its worker was killed."""
    if run.ended_at is not None:
        return "ended"
    if run.started_at is None:
        return "waiting"
    over = now > run.started_at + timedelta(seconds=run.seconds) + _ABANDONED
    return "abandoned" if over else "running"


def do(run_id: int) -> CheckRun | None:
    """Do a run that waits; None when another worker has it."""
    if not CheckRun.objects.filter(pk=run_id, started_at=None).update(started_at=Now()):
        return None
    run = CheckRun.objects.get(pk=run_id)
    _Doing(run).all()
    run.refresh_from_db()
    return run


class _Doing:
    """One run while it runs."""

    def __init__(self, run: CheckRun) -> None:
        self._run = run
        self._by = events.Author(run.actor, run.source)
        self._failed = False

    def all(self) -> None:
        unfinished = _unfinished(self._run)
        chosen = registry.chosen([one for one in self._run.only if one in registry.codes()])
        chosen.sort(key=lambda check: check.code not in unfinished)  # these were not looked at
        entries = [reports.entry(check, unfinished.get(check.code)) for check in chosen]
        with checks.limited(self._run.seconds):
            for check, entry in zip(chosen, entries, strict=True):
                if checks.left() > 0:
                    self._one(check, entry)
                    self._keep(entries)
        self._keep(entries, ended=True)

    def _one(self, check: Check, entry: Entry) -> None:
        began = time.monotonic()
        self._failed = False
        try:
            for position, at in check.steps(entry["resume"]):
                checks.breathe()
                self._step(check, at, entry)
                entry["resume"] = position
            entry["complete"], entry["resume"] = True, None
        except checks.OutOfTime:
            pass
        entry["seconds"] = round(time.monotonic() - began, 3)
        reports.judge(entry, failed=self._failed)

    def _step(self, check: Check, at: Any, entry: Entry) -> None:
        """Prove one step; repair what is wrong and may be repaired, and prove it again."""
        before = entry["count"], list(entry["examples"])
        try:
            if not self._look(check, at, entry) or not self._run.repair or check.mend is None:
                return
            entry["count"], entry["examples"] = before
            entry["repaired"] += self._mend(check, at, entry)
            self._look(check, at, entry)
        except DatabaseError as error:
            if database.sqlstate(error) == _CANCELLED and checks.left() <= 0:
                raise checks.OutOfTime from error
            log.exception("the check %s could not be done", check.code)
            self._failed = True
            first_line = str(error).partition("\n")[0]
            reports.example(entry, f"It could not be proved: {first_line}")

    def _look(self, check: Check, at: Any, entry: Entry) -> int:
        with checks.snapshot():
            return reports.found(entry, check.find(at))

    def _mend(self, check: Check, at: Any, entry: Entry) -> int:
        mend = check.mend
        if mend is None:
            return 0
        author = events.Author(
            self._by.actor, self._by.source, reason=f"repair of check {check.code}"
        )

        def work() -> int:
            with events.recorded(author):
                return mend(at, author)

        try:
            return database.retried(work)
        except (DatabaseError, errors.IpamError) as error:
            first_line = str(error).partition("\n")[0]
            reports.example(entry, f"It could not be repaired now: {first_line}")
            return 0

    def _keep(self, entries: list[Entry], *, ended: bool = False) -> None:
        """Write down what is known so far, so that a worker that is killed leaves it."""
        values: dict[str, Any] = {
            "report": entries,
            "violations": sum(
                max(entry["count"], entry["state"] == reports.FAILED) for entry in entries
            ),
            "repaired": sum(entry["repaired"] for entry in entries),
            "complete": all(entry["complete"] for entry in entries),
        }
        if ended:
            values["ended_at"] = Now()
        CheckRun.objects.filter(pk=self._run.pk).update(**values)


def _unfinished(run: CheckRun) -> dict[str, Entry]:
    """What the run of all checks before this one did not come to the end of, by code."""
    if run.only:
        return {}
    before = CheckRun.objects.filter(pk__lt=run.pk, only=[], ended_at__isnull=False)
    last = before.order_by("-id").first()
    return {one["code"]: one for one in last.report if not one["complete"]} if last else {}
