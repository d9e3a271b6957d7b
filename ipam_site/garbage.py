"""How often a process that answers requests looks for garbage: the web server's workers, and benchmarks."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Call it when everything is imported."""
    # What was imported stays: looking through it for garbage takes as long as hundreds of requests.
    gc.collect()
    gc.freeze()
    # A request makes some hundred objects, nearly all gone with it: looking for garbage after each 700
    # takes a twentieth of its time.
    gc.set_threshold(20_000, 20, 20)
