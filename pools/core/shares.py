"""Shares as whole percentages."""

from __future__ import annotations


def whole_percent(share: float) -> int:
    """Return a share (0 to 1) as a percentage, rounded down; tolerates float error (0.29 * 100)."""
    return int(100 * share + 1e-9)
