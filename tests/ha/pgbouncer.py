"""PgBouncer in transaction mode before the server of the tests."""

import contextlib
import os
import shutil
import signal
import socket
import urllib.parse
from collections.abc import Iterator

from ipam_site.supervisor import processes
from tests import eventually, servers

# What sessions cannot ask for here, so that each connection to PostgreSQL begins with it.
LIMITS = (
    "SET statement_timeout = '5s'; SET lock_timeout = '2s';"
    " SET idle_in_transaction_session_timeout = '30s'"
)


def _programs() -> list[str]:
    """Debian's, which it keeps where only root's PATH leads, and that of TEST_PGBOUNCER_BIN."""
    result = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
    return [path for path in (result, os.environ.get("TEST_PGBOUNCER_BIN")) if path]


PROGRAMS = _programs()


@contextlib.contextmanager
def running(program: str, url: str, *settings: str, limits: str = LIMITS) -> Iterator[str]:
    """The URL of the same database through a pool of four connections."""
    place = urllib.parse.urlsplit(url)
    folder, account = servers._folder()
    port = processes.free_port()
    database = f"host={place.hostname} port={place.port}"
    if limits:
        quoted = limits.replace("'", "''")
        database += f" connect_query='{quoted}'"
    (folder / "users.txt").write_text(f'"{place.username}" "{place.password}"\n')
    lines = [
        "[databases]", f"* = {database}", "[pgbouncer]", "listen_addr = 127.0.0.1",
        f"listen_port = {port}", "unix_socket_dir =", "auth_type = plain",
        f"auth_file = {folder}/users.txt", "pool_mode = transaction", "default_pool_size = 4",
        "max_client_conn = 200", *settings,
    ]  # fmt: skip
    (folder / "pgbouncer.ini").write_text("\n".join(lines))
    command = [program, str(folder / "pgbouncer.ini")]
    process = servers._popen(command, folder, account, signal.SIGKILL)
    try:
        eventually.until(lambda: _answers(port), seconds=30)
        authority = f"{place.username}:{place.password}@127.0.0.1:{port}"
        yield place._replace(netloc=authority).geturl()
    finally:
        servers._end(process, folder, signal.SIGKILL)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
