"""Shares in whole per cent."""

from __future__ import annotations


def whole_percent(share: float) -> int:
    """A share, 0 to 1, in whole per cent, rounded down, but for what a float lacks (0.29 * 100)."""
    return int(100 * share + 1e-9)
