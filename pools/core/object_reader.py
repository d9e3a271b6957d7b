"""Typed reading of JSON-like objects that reports every problem, with its dotted path.

A document is read to its end even when parts of it are wrong, so that its author sees all
problems at once: accessors report and return an empty value, and `Report.raise_any` ends it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pools.core import errors

T = TypeVar("T")
Json = dict[str, Any]


class Repeated(list[object]):
    """The values of a key that an object of a text has several times, where that is allowed."""


@dataclass
class ProblemReport:
    """The problems found so far; `strict` makes unknown fields problems."""

    strict: bool = True
    problems: list[errors.FieldProblem] = field(default_factory=list)

    def add(self, path: str, code: str, message: str, value: object = "") -> None:
        self.problems += errors.InvalidInput.for_field(path, code, message, value).problems

    @contextlib.contextmanager
    def collecting(self, path: str = "") -> Iterator[None]:
        """Report an InvalidInput of the body; `at` is where its fields stand."""
        try:
            yield
        except errors.InvalidInput as error:
            self.problems += (error.under(path) if path else error).problems

    def raise_any(self) -> None:
        """Raise one InvalidInput with all problems, if there are any."""
        if self.problems:
            raise errors.InvalidInput.all(self.problems)


@dataclass(frozen=True)
class Fields:
    """A JSON object, and where in the document it stands ("" for the whole)."""

    data: Json
    base_path: str
    report: ProblemReport

    def path(self, key: object) -> str:
        return f"{self.base_path}.{key}" if self.base_path else str(key)

    def has(self, key: str) -> bool:
        """Whether the field is there; null is absence, as in Kubernetes."""
        return self.data.get(key) is not None

    def only(self, *known_names: str) -> None:
        """Report unknown_field for every other field, when the report is strict."""
        if not self.report.strict:
            return
        for key in self.data:
            if key not in known_names:
                message = f"unknown field; known here: {', '.join(known_names)}"
                self.report.add(self.path(key), "unknown_field", message)

    def parse(self, key: str, parser: Callable[[object, str], T]) -> T | None:
        """What the parser makes of a required field; it is given the value and its path."""
        if not self.has(key):
            self.report.add(self.path(key), "required", "is required")
            return None
        with self.report.collecting():
            return parser(self.data[key], self.path(key))
        return None

    def section(self, key: str) -> Fields:
        """An object; when it is absent its required fields report themselves."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, dict):
            self.report.add(self.path(key), "wrong_type", "an object is expected", value)
        section = value if isinstance(value, dict) else {}
        return Fields(section, self.path(key), self.report)

    def items(self, key: str) -> list[tuple[str, object]]:
        """The members of a list, each with its path; none when it is absent."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, list):
            self.report.add(self.path(key), "wrong_type", "a list is expected", value)
        listed = value if isinstance(value, list) else []
        return [(f"{self.path(key)}.{index}", item) for index, item in enumerate(listed)]

    def objects(self, key: str) -> Iterator[Fields]:
        """The members of a list of objects."""
        for path, item in self.items(key):
            if isinstance(item, dict):
                yield Fields(item, path, self.report)
            else:
                self.report.add(path, "wrong_type", "an object is expected", item)

    def flag(self, key: str) -> bool:
        """true or false; absent is false."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, bool):
            self.report.add(self.path(key), "wrong_type", "true or false is expected", value)
        return value is True

    def mapping(self, key: str) -> Json | None:
        """An object taken over as it is; None when it is absent."""
        return dict(self.section(key).data) if self.has(key) else None

    def texts(self, key: str) -> dict[str, str]:
        """An object whose values are texts, such as labels."""
        texts = self.mapping(key) or {}
        for name, text in texts.items():
            if not isinstance(text, str):
                path = f"{self.path(key)}.{name}"
                self.report.add(path, "wrong_type", "write it as a text in quotes", text)
        return texts
