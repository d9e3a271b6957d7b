"""Marks for texts that pages translate; this package imports no Django."""

from __future__ import annotations


def gettext_noop(text: str) -> str:
    """Return the text; `manage.py makemessages` finds it, as with Django's function of this name."""
    return text
