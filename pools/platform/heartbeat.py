"""Heartbeats: each process touches a file of its own when it makes progress; `manage.py worker_health` reads its age.

A file and not a row: a process that waits for an unavailable database is healthy.
"""

from __future__ import annotations

import contextlib

from django.conf import settings


def touch(name: str) -> None:
    """Record progress of a process (`worker`, `reconciler`, `watcher`, `beat`)."""
    path = settings.IPAM_DATA / "alive" / name
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch()
