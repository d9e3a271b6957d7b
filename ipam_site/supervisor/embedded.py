"""The embedded servers as child processes: initialize, build URLs.

They hold the lock of the data folder, so that no other server starts in it before they have ended.
"""

from __future__ import annotations

import dataclasses
import pathlib
import shlex
import signal
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
    """An embedded server: how to run it, its URL, and a function that waits until it answers."""

    spec: child.Spec
    url: str
    wait: Callable[[Callable[[], bool]], None]


# Signals, and the seconds to wait after each. PostgreSQL: fast shutdown, then immediate shutdown,
# after which the next start replays the log.
STOP = {
    "redis": ((signal.SIGTERM, 1.5),),
    "postgres": ((signal.SIGINT, 3.0), (signal.SIGQUIT, 1.0)),
}


def postgres_server(data: pathlib.Path, secrets: dict[str, str], lock: int) -> Embedded:
    """Return PostgreSQL in the data folder; the first start runs initdb."""
    servers, account = accounts.servers_folder(data)
    server = postgres.Server(
        bin=programs.postgres(programs.folder(account)),
        data=servers / "postgres",
        account=account,
        port=_port(data, "database_url"),
        password=secrets["postgres_superuser"],
    )
    postgres.make_data(server)
    spec = child.Spec(
        name="postgres",
        command=server.command(postgres.SETTINGS),
        env=postgres.environment(),
        stop=STOP["postgres"],
        on_death=signal.SIGINT,
        account=account,
        inherited=(lock,),
    )

    def wait(alive: Callable[[], bool]) -> None:
        postgres.wait_until_ready(server, alive)
        postgres.make_database(server, name=postgres.NAME, password=secrets["postgres"])

    url = postgres.url(server.port, name=postgres.NAME, password=secrets["postgres"])
    return Embedded(spec, url, wait)


def redis_server(data: pathlib.Path, secrets: dict[str, str], lock: int) -> Embedded:
    """Return Redis in the data folder: as a broker it never evicts, and persists its queues."""
    servers, account = accounts.servers_folder(data)
    folder = servers / "redis"
    if not folder.exists():
        folder.mkdir(mode=0o700)
        account.chown(folder)
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
        inherited=(lock,),
        stdin="".join(f"{name} {shlex.quote(value)}\n" for name, value in config.items()),
    )
    url = f"redis://:{parse.quote(password, safe='')}@127.0.0.1:{port}/0"
    return Embedded(spec, url, lambda alive: wait_for_redis(url, alive))


def _port(data: pathlib.Path, key: str) -> int:
    """Return the port of the last start if it is free, so that clients can reconnect."""
    previous_url = data_folder.connections(data).get(key, "")
    return processes.free_port(parse.urlsplit(previous_url).port if previous_url else None)


def wait_for_redis(url: str, alive: Callable[[], bool]) -> None:
    """Wait until Redis answers, which refuses commands while it loads its data. Raises RedisError."""
    with redis.Redis.from_url(url, socket_timeout=2) as client:
        processes.wait_for(client.ping, alive, refused=(redis.RedisError,), seconds=30)
