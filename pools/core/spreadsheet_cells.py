"""Escaping of strings in spreadsheet cells."""

from __future__ import annotations

# Prefixes of a formula; some programs accept the full-width forms too.
_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def escape(text: str) -> str:
    """Return a string that no spreadsheet evaluates as a formula (OWASP ASVS 1.2.10)."""
    return f"'{text}" if text.startswith(_COMPUTED) else text


def unescape(text: str) -> str:
    """Return the original of an escaped string."""
    return text[1:] if text[:1] == "'" and escape(text[1:]) == text else text
