"""Runs of the checks: how a run is requested, limited in time, and recorded.

A run is first a row that requests it. A worker takes it (compare-and-set on `started_at`), so that a lost
or duplicated message does no harm. A run ends at its time limit: the report names the checks that did not
finish, and the next run of all checks continues there.
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

SECONDS = 300  # default time limit of a run
LONGEST = 480  # longest time limit of a run by a worker: less than the time limit of its task
NIGHT = 2  # the hour (UTC) at which the nightly run is due
KEPT = 500  # runs
STATES = ("waiting", "running", "ended", "abandoned")
_ABANDONED = timedelta(minutes=5)  # after its time limit; then the worker of the run was killed
_CANCELLED = "57014"  # query_canceled: the statement reached its time limit

log = logging.getLogger(__name__)


def request_run(
    *, author: events.Author, repair: bool = False, only: Sequence[str] = (), seconds: int = SECONDS
) -> CheckRun:
    """Create a run that a worker will execute. Raises InvalidInput `unknown_check`."""
    registry.select(only)
    run = CheckRun.objects.create(
        requested_at=Now(),
        repair=repair,
        only=list(dict.fromkeys(only)),
        seconds=seconds,
        actor=author.actor,
        source=author.source,
    )
    run.refresh_from_db()
    return run


def due() -> list[int]:
    """Return the ids of runs that wait for a worker; requests the nightly run when it is due."""
    with transaction.atomic():
        database.rows("SELECT pg_advisory_xact_lock(%s)::text", [advisory_locks.NIGHTLY_CHECKS])
        by_worker = CheckRun.objects.filter(source=events.WORKER.source, only=[])
        night = _last_nightly_time(database.now())
        if _installed_at() < night and not by_worker.filter(requested_at__gte=night).exists():
            request_run(author=events.WORKER)
            _delete_old()
    waiting = CheckRun.objects.filter(started_at=None).order_by("id")
    return list(waiting.values_list("pk", flat=True)[:10])


def _installed_at() -> datetime:
    """Return when the register was installed: it is not checked before its first night."""
    installed_at: datetime = database.call("SELECT min(applied) FROM django_migrations", [])
    return installed_at


def _last_nightly_time(now: datetime) -> datetime:
    """Return the last time at which a nightly run was due."""
    tonight = now.replace(hour=NIGHT, minute=0, second=0, microsecond=0)
    return tonight if tonight <= now else tonight - timedelta(days=1)


def _delete_old() -> None:
    newest = CheckRun.objects.order_by("-id").values_list("pk", flat=True)[KEPT : KEPT + 1]
    for pk in newest:
        CheckRun.objects.filter(pk__lte=pk).delete()


def state(run: CheckRun, now: datetime) -> str:
    """Return `waiting`, `running`, `ended`, or `abandoned` if the worker of the run was killed."""
    if run.ended_at is not None:
        return "ended"
    if run.started_at is None:
        return "waiting"
    over = now > run.started_at + timedelta(seconds=run.seconds) + _ABANDONED
    return "abandoned" if over else "running"


def execute(run_id: int) -> CheckRun | None:
    """Execute a waiting run; None if another worker has taken it."""
    if not CheckRun.objects.filter(pk=run_id, started_at=None).update(started_at=Now()):
        return None
    run = CheckRun.objects.get(pk=run_id)
    _Execution(run).run_all()
    run.refresh_from_db()
    return run


class _Execution:
    """The execution of one run."""

    def __init__(self, run: CheckRun) -> None:
        self._run = run
        self._author = events.Author(run.actor, run.source)
        self._failed = False

    def run_all(self) -> None:
        unfinished = _unfinished(self._run)
        selected = registry.select([code for code in self._run.only if code in registry.codes()])
        selected.sort(key=lambda check: check.code not in unfinished)  # unfinished checks first
        entries = [reports.new_entry(check, unfinished.get(check.code)) for check in selected]
        with checks.time_limit(self._run.seconds):
            for check, entry in zip(selected, entries, strict=True):
                if checks.seconds_left() > 0:
                    self._run_check(check, entry)
                    self._store(entries)
        self._store(entries, ended=True)

    def _run_check(self, check: Check, entry: Entry) -> None:
        started = time.monotonic()
        self._failed = False
        try:
            for position, step in check.steps(entry["resume"]):
                checks.check_time()
                self._step(check, step, entry)
                entry["resume"] = position
            entry["complete"], entry["resume"] = True, None
        except checks.OutOfTime:
            pass
        entry["seconds"] = round(time.monotonic() - started, 3)
        reports.set_state(entry, failed=self._failed)

    def _step(self, check: Check, step: Any, entry: Entry) -> None:
        """Check one step; with repairs on, repair its violations and check it again."""
        before = entry["count"], list(entry["examples"])
        try:
            if not self._find(check, step, entry) or not self._run.repair or check.mend is None:
                return
            entry["count"], entry["examples"] = before
            entry["repaired"] += self._mend(check, step, entry)
            self._find(check, step, entry)
        except DatabaseError as error:
            if database.sqlstate(error) == _CANCELLED and checks.seconds_left() <= 0:
                raise checks.OutOfTime from error
            log.exception("check %s failed", check.code)
            self._failed = True
            first_line = str(error).partition("\n")[0]
            reports.add_example(entry, f"The check failed: {first_line}")

    def _find(self, check: Check, step: Any, entry: Entry) -> int:
        with checks.snapshot():
            return reports.record_violations(entry, check.find(step))

    def _mend(self, check: Check, step: Any, entry: Entry) -> int:
        mend = check.mend
        if mend is None:
            return 0
        author = events.Author(
            self._author.actor, self._author.source, reason=f"repair of check {check.code}"
        )

        def work() -> int:
            with events.recorded_by(author):
                return mend(step, author)

        try:
            return database.with_retries(work)
        except (DatabaseError, errors.IpamError) as error:
            first_line = str(error).partition("\n")[0]
            reports.add_example(entry, f"The repair failed: {first_line}")
            return 0

    def _store(self, entries: list[Entry], *, ended: bool = False) -> None:
        """Store the results so far, so that they remain if the worker is killed."""
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
    """Return the entries that the previous run of all checks did not finish, by code."""
    if run.only:
        return {}
    before = CheckRun.objects.filter(pk__lt=run.pk, only=[], ended_at__isnull=False)
    last = before.order_by("-id").first()
    return {entry["code"]: entry for entry in last.report if not entry["complete"]} if last else {}
