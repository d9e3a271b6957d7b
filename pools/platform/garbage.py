"""Garbage collection of long-lived processes: web workers, workers, watchers and benchmarks."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Make garbage collection rare. Call this after all imports."""
    # Imported objects stay: scanning them takes as long as hundreds of requests.
    gc.collect()
    gc.freeze()
    # A request allocates some hundred objects and frees nearly all of them; a page of a cluster's objects
    # allocates a hundred thousand without cycles. Python's default, a collection after each 700 objects,
    # takes 5 % of a request's time.
    gc.set_threshold(20_000, 20, 20)
