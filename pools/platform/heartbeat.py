"""What long-lived processes have in common: rare garbage collections, and heartbeats.

Each process touches a file of its own when it makes progress; `manage.py worker_health` reads its age.

A file and not a row: a process that waits for an unavailable database is healthy.
"""

import contextlib
import gc

from django.conf import settings


def touch(name: str) -> None:
    """Record progress of a process (`worker`, `reconciler`, `watcher`, `beat`)."""
    path = settings.IPAM_DATA / "alive" / name
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch()


def collect_seldom() -> None:
    """Make garbage collection rare. Call this after all imports."""
    # Imported objects stay: scanning them takes as long as hundreds of requests.
    gc.collect()
    gc.freeze()
    # A request allocates some hundred objects and frees nearly all of them; a page of a cluster's objects
    # allocates a hundred thousand without cycles. Python's default, a collection after each 700 objects,
    # takes 5 % of a request's time.
    gc.set_threshold(20_000, 20, 20)
