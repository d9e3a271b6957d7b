"""`manage.py worker_health NAME`: does a process get on? For probes: quick, without Django or a database.

Not a ping, which a worker answers that takes no tasks any more. Each process touches a file when it gets on
(pools/platform/heartbeat.py). A worker with nothing to do gets on with nothing: it is stuck only when messages wait
for it. What it depends on may be away; starting it again would not bring that back.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Sequence

from ipam_site import data_folder, env

# Above the hard limit of the longest task of each queue: who works on one gets on when it ends.
_WORKERS = {"worker": ("ipam.default", 300.0), "reconciler": ("ipam.clusters", 620.0)}
_OTHERS = {"watcher": 60.0, "beat": 60.0}
NAMES = (*_WORKERS, *_OTHERS)


def main(arguments: Sequence[str]) -> int:
    """0 when the process gets on, else 1; one line says why."""
    parser = argparse.ArgumentParser(prog="manage.py worker_health", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--max-age", type=float, metavar="SECONDS", help="without getting on")
    options = parser.parse_args(arguments)
    why = stuck(options.name, data_folder.locate(), max_age=options.max_age)
    print(why or "ok")  # noqa: T201
    return 1 if why else 0


def stuck(name: str, data: pathlib.Path, *, max_age: float | None = None) -> str:
    """Why the process does not get on; "" when it does."""
    queue, longest = _WORKERS.get(name) or ("", _OTHERS.get(name, 0.0))
    try:
        age = time.time() - (data / "alive" / name).stat().st_mtime
    except OSError:
        return f"{name} did not start"
    if age <= (longest if max_age is None else max_age):
        return ""
    if queue and not _waiting(queue, data):
        return ""
    return f"{name} has not got on for {age:.0f} s"


def _waiting(queue: str, data: pathlib.Path) -> bool:
    """Whether messages wait; False also when the broker does not answer."""
    import redis  # noqa: PLC0415  # only for a worker that is quiet

    url = env.secret("REDIS_URL") or data_folder.connections(data).get("redis_url", "")
    if not url:
        return False
    try:
        with redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as client:
            return bool(client.llen(queue))
    except redis.RedisError:
        return False
