"""Cells of spreadsheets: their types, and escaping of strings in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_COLUMNS = 16_384

Row = tuple[int, Sequence[str]]  # row number, from 1, and cells; rows may be short


class Number(str):
    """A cell that holds a number."""

    __slots__ = ()


class Date(str):
    """A cell that holds a date or a time."""

    __slots__ = ()


class Formula(str):
    """A cell that holds a formula."""

    __slots__ = ()


class Failure(str):
    """A cell that holds a spreadsheet error such as #N/A."""

    __slots__ = ()


# Prefixes of a formula; some programs accept the full-width forms too.
_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def escape(text: str) -> str:
    """Return a string that no spreadsheet evaluates as a formula (OWASP ASVS 1.2.10)."""
    return f"'{text}" if text.startswith(_COMPUTED) else text


_QUOTED = re.compile('="([^"]*)"')
_PLACE = re.compile(r"'(?=[0-9a-fA-F.:/]+$)")


def unescape(text: str) -> str:
    """Return the original of an escaped string, and of a text that a spreadsheet quotes: `="10.0.0.1"`, `'10.0.0.1`."""
    if match := _QUOTED.fullmatch(text):
        return match[1]
    if _PLACE.match(text):
        return text[1:]
    return text[1:] if text[:1] == "'" and escape(text[1:]) == text else text
