"""Throw-away servers for the tests, from the same programs as `manage.py up` uses."""

import atexit
import contextlib
import os
import pathlib
import secrets
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from ipam_site import data_folder
from ipam_site.supervisor import embedded, processes

# Nothing here outlives the run, so nothing needs to reach a disk.
_FAST = {
    **embedded.SETTINGS,
    "fsync": "off",
    "full_page_writes": "off",
    # Its shared memory in its own folder, which goes with it.
    "dynamic_shared_memory_type": "mmap",
    "synchronous_commit": "off",
    "max_connections": "300",
    "autovacuum_naptime": "5s",
}
_ROOM = 1 << 30


def _folder() -> tuple[pathlib.Path, embedded.Account]:
    memory = pathlib.Path("/dev/shm")
    in_memory = memory.is_dir() and shutil.disk_usage(memory).free > _ROOM
    folder = pathlib.Path(
        tempfile.mkdtemp(prefix="cadastre-test-", dir=memory if in_memory else None)
    )
    account = embedded.account_for_servers(folder)
    account.chown(folder)
    return folder, account


def shared_folder() -> str:
    """A folder of this run for what its processes share, which the servers' account can read."""
    folder = tempfile.mkdtemp(prefix="cadastre-test-")
    pathlib.Path(folder).chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def start_postgres() -> str:
    """Start the server, stop it at exit; the URL of a role that may create databases."""
    folder, account = _folder()
    other = os.environ.get("TEST_POSTGRES_BIN")
    server = embedded.Server(
        bin=pathlib.Path(other) if other else embedded.programs(account)[0],
        data=folder / "postgres",
        account=account,
        port=processes.free_port(),
        password=secrets.token_urlsafe(24),
        locale=("--locale=C.UTF-8",) if other else embedded.LOCALE,
    )
    embedded.make_data(server)
    process = _popen(server.command(_FAST), folder, account, signal.SIGQUIT)
    atexit.register(_end, process, folder, signal.SIGQUIT)
    embedded.wait_until_ready(server, lambda: process.poll() is None)
    embedded.make_database(server, name="cadastre", password=server.password, createdb=True)
    with server.connect() as connection:
        # tests/demo_rows.py copies rows without what triggers would add to them.
        connection.execute("GRANT SET ON PARAMETER session_replication_role TO cadastre")
    return embedded.url(server.port, name="cadastre", password=server.password)


def migrated(url: str) -> str:
    """The name of a database beside this one, with all migrations; whoever asks first makes it."""
    place = urllib.parse.urlsplit(url)
    name = "cadastre_migrated"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(4243)")
        text = "SELECT true FROM pg_database WHERE datname = %s AND datistemplate"
        if connection.execute(text, [name]).fetchone():
            return name
        drop(connection, name)
        connection.execute(f"CREATE DATABASE {name}")
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity=0"],
            cwd=data_folder.PROJECT,
            env=os.environ | {"DATABASE_URL": place._replace(path=f"/{name}").geturl()},
            check=True,
        )
        connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE true")
    return name


def drop(connection: psycopg.Connection[Any], database: str) -> None:
    """Drop a database if it is there, and end our sessions in it first.

    Not WITH (FORCE): that refuses where autovacuum, a superuser's process, is just at work there. A
    plain DROP sends autovacuum away itself, and waits for the sessions that are ending.
    """
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = %s AND usename = current_user",
        [database],
    )
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(database)))


@contextlib.contextmanager
def redis() -> Iterator[str]:
    folder, account = _folder()
    port = processes.free_port()
    command = [str(embedded.programs(account)[1]), "--port", str(port)]
    command += ["--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = _popen(command, folder, account, signal.SIGKILL)
    url = f"redis://127.0.0.1:{port}/0"
    try:
        embedded.wait_for_redis(url, lambda: process.poll() is None)
        yield url
    finally:
        _end(process, folder, signal.SIGKILL)


def _popen(
    command: list[str], folder: pathlib.Path, account: embedded.Account, on_death: int
) -> subprocess.Popen[bytes]:
    with (folder / f"{pathlib.Path(command[0]).name}.log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd="/",
            env=embedded.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=processes.die_with_parent(on_death),
            **account.popen(),
        )


def _end(process: subprocess.Popen[bytes], folder: pathlib.Path, signum: int) -> None:
    process.send_signal(signum)
    process.wait(60)
    shutil.rmtree(folder, ignore_errors=True)


def heard(canary: socket.socket) -> bool:
    """Whether somebody connected to the canary."""
    with contextlib.suppress(BlockingIOError):
        canary.accept()[0].close()
        return True
    return False


@contextlib.contextmanager
def in_thread(server: socketserver.BaseServer) -> Iterator[None]:
    """Serve what is asked within, and end then."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
