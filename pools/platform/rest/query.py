"""Query parameters: each is read once, an unknown or repeated one is refused."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from rest_framework.request import Request

from pools.core import addresses, errors, object_reader, timestamps

T = TypeVar("T")

LONGEST = 253


class Query:
    """The parameters of a request; `done` refuses what nobody asked for."""

    def __init__(self, request: Request) -> None:
        self._given = request.query_params
        self._read: set[str] = set()
        self.report = object_reader.ProblemReport()

    def text(self, name: str) -> str | None:
        """One value as it is, None without it or for an empty one."""
        self._read.add(name)
        values = self._given.getlist(name)
        if len(values) > 1:
            self.report.add(name, "repeated", "is given more than once")
        value = values[-1] if values else ""
        if "\0" in value or len(value) > 4 * LONGEST:
            self.report.add(name, "invalid", "is no usable value", value)
            return None
        if not value.isprintable() and any(unicodedata.category(char) == "Cc" for char in value):
            message = "has a line break or another control character"
            self.report.add(name, "invisible_character", message, value)
            return None
        return value or None

    def parse(self, name: str, parser: Callable[[str, str], T]) -> T | None:
        """What the parser makes of a value; it is given the value and its name."""
        value = self.text(name)
        if value is None:
            return None
        with self.report.collecting():
            return parser(value, name)
        return None

    def done(self) -> None:
        """InvalidInput with every problem found, unknown parameters among them."""
        for name in self._given:
            if name not in self._read:
                self.report.add(name, "unknown_parameter", "there is no such parameter")
        self.report.raise_any()


def integer(least: int, most: int) -> Callable[[str, str], int]:
    """A parser of plain decimal numbers between two."""

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
    """A parser of one of some words."""

    def parse(value: str, name: str) -> str:
        if value not in allowed:
            message = f"must be one of {', '.join(allowed)}"
            raise errors.InvalidInput.for_field(name, "invalid_choice", message, value)
        return value

    return parse


def flag(value: str, name: str) -> bool:
    return choice("true", "false", "1", "0")(value, name) in {"true", "1"}


def cidr(value: str, name: str) -> str:
    """A CIDR or one address, canonical."""
    if "/" not in value:
        return str(addresses.parse_address(value, field=name))
    return str(addresses.parse_cidr(value, field=name, allow_short=True))


def block(value: str, name: str) -> str:
    """A CIDR or one address, as the canonical CIDR of this block."""
    return str(addresses.parse_block(value, field=name))


def moment(value: str, name: str) -> datetime:
    """RFC 3339 with a zone, of a year that can be meant."""
    return timestamps.parse_timestamp(value, field=name)


def names(known: Iterable[str]) -> Callable[[str, str], list[str]]:
    """A parser of some of the known names, comma separated."""

    def parse(value: str, name: str) -> list[str]:
        wanted = [one.strip() for one in value.split(",") if one.strip()]
        unknown = [one for one in wanted if one not in known]
        if unknown or not wanted:
            message = f"there is no field {unknown[0]}" if unknown else "name a field"
            raise errors.InvalidInput.for_field(name, "unknown_field", message, value)
        return wanted

    return parse
