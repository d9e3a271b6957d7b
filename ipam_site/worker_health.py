"""`manage.py worker_health NAME`: liveness probe of a process, without Django or a database.

A ping is not enough: a worker may answer it and take no tasks. Each process touches a file when it
makes progress (pools/platform/heartbeat.py). An idle worker is stuck only if messages wait in its
queue. Services that it depends on do not count: a restart would not bring them back.
"""

import argparse
import pathlib
import time
from collections.abc import Sequence

from ipam_site import data_folder, env

# Seconds above the hard time limit of the longest task of each queue.
_WORKERS = {"worker": ("ipam.default", 620.0), "reconciler": ("ipam.clusters", 620.0)}
_OTHERS = {"watcher": 60.0, "beat": 60.0}


def main(arguments: Sequence[str]) -> int:
    """Print why the process is stuck, or `ok`, and return the exit status: 1 if it is stuck."""
    parser = argparse.ArgumentParser(prog="manage.py worker_health", description=__doc__)
    parser.add_argument("name", choices=(*_WORKERS, *_OTHERS))
    parser.add_argument("--max-age", type=float, metavar="SECONDS", help="limit without progress")
    options = parser.parse_args(arguments)
    reason = stuck_reason(options.name, data_folder.locate(), max_age=options.max_age)
    print(reason or "ok")  # noqa: T201
    return 1 if reason else 0


def stuck_reason(name: str, data: pathlib.Path, *, max_age: float | None = None) -> str:
    """Return why the process is stuck, or "" if it makes progress."""
    queue, longest = _WORKERS.get(name) or ("", _OTHERS.get(name, 0.0))
    try:
        age = time.time() - (data / "alive" / name).stat().st_mtime
    except OSError:
        return f"{name} did not start"
    if age <= (longest if max_age is None else max_age):
        return ""
    if queue and not _waiting(queue, data):
        return ""
    return f"{name} has made no progress for {age:.0f} s"


def _waiting(queue: str, data: pathlib.Path) -> bool:
    """Return True if messages wait in the queue, False also if the broker does not answer."""
    import redis  # noqa: PLC0415  # only if the worker made no progress

    from ipam_site import broker  # noqa: PLC0415

    url = env.secret("REDIS_URL") or data_folder.connections(data).get("redis_url", "")
    if not url:
        return False
    try:
        with broker.connect(url, seconds=2) as client:
            return bool(client.llen(queue))
    except redis.RedisError:
        return False
