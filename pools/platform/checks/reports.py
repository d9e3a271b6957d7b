"""The report of a run, check by check, and the latest status of each check over all runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pools.models import CheckRun
from pools.platform.checks import registry
from pools.platform.checks.checks import Check, Violation

EXAMPLES = 5
_LONGEST = 400  # characters of an example
_RUNS = 20  # newest runs in which the latest status of each check is looked up

CLEAN, REPAIRED, VIOLATED, FAILED = "clean", "repaired", "violated", "failed"
PARTIAL, NOT_LOOKED = "partial", "not_looked"  # no violation so far; not checked
STATES = (CLEAN, REPAIRED, VIOLATED, FAILED, PARTIAL, NOT_LOOKED)


class Example(TypedDict):
    text: str
    pool_id: int | None


class Entry(TypedDict):
    """The result of one check in `CheckRun.report`.

    `count` is the number of violations that remain, `repaired` the number of repairs. `resume` is the
    position at which the next run continues; it is null when the check is finished (`complete`).
    """

    code: str
    invariants: str
    state: str
    complete: bool
    count: int
    repaired: int
    seconds: float
    examples: list[Example]
    resume: Any


def new_entry(check: Check, unfinished: Entry | None = None) -> Entry:
    """Return the entry of a check that starts, or that continues from an unfinished entry."""
    new = Entry(
        code=check.code,
        invariants=check.invariants,
        state=NOT_LOOKED,
        complete=False,
        count=0,
        repaired=0,
        seconds=0.0,
        examples=[],
        resume=None,
    )
    if unfinished is not None:
        new["count"], new["examples"] = unfinished["count"], list(unfinished["examples"])
        new["resume"] = unfinished["resume"]
    return new


def record_violations(entry: Entry, violations: Iterable[Violation]) -> int:
    """Count violations, keep the first few as examples, and return how many there were."""
    count = 0
    for violation in violations:
        count += 1
        add_example(entry, violation.text, violation.pool_id)
    entry["count"] += count
    return count


def add_example(entry: Entry, text: str, pool_id: int | None = None) -> None:
    if len(entry["examples"]) < EXAMPLES:
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        entry["examples"].append(Example(text=short, pool_id=pool_id))


def set_state(entry: Entry, *, failed: bool) -> None:
    """Set the state of an entry that follows from its numbers."""
    if failed:
        entry["state"] = FAILED
    elif entry["count"]:
        entry["state"] = VIOLATED
    elif not entry["complete"]:
        entry["state"] = PARTIAL
    else:
        entry["state"] = REPAIRED if entry["repaired"] else CLEAN


@dataclass(frozen=True)
class CheckStatus:
    """The latest status of a check: its entry and the run that wrote it; None before its first run."""

    check: Check
    entry: Entry | None = None
    run: CheckRun | None = None

    @property
    def bad(self) -> bool:
        return self.entry is not None and self.entry["state"] in {VIOLATED, FAILED}


def latest_statuses() -> list[CheckStatus]:
    """Return the latest status of every check, in the order of the checks."""
    statuses: dict[str, CheckStatus] = {}
    for run in CheckRun.objects.exclude(started_at=None).order_by("-id")[:_RUNS]:
        for entry in run.report:
            if entry["state"] != NOT_LOOKED and entry["code"] in registry.codes():
                status = CheckStatus(registry.get(entry["code"]), entry, run)
                statuses.setdefault(entry["code"], status)
    return [statuses.get(code) or CheckStatus(registry.get(code)) for code in registry.codes()]


def count_violations() -> int:
    """Return the number of violations by the latest status of each check; a failed check counts as one."""
    return sum(
        max(1, status.entry["count"])
        for status in latest_statuses()
        if status.bad and status.entry is not None
    )


def sentence(run: CheckRun) -> str:
    """Return a summary of a run: violations, repairs, and the checks that did not finish."""
    count = len(run.report)
    parts = [
        ngettext("%(count)d check", "%(count)d checks", count) % {"count": count},
        ngettext("%(count)d violation", "%(count)d violations", run.violations)
        % {"count": run.violations},
    ]
    if run.repaired:
        parts.append(_("%(count)d repaired") % {"count": run.repaired})
    text = ", ".join(parts) + "."
    unfinished = [
        entry["code"] for entry in run.report if not entry["complete"] and entry["state"] != FAILED
    ]
    if run.ended_at is not None and unfinished:
        text += " " + _(
            "The time limit of %(seconds)d s was reached before these checks finished: %(checks)s."
            " The next run of all checks continues there."
        ) % {"seconds": run.seconds, "checks": ", ".join(unfinished)}
    return text
