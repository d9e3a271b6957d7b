"""The embedded PostgreSQL: make its data directory, its command line, its role and database.

TCP on 127.0.0.1 only and no socket file: a socket's path may have 107 bytes, a data folder's more.
The application's role owns its database and nothing else; only `up` knows the superuser.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import time
from typing import TYPE_CHECKING
from urllib import parse

import psycopg
from psycopg import sql

from ipam_site.supervisor import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ipam_site.supervisor import account as accounts

SUPERUSER = "postgres"
NAME = "cadastre"

# fsync and synchronous_commit stay on: what was answered with 201 survives a power cut.
SETTINGS = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    # Short statements only: compiling or sharing them out costs more than it gains.
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    # Statements may carry what must not be in a log.
    "log_min_error_statement": "panic",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# PostgreSQL's own, the same on every machine: byte order for sorting, Unicode for upper and lower.
LOCALE = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")


@dataclasses.dataclass(frozen=True)
class Server:
    """One server: its programs, its data directory, the account it runs under, its port."""

    bin: pathlib.Path
    data: pathlib.Path
    account: accounts.Account
    port: int
    password: str
    locale: tuple[str, ...] = LOCALE

    def command(self, settings: dict[str, str]) -> list[str]:
        fixed = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        options = [f"--{name}={value}" for name, value in {**settings, **fixed}.items()]
        return [str(self.bin / "postgres"), "-D", str(self.data), *options]

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """A superuser's connection. SCRAM proves both sides: it fails at another server's port."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=SUPERUSER,
            password=self.password,
            dbname=database,
            connect_timeout=5,
            autocommit=True,
        )


class InitError(Exception):
    """The data directory could not be made."""


def make_data(server: Server) -> None:
    """initdb, once: into a folder beside, renamed when it is complete. Raises InitError."""
    if server.data.exists():
        return
    half = server.data.with_name(f"{server.data.name}.new")
    shutil.rmtree(half, ignore_errors=True)
    with _password_file(server) as file:
        code, _ = processes.run(
            [
                str(server.bin / "initdb"),
                f"--pgdata={half}",
                f"--username={SUPERUSER}",
                f"--pwfile={file}",
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
        raise InitError(f"initdb failed (exit code {code}), for the reason that it printed")
    os.rename(half, server.data)


@contextlib.contextmanager
def _password_file(server: Server) -> Iterator[pathlib.Path]:
    path = server.data.with_name(".password")
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(server.password)
        server.account.own(path)
        yield path
    finally:
        path.unlink()


def environment() -> dict[str, str]:
    """What the servers see of our environment: no PG* variable may change where they look."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def wait_until_ready(server: Server, alive: Callable[[], bool], *, seconds: float = 60) -> None:
    """Until the server lets us in; raises the last error when it died or the time is over.

    A minute, because replaying the log after a crash takes its time.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            server.connect().close()
        except psycopg.OperationalError:
            if not alive() or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def make_database(server: Server, *, name: str, password: str, createdb: bool = False) -> None:
    """The application's role with this password, and its database; changes nothing the second time."""
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
