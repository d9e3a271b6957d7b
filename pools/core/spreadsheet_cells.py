"""Texts in cells of spreadsheets."""

from __future__ import annotations

# What begins so is computed; some programs take the full-width forms for the same.
_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def escaped(text: str) -> str:
    """A text that no spreadsheet takes for a formula (OWASP ASVS 1.2.10); read back as it was."""
    return f"'{text}" if text.startswith(_COMPUTED) else text


def unescaped(text: str) -> str:
    """What was escaped, as it was before."""
    return text[1:] if text[:1] == "'" and escaped(text[1:]) == text else text
