"""What a run says of each check, and what all runs together say of the register."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

from pools.models import CheckRun
from pools.platform.checks import registry
from pools.platform.checks.checks import Check, Violation

EXAMPLES = 5
_LONGEST = 400  # characters of an example
_RUNS = 20  # that are looked through for the last word on each check

CLEAN, REPAIRED, VIOLATED, FAILED = "clean", "repaired", "violated", "failed"
PARTIAL, NOT_LOOKED = "partial", "not_looked"  # nothing found so far; not looked at


class Example(TypedDict):
    text: str
    pool_id: int | None


class Entry(TypedDict):
    """One check in `CheckRun.report`.

    `count` are the violations that are left, `repaired` what was repaired; `resume` is the step at which
    the next run goes on, null when the check came to its end (`complete`).
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


def entry(check: Check, carried: Entry | None = None) -> Entry:
    """The entry of a check that begins; of one that goes on, with what it had found so far."""
    made = Entry(
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
    if carried is not None:
        made["count"], made["examples"] = carried["count"], list(carried["examples"])
        made["resume"] = carried["resume"]
    return made


def found(into: Entry, violations: Iterable[Violation]) -> int:
    """Count them, keep the first few as examples; how many there were."""
    count = 0
    for one in violations:
        count += 1
        example(into, one.text, one.pool_id)
    into["count"] += count
    return count


def example(into: Entry, text: str, pool_id: int | None = None) -> None:
    if len(into["examples"]) < EXAMPLES:
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        into["examples"].append(Example(text=short, pool_id=pool_id))


def judge(of: Entry, *, failed: bool) -> None:
    """Say the state that follows from the numbers."""
    if failed:
        of["state"] = FAILED
    elif of["count"]:
        of["state"] = VIOLATED
    elif not of["complete"]:
        of["state"] = PARTIAL
    else:
        of["state"] = REPAIRED if of["repaired"] else CLEAN


@dataclass(frozen=True)
class Standing:
    """The last word on a check: `entry` and the run that it stands in, None before there was one."""

    check: Check
    entry: Entry | None = None
    run: CheckRun | None = None

    @property
    def bad(self) -> bool:
        return self.entry is not None and self.entry["state"] in {VIOLATED, FAILED}


def standing() -> list[Standing]:
    """Of every check, as the newest run that looked at it says; in the order of the checks."""
    last: dict[str, Standing] = {}
    for run in CheckRun.objects.exclude(started_at=None).order_by("-id")[:_RUNS]:
        for one in run.report:
            if one["state"] != NOT_LOOKED and one["code"] in registry.codes():
                known = Standing(registry.get(one["code"]), one, run)
                last.setdefault(one["code"], known)
    return [last.get(code) or Standing(registry.get(code)) for code in registry.codes()]


def violations() -> int:
    """How many there are by the last word on each check; a check that failed counts as one."""
    return sum(
        max(1, one.entry["count"]) for one in standing() if one.bad and one.entry is not None
    )


def sentence(run: CheckRun) -> str:
    """What a run came to: what is wrong, what was repaired, what was not looked at."""
    checks = "check" if len(run.report) == 1 else "checks"
    parts = [f"{len(run.report)} {checks}"]
    parts.append(f"{run.violations} violation{'' if run.violations == 1 else 's'}")
    if run.repaired:
        parts.append(f"{run.repaired} repaired")
    text = ", ".join(parts) + "."
    missing = [one["code"] for one in run.report if not one["complete"] and one["state"] != FAILED]
    if run.ended_at is not None and missing:
        text += (
            f" The time of {run.seconds} s was over before the end of {', '.join(missing)};"
            " the next run of all checks begins there."
        )
    return text
