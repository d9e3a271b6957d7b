"""Typed access to JSON-like objects that reports every problem with its dotted path.

A document is read to its end even if parts of it are invalid, so that its author sees all problems
at once: accessors report a problem and return an empty value; `ProblemReport.raise_any` raises them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pools.core import errors

T = TypeVar("T")
Json = dict[str, Any]


class RepeatedKey(list[object]):
    """The values of a key that occurs several times in an object, where that is allowed."""


@dataclass
class ProblemReport:
    """The problems so far; with `strict`, unknown fields are problems."""

    strict: bool = True
    problems: list[errors.FieldProblem] = field(default_factory=list)

    def add(self, path: str, code: str, message: str, value: object = "") -> None:
        self.problems += errors.InvalidInput.for_field(path, code, message, value).problems

    @contextlib.contextmanager
    def collect(self, path: str = "") -> Iterator[None]:
        """Report an InvalidInput that the body raises; `path` is the prefix of its fields."""
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
    """A JSON object, and its path in the document ("" for the whole document)."""

    data: Json
    base_path: str
    report: ProblemReport

    def path(self, key: object) -> str:
        return f"{self.base_path}.{key}" if self.base_path else str(key)

    def has(self, key: str) -> bool:
        """Return True if the field is present; null means absent, as in Kubernetes."""
        return self.data.get(key) is not None

    def allow_only(self, *allowed_names: str) -> None:
        """Report unknown_field for every other field if the report is strict."""
        if not self.report.strict:
            return
        for key in self.data:
            if key not in allowed_names:
                message = f"unknown field; known here: {', '.join(allowed_names)}"
                self.report.add(self.path(key), "unknown_field", message)

    def parse(self, key: str, parser: Callable[[object, str], T]) -> T | None:
        """Return a required field parsed by `parser(value, path)`; None after a problem."""
        if not self.has(key):
            self.report.add(self.path(key), "required", "is required")
            return None
        with self.report.collect():
            return parser(self.data[key], self.path(key))
        return None

    def section(self, key: str) -> Fields:
        """Return an object; an absent object is empty, so that its required fields are reported."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, dict):
            self.report.add(self.path(key), "wrong_type", "an object is expected", value)
        section = value if isinstance(value, dict) else {}
        return Fields(section, self.path(key), self.report)

    def items(self, key: str) -> list[tuple[str, object]]:
        """Return the members of a list with their paths; empty if the list is absent."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, list):
            self.report.add(self.path(key), "wrong_type", "a list is expected", value)
        listed = value if isinstance(value, list) else []
        return [(f"{self.path(key)}.{index}", item) for index, item in enumerate(listed)]

    def parse_items(self, key: str, parser: Callable[[object, str], T]) -> list[tuple[str, T]]:
        """Return the valid members of a list, parsed by `parser(value, path)`, with their paths."""
        parsed = []
        for path, value in self.items(key):
            with self.report.collect():
                parsed.append((path, parser(value, path)))
        return parsed

    def parse_each(self, key: str, parser: Callable[[object, str], T]) -> tuple[T, ...]:
        """Return the valid members of a list, parsed by `parser(value, path)`."""
        return tuple(value for _, value in self.parse_items(key, parser))

    def objects(self, key: str) -> Iterator[Fields]:
        """Yield the members of a list of objects."""
        for path, item in self.items(key):
            if isinstance(item, dict):
                yield Fields(item, path, self.report)
            else:
                self.report.add(path, "wrong_type", "an object is expected", item)

    def flag(self, key: str) -> bool:
        """Return a boolean; absent means False."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, bool):
            self.report.add(self.path(key), "wrong_type", "true or false is expected", value)
        return value is True

    def mapping(self, key: str) -> Json | None:
        """Return an object unchanged; None if it is absent."""
        return dict(self.section(key).data) if self.has(key) else None

    def string_map(self, key: str) -> dict[str, str]:
        """Return an object whose values are strings, such as labels."""
        strings = self.mapping(key) or {}
        for name, text in strings.items():
            if not isinstance(text, str):
                path = f"{self.path(key)}.{name}"
                self.report.add(path, "wrong_type", "write it as a text in quotes", text)
        return strings
