"""What a condition is, and the registry of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pools.models.notices import Level

Key = tuple[str, str]  # code and subject
Known = Mapping[Key, Level]


@dataclass(frozen=True)
class Found:
    """One condition of one subject, as it is now; `url` is the path of the page about it."""

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
    """A function that finds all subjects with one of `codes`, in a bounded number of statements.

    It is given what is known of its codes until now, so that a value which wavers about a threshold
    can stay what it was.
    """

    codes: tuple[str, ...]
    find: Callable[[Known], Iterable[Found]]


CONDITIONS: list[Condition] = []  # filled by pools.extension; two may have the same code


def codes() -> tuple[str, ...]:
    """Every code that a notice can have, in order."""
    return tuple(sorted({code for one in CONDITIONS for code in one.codes}))
