"""Typed readers of environment variables; an invalid value raises an error with the name."""

import os
import pathlib

from django.core import exceptions

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def text(name: str, default: str = "") -> str:
    """Return the value; an empty variable counts as not set."""
    return os.environ.get(name, "").strip() or default


def boolean(name: str, default: bool) -> bool:
    """Return the value of 1/true/yes/on or 0/false/no/off, case-insensitive."""
    value = text(name).lower()
    if not value:
        return default
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise exceptions.ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}")


def integer(name: str, default: int, *, minimum: int = 0) -> int:
    """Return an integer of at least `minimum`."""
    value = text(name)
    if not value:
        return default
    if not (value.isascii() and value.isdigit()) or int(value) < minimum:
        raise exceptions.ImproperlyConfigured(
            f"{name} must be a whole number of at least {minimum}, not {value!r}"
        )
    return int(value)


def words(name: str, default: list[str] | None = None) -> list[str]:
    """Return the items of a comma-separated list, without surrounding spaces."""
    parts = [word.strip() for word in text(name).split(",")]
    return [word for word in parts if word] or list(default or [])


def is_set(name: str) -> bool:
    """Return True if the variable is set, even to an empty value."""
    return name in os.environ


def lines_of_file(name: str) -> list[str]:
    """Return the non-empty lines of the file that the variable names; [] without the variable."""
    path = text(name)
    if not path:
        return []
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        # Without the error's text: it may contain parts of a secret.
        raise exceptions.ImproperlyConfigured(f"{name}: {path} cannot be read") from error
    return [line.strip() for line in lines if line.strip()]


def secret(name: str) -> str:
    """Return the value, else the one line of the file that NAME_FILE names, such as a mounted secret.

    Raises ImproperlyConfigured if the file cannot be read or does not have exactly one line.
    """
    file = f"{name}_FILE"
    value = text(name)
    if value or not text(file):
        return value
    lines = lines_of_file(file)
    if len(lines) != 1:
        raise exceptions.ImproperlyConfigured(f"{file}: the file must contain exactly one line")
    return lines[0]
