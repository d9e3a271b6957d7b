"""The list of all checks, by code."""

from __future__ import annotations

from collections.abc import Sequence

from pools.core import errors
from pools.platform.checks.checks import Check

CHECKS: list[Check] = []  # filled by pools.extension


def _by_code() -> dict[str, Check]:
    return {check.code: check for check in CHECKS}


def codes() -> list[str]:
    return list(_by_code())


def sentence(code: str) -> str:
    """Return the statement that a check proves; "" if no check has this code."""
    check = _by_code().get(code)
    return check.proves if check else ""


def get(code: str) -> Check:
    return _by_code()[code]


def select(only: Sequence[str], *, field: str = "only") -> list[Check]:
    """Return the checks with these codes, or all if `only` is empty. Raises InvalidInput `unknown_check`."""
    checks = _by_code()
    unknown = [code for code in only if code not in checks]
    if unknown:
        message = f"there is no check {unknown[0]}; the checks are {', '.join(checks)}"
        raise errors.InvalidInput.for_field(field, "unknown_check", message, unknown[0])
    return [check for code, check in checks.items() if not only or code in only]
