"""The embedded PostgreSQL: create its data directory, its command line, its role and database.

The server listens on TCP of 127.0.0.1 only, without a socket file: the path of a socket is limited
to 107 bytes, and the path of a data folder may be longer. The application's role owns only its
database; only `up` has the superuser's password.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import tempfile
from typing import TYPE_CHECKING
from urllib import parse

import psycopg
from psycopg import sql

from ipam_site.supervisor import processes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipam_site.supervisor import account as accounts

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


@dataclasses.dataclass(frozen=True)
class Server:
    """A server: its programs, its data directory, its account, port and password."""

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
        """Connect as superuser. SCRAM authenticates the server, too: another one is refused."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=SUPERUSER,
            password=self.password,
            dbname=database,
            connect_timeout=5,
            autocommit=True,
        )


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
