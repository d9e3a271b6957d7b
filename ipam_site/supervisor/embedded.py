"""The embedded servers as children: cleared of an earlier life, made at the first start, connected."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import shlex
import signal
import time
from typing import TYPE_CHECKING
from urllib import parse

import redis

from ipam_site import data_folder
from ipam_site.supervisor import account as accounts
from ipam_site.supervisor import child, postgres, processes, programs

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Embedded:
    """A server of ours: how to run it, how to see that it answers, what its clients need."""

    spec: child.Spec
    url: str
    wait: Callable[[Callable[[], bool]], None]


# Signals, and the seconds that each may take. PostgreSQL ends fast, then at once (the log is replayed
# at the next start).
STOP = {
    "redis": ((signal.SIGTERM, 1.5),),
    "postgres": ((signal.SIGINT, 3.0), (signal.SIGQUIT, 1.0)),
}


def postgres_server(data: pathlib.Path, secrets: dict[str, str]) -> Embedded:
    """PostgreSQL in the data folder; initdb at the first start."""
    servers, account = accounts.servers_folder(data)
    server = postgres.Server(
        bin=programs.postgres(programs.folder(account)),
        data=servers / "postgres",
        account=account,
        port=_port(data, "database_url"),
        password=secrets["postgres_superuser"],
    )
    # Of a supervisor that was killed a moment ago. A new server beside it would be refused, but a
    # probe of the port would find the old one and call it ready.
    polite = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
    processes.stop_running_in(server.data, signals=polite, seconds=10)
    postgres.make_data(server)
    spec = child.Spec(
        name="postgres",
        command=server.command(postgres.SETTINGS),
        env=postgres.environment(),
        stop=STOP["postgres"],
        on_death=signal.SIGINT,
        account=account,
    )

    def wait(alive: Callable[[], bool]) -> None:
        postgres.wait_until_ready(server, alive)
        postgres.make_database(server, name=postgres.NAME, password=secrets["postgres"])

    url = postgres.url(server.port, name=postgres.NAME, password=secrets["postgres"])
    return Embedded(spec, url, wait)


def redis_server(data: pathlib.Path, secrets: dict[str, str]) -> Embedded:
    """Redis in the data folder: a broker, so it never evicts, and it keeps its queue on disk."""
    servers, account = accounts.servers_folder(data)
    folder = servers / "redis"
    if not folder.exists():
        folder.mkdir(mode=0o700)
        account.own(folder)
    processes.stop_running_in(folder, signals=(signal.SIGTERM, signal.SIGKILL), seconds=5)
    port, password = _port(data, "redis_url"), secrets["redis"]
    config = {
        "bind": "127.0.0.1",
        "port": str(port),
        "requirepass": password,
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    spec = child.Spec(
        name="redis",
        command=[str(programs.redis(programs.folder(account))), "-"],
        env=postgres.environment(),
        stop=STOP["redis"],
        on_death=signal.SIGTERM,
        account=account,
        stdin="".join(f"{name} {shlex.quote(value)}\n" for name, value in config.items()),
    )
    url = f"redis://:{parse.quote(password, safe='')}@127.0.0.1:{port}/0"
    return Embedded(spec, url, lambda alive: wait_for_redis(url, alive))


def _port(data: pathlib.Path, key: str) -> int:
    """The port of the last start, so that what was connected finds the server again."""
    earlier = data_folder.connections(data).get(key, "")
    return processes.free_port(parse.urlsplit(earlier).port if earlier else None)


def wait_for_redis(url: str, alive: Callable[[], bool]) -> None:
    """Until it answers. Raises TimeoutError when it is gone, or silent for 30 s."""
    deadline = time.monotonic() + 30
    with redis.Redis.from_url(url, socket_timeout=2) as client:
        while alive() and time.monotonic() < deadline:
            # Also while it loads its file.
            with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
                client.ping()
                return
            time.sleep(0.05)
    raise TimeoutError("Redis did not start, see logs/redis.log of the data folder")
