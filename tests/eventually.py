"""Waiting for what happens in other processes and threads."""

import time
from collections.abc import Callable


def until(happened: Callable[[], object], seconds: float = 60) -> None:
    """Long, because a machine may be slow: only what is broken waits so long."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
