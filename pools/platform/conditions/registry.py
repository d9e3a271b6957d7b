"""The definition of a condition, and the list of all of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from django_stubs_ext import StrOrPromise

from pools.models.alerts import Level

Key = tuple[str, str]  # code and subject
OpenLevels = Mapping[Key, Level]  # the levels of the open alerts of a condition


@dataclass(frozen=True)
class ActiveCondition:
    """A condition of one subject that holds now; `url` is the path of the page about it.

    Conditions with the same `cause` are one problem; "" for a condition that is a problem of its own.
    """

    code: str
    subject: str
    level: Level
    title: str
    detail: str = ""
    url: str = ""
    cause: str = ""

    @property
    def key(self) -> Key:
        return self.code, self.subject


@dataclass(frozen=True)
class Condition:
    """A function that returns every subject with one of the codes, in a bounded number of statements.

    Without one, a task says what it has found (`evaluation.evaluate`), which holds until it runs again.
    Its argument are the levels of the open alerts with its codes, so that a value that fluctuates
    around a threshold can keep its level. `runbooks` has the page of docs/runbooks for each code,
    `labels` the text of a code with a proper name.
    """

    runbooks: Mapping[str, str]
    find: Callable[[OpenLevels], Iterable[ActiveCondition]] | None
    labels: Mapping[str, StrOrPromise] = field(default_factory=dict)

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(self.runbooks)


CONDITIONS: list[Condition] = []  # filled by pools.extension; two conditions may have the same code


def codes() -> tuple[str, ...]:
    """Return every code that an alert can have, in the order of the conditions."""
    return tuple(dict.fromkeys(code for condition in CONDITIONS for code in condition.codes))


def runbook(code: str) -> str:
    """Return the name of the runbook of a code, or ""."""
    return next(
        (condition.runbooks[code] for condition in CONDITIONS if code in condition.runbooks), ""
    )


def runbooks() -> frozenset[str]:
    """Return the names of all runbooks."""
    return frozenset(runbook(code) for code in codes()) - {""}


def words(code: str) -> str:
    """Return a code as text: its label, or `pool_nearly_full` -> `pool nearly full`."""
    labels = (condition.labels[code] for condition in CONDITIONS if code in condition.labels)
    return str(next(labels, code.replace("_", " ")))
