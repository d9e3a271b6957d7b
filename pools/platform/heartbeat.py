"""Each process touches a file of its own whenever it gets on; `manage.py worker_health` looks at its age.

A file rather than a row: a process that waits for a database that is away is well.
"""

from __future__ import annotations

import contextlib

from django.conf import settings


def touch(name: str) -> None:
    """The process of this name (`worker`, `reconciler`, `watcher`, `beat`) got on."""
    path = settings.IPAM_DATA / "alive" / name
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch()
