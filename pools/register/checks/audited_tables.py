"""The rows of the register against the events of the log: what was changed past the triggers."""

from __future__ import annotations

from collections.abc import Iterator

from pools.platform.checks import checks
from pools.register.checks import blocks, row_history

COMPARISONS = (blocks.HISTORY, row_history.BLOCKS, row_history.ROWS)


def differences() -> Iterator[str]:
    """One sentence for each row that is not what its last event says."""
    for check in COMPARISONS:
        for _, step in check.steps(None):
            with checks.snapshot():
                for violation in check.find(step):
                    yield violation.text
