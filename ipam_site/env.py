"""Typed readers of the environment: a wrong value stops the start with the variable's name."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING

from django.core import exceptions

if TYPE_CHECKING:
    from collections.abc import Mapping

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def text(name: str, default: str = "", *, source: Mapping[str, str] = os.environ) -> str:
    """The variable's text; an empty variable counts as not set."""
    return source.get(name, "").strip() or default


def boolean(name: str, default: bool, *, source: Mapping[str, str] = os.environ) -> bool:
    """1/true/yes/on or 0/false/no/off, in any case."""
    value = text(name, source=source).lower()
    if not value:
        return default
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise exceptions.ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}")


def integer(
    name: str, default: int, *, minimum: int = 0, source: Mapping[str, str] = os.environ
) -> int:
    """A whole number of at least `minimum`."""
    value = text(name, source=source)
    if not value:
        return default
    if not (value.isascii() and value.isdigit()) or int(value) < minimum:
        raise exceptions.ImproperlyConfigured(
            f"{name} must be a whole number of at least {minimum}, not {value!r}"
        )
    return int(value)


def words(
    name: str, default: list[str] | None = None, *, source: Mapping[str, str] = os.environ
) -> list[str]:
    """A comma-separated list; blanks around the commas do not count."""
    parts = [word.strip() for word in text(name, source=source).split(",")]
    return [word for word in parts if word] or list(default or [])


def is_set(name: str, *, source: Mapping[str, str] = os.environ) -> bool:
    """Whether there is such a variable, be it empty."""
    return name in source


def lines_of_file(name: str, *, source: Mapping[str, str] = os.environ) -> list[str]:
    """The lines of the file that the variable names, without empty ones; [] without the variable."""
    path = text(name, source=source)
    if not path:
        return []
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        # Not the error's text: what could not be decoded may be a secret.
        raise exceptions.ImproperlyConfigured(f"{name}: {path} cannot be read") from error
    return [line.strip() for line in lines if line.strip()]


def secret(name: str, *, source: Mapping[str, str] = os.environ) -> str:
    """The variable's text, else the one line of the file that NAME_FILE names: a mounted secret.

    Raises ImproperlyConfigured for a file that cannot be read or has no or several lines.
    """
    file = f"{name}_FILE"
    value = text(name, source=source)
    if value or not text(file, source=source):
        return value
    lines = lines_of_file(file, source=source)
    if len(lines) != 1:
        raise exceptions.ImproperlyConfigured(f"{file}: the file must hold one line")
    return lines[0]
