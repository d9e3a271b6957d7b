"""Query parameters: unknown and repeated ones are refused."""

import unicodedata
from collections.abc import Callable, Iterable
from typing import TypeVar

from rest_framework.request import Request

from pools.core import addresses, errors, object_reader
from pools.platform.rest import parsing

T = TypeVar("T")

LONGEST = 253


class Query:
    """The query parameters of a request; `raise_problems` refuses those that were not read."""

    def __init__(self, request: Request) -> None:
        self._parameters = request.query_params
        self._read: set[str] = set()
        self.report = object_reader.ProblemReport()

    def text(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is missing, empty or not usable."""
        values = self._texts(name)
        if len(values) > 1:
            self.report.add(name, "repeated", "is given more than once")
        return self._usable(name, values[-1] if values else "")

    def parse_each(self, name: str, parser: Callable[[str, str], T]) -> list[T] | None:
        """Return the parsed values of a parameter that may be repeated; None without any."""
        values = []
        for text in self._texts(name):
            if value := self._usable(name, text):
                with self.report.collect():
                    values.append(parser(value, name))
        return values or None

    def _texts(self, name: str) -> list[str]:
        self._read.add(name)
        return self._parameters.getlist(name)

    def _usable(self, name: str, value: str) -> str | None:
        if "\0" in value or len(value) > 4 * LONGEST:
            self.report.add(name, "invalid", "is no usable value", value)
            return None
        if not value.isprintable() and any(unicodedata.category(char) == "Cc" for char in value):
            message = "has a line break or another control character"
            self.report.add(name, "invisible_character", message, value)
            return None
        return value or None

    def parse(self, name: str, parser: Callable[[str, str], T]) -> T | None:
        """Return the parsed value, or None; the parser's arguments are the value and the name."""
        value = self.text(name)
        if value is None:
            return None
        with self.report.collect():
            return parser(value, name)
        return None

    def raise_problems(self) -> None:
        """Raise InvalidInput with all problems, unknown parameters among them."""
        known = ", ".join(sorted(self._read))
        message = f"there is no such parameter; there {'are' if known else 'is none'}"
        for name in self._parameters:
            if name not in self._read:
                self.report.add(
                    name, "unknown_parameter", f"{message}: {known}" if known else message
                )
        self.report.raise_any()


def integer(least: int, most: int) -> Callable[[str, str], int]:
    """Return a parser of decimal integers between two bounds."""

    def parse(value: str, name: str) -> int:
        if not (value.isascii() and value.isdigit()) or len(value) > 18:
            raise errors.InvalidInput.for_field(name, "wrong_type", "must be a whole number", value)
        if not least <= int(value) <= most:
            raise errors.InvalidInput.for_field(
                name, "out_of_range", f"must be {least} to {most}", value
            )
        return int(value)

    return parse


def choice(*allowed: str) -> Callable[[str, str], str]:
    """Return a parser that accepts one of the allowed words."""
    return lambda value, name: parsing.choice(value, name, allowed)


def flag(value: str, name: str) -> bool:
    return choice("true", "false", "1", "0")(value, name) in {"true", "1"}


def address(value: str, name: str) -> str:
    """Return the canonical form of an address."""
    return str(addresses.parse_address(value, field=name))


def cidr(value: str, name: str) -> str:
    """Return the canonical form of a CIDR or an address."""
    if "/" not in value:
        return str(addresses.parse_address(value, field=name))
    return str(addresses.parse_cidr(value, field=name, allow_short=True))


def block(value: str, name: str) -> str:
    """Return the canonical CIDR of the block that a CIDR or an address names."""
    return str(addresses.parse_block(value, field=name))


def names(allowed: Iterable[str]) -> Callable[[str, str], list[str]]:
    """Return a parser of a comma-separated list of the allowed names."""

    def parse(value: str, name: str) -> list[str]:
        selected = [part.strip() for part in value.split(",") if part.strip()]
        unknown = [field for field in selected if field not in allowed]
        if unknown or not selected:
            message = f"there is no field {unknown[0]}" if unknown else "name a field"
            raise errors.InvalidInput.for_field(name, "unknown_field", message, value)
        return selected

    return parse
