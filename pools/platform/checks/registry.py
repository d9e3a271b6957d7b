"""All checks, by their codes."""

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
    """What a check proves; "" for one that there is no more."""
    check = _by_code().get(code)
    return check.proves if check else ""


def get(code: str) -> Check:
    return _by_code()[code]


def chosen(only: Sequence[str], *, field: str = "only") -> list[Check]:
    """The checks of these codes, all without any; InvalidInput `unknown_check`."""
    known = _by_code()
    unknown = [code for code in only if code not in known]
    if unknown:
        message = f"there is no check {unknown[0]}; there are {', '.join(known)}"
        raise errors.InvalidInput.for_field(field, "unknown_check", message, unknown[0])
    return [check for code, check in known.items() if not only or code in only]
