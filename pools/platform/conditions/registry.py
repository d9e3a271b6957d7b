"""The definition of a condition, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pools.models.alerts import Level

Key = tuple[str, str]  # code and subject
OpenLevels = Mapping[Key, Level]  # the levels of the open alerts of a condition


@dataclass(frozen=True)
class ActiveCondition:
    """A condition of one subject that holds now; `url` is the path of the page about it."""

    code: str
    subject: str
    level: Level
    title: str
    detail: str = ""
    url: str = ""

    @property
    def key(self) -> Key:
        return self.code, self.subject


@dataclass(frozen=True)
class Condition:
    """A function that returns every subject with one of `codes`, in a bounded number of statements.

    Its argument are the levels of the open alerts with its codes, so that a value that fluctuates
    around a threshold can keep its level.
    """

    codes: tuple[str, ...]
    find: Callable[[OpenLevels], Iterable[ActiveCondition]]


CONDITIONS: list[Condition] = []  # filled by pools.extension; two conditions may have the same code


def codes() -> tuple[str, ...]:
    """Return every code that an alert can have, sorted."""
    return tuple(sorted({code for condition in CONDITIONS for code in condition.codes}))
