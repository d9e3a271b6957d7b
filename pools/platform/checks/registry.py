"""All checks, by their codes."""

from __future__ import annotations

from collections.abc import Sequence

from pools.core import errors
from pools.platform.checks import constraints, triggers
from pools.platform.checks.checks import Check
from pools.register.checks import (
    blocks,
    cidrs,
    counts,
    free_space,
    holders,
    row_history,
    waiting,
    withheld,
)

_ALL: dict[str, Check] = {}


def add(*checks: Check) -> None:
    """Apps that use this one add theirs."""
    _ALL.update((check.code, check) for check in checks)


add(
    constraints.CHECK,
    triggers.CHECK,
    *cidrs.CHECKS,
    *blocks.CHECKS,
    *row_history.CHECKS,
    *holders.CHECKS,
    withheld.CHECK,
    free_space.CHECK,
    *counts.CHECKS,
    *waiting.CHECKS,
)


def codes() -> list[str]:
    return list(_ALL)


def sentence(code: str) -> str:
    """What a check proves; "" for one that there is no more."""
    return _ALL[code].proves if code in _ALL else ""


def get(code: str) -> Check:
    return _ALL[code]


def chosen(only: Sequence[str], *, field: str = "only") -> list[Check]:
    """The checks of these codes, all without any; InvalidInput `unknown_check`."""
    unknown = [code for code in only if code not in _ALL]
    if unknown:
        message = f"there is no check {unknown[0]}; there are {', '.join(_ALL)}"
        raise errors.InvalidInput.of(field, "unknown_check", message, unknown[0])
    return [check for code, check in _ALL.items() if not only or code in only]
