"""Backup and restore of the one database, by PostgreSQL's own programs.

A backup is a `pg_dump` in its custom format: one snapshot, restored exactly. A restore is one transaction:
what was there goes, what the backup has comes, and the recovery begins, or nothing happens at all; whoever
is connected meanwhile sees the one or the other. Passwords reach the programs by the environment, which
other users of the machine cannot read.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import psycopg
from django.conf import settings
from django.core import management
from django.db import connection
from django.db.migrations import loader
from psycopg import sql

from pools import sql as statements
from pools.clusters import recovery_mode
from pools.core import errors
from pools.platform import database, events

# Logins end with a restore: nobody shall be let in by one of long ago.
_WITHOUT_ROWS = ("django_session",)
_OURS = ("pools", "claims")
_PIECE = 1 << 20  # bytes
_Migrations = set[tuple[str, str]]


class NoProgram(errors.Unavailable):
    """PostgreSQL's client programs are not installed, or are older than the server."""

    code = "no_backup_program"


class BackupFailed(errors.IpamError):
    """The backup could not be made."""

    code = "backup_failed"


class RestoreFailed(errors.IpamError):
    """The backup could not be restored; nothing was changed."""

    code = "restore_failed"


class NotABackup(errors.InvalidInput):
    """The file is no backup of a register."""

    code = "not_a_backup"


class NewerRelease(errors.Conflict):
    """The backup was made by a newer release than this one."""

    code = "newer_release"


class NotEmpty(errors.Conflict):
    """The database is not empty, or somebody works on it."""

    code = "not_empty"


@dataclass(frozen=True)
class Backup:
    """A backup that was written; `size` in bytes."""

    path: pathlib.Path
    size: int


def make(path: pathlib.Path) -> Backup:
    """Write a backup of the configured database, complete or not at all, for its owner's eyes only.

    Raises NoProgram, BackupFailed.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BackupFailed(f"{path.parent}: {error.strerror}") from error
    os.close(handle)
    try:
        options = [f"--exclude-table-data={name}" for name in _WITHOUT_ROWS]
        _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", *options,
             f"--file={temporary}", f"--dbname={_address()}")  # fmt: skip
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        size = os.stat(temporary).st_size
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return Backup(path, size)


def restore(
    path: pathlib.Path, *, author: events.Author, replace: bool = False, recovery: bool = True
) -> str:
    """Bring the database to what the backup has; when that was made, as PostgreSQL says it.

    With `recovery` nothing is allocated from the moment on at which it is there. Migrations that the
    backup lacks are applied afterwards; then nobody else may be connected, because an older release
    knows no recovery. Raises NotABackup, NewerRelease, NotEmpty, NoProgram, RestoreFailed.
    """
    applied, release_migrations = _applied(path), _release_migrations()
    newer = sorted(f"{app}.{name}" for app, name in applied - release_migrations if app in _OURS)
    if newer:
        raise NewerRelease(f"This release does not know the migration {newer[0]} of the backup.")
    older = bool(release_migrations - applied)
    if _tables() and not replace:
        raise NotEmpty("The database is not empty: restore into a new one, or replace this one.")
    if older and (others := _others()):
        raise NotEmpty(
            f"The backup is of an older release, and {others} others are connected: stop web, workers,"
            " watcher and beat, or restore it with its own release."
        )
    _load(
        path,
        [statements.text("emptied")] if replace else [],
        _begin(author, recovery and not older),
    )
    connection.close()  # what it had prepared is gone
    management.call_command("migrate", interactive=False, verbosity=0)
    if recovery and older:
        recovery_mode.begin(author=author, lost=recovery_mode.time_since_last_write())
    return _made_at(path)


def _begin(author: events.Author, recovery: bool) -> list[str]:
    if not recovery:
        return []
    values = [
        sql.Literal(text) for text in (author.reason[:500], author.actor, author.as_context())
    ]
    call = sql.SQL("SELECT ipam_recovery_begin({}, {}, {}, ipam_lost_since_backup());\n")
    connection.ensure_connection()
    return ["RESET search_path;\n", call.format(*values).as_string(connection.connection)]


def _load(path: pathlib.Path, before: Iterable[str], after: Iterable[str]) -> None:
    """The backup as SQL into the database, within one transaction."""
    reads = _command("pg_restore", "--no-owner", "--no-privileges", "--file=-", str(path))
    writes = _command(
        "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null",
        f"--dbname={_address()}",
    )  # fmt: skip
    with tempfile.TemporaryFile() as output, subprocess.Popen(
        writes, stdin=subprocess.PIPE, stdout=output, stderr=output, env=_environment()
    ) as psql:  # fmt: skip
        into = psql.stdin
        assert into is not None  # noqa: S101  # mypy
        with contextlib.suppress(BrokenPipeError):  # it says why
            into.write("".join(["BEGIN;\n", *before]).encode())
            with _output(reads) as script:
                _copied(script, into)
            into.write("".join([*after, "COMMIT;\n"]).encode())
            into.close()
        if psql.wait():
            output.seek(0)
            raise RestoreFailed(_first_error(output.read()))


@contextlib.contextmanager
def _output(command: list[str]) -> Iterator[IO[bytes]]:
    """What a program writes; RestoreFailed when it did not end well, before anything is committed."""
    with tempfile.TemporaryFile() as output, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=output, env=_environment()
    ) as program:  # fmt: skip
        assert program.stdout is not None  # noqa: S101  # mypy
        yield program.stdout
        if program.wait():
            output.seek(0)
            raise RestoreFailed(_first_error(output.read()))


def _copied(script: IO[bytes], into: IO[bytes]) -> None:
    # Older servers do not know this setting, which stands among the first lines.
    first = script.read(_PIECE).replace(b"SET transaction_timeout = 0;\n", b"", 1)
    into.write(first)
    shutil.copyfileobj(script, into, _PIECE)


def _first_error(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return next(
        (line for line in lines if "ERROR" in line or "error" in line), "; ".join(lines[:1])
    )


# --- what is there --------------------------------------------------------------------------------


def _applied(path: pathlib.Path) -> _Migrations:
    """The migrations of a backup."""
    command = _command(
        "pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(path)
    )
    try:
        done = subprocess.run(command, capture_output=True, env=_environment(), check=False)
    except OSError as error:
        raise NoProgram(str(error)) from error
    if done.returncode:
        raise NotABackup(_first_error(done.stderr))
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    migrations = {(row[1], row[2]) for row in rows if len(row) == 4 and row[0].isdigit()}
    if not any(app in _OURS for app, _ in migrations):
        raise NotABackup(f"{path} holds no register.")
    return migrations


def _made_at(path: pathlib.Path) -> str:
    listed = subprocess.run(
        _command("pg_restore", "--list", str(path)), capture_output=True, check=False, text=True
    )
    match = re.search(r"^; *Archive created at (.*)$", listed.stdout, re.MULTILINE)
    return match.group(1) if match else "?"


def _release_migrations() -> _Migrations:
    return set(loader.MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {})


def _tables() -> int:
    count: int = database.call(
        "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()", []
    )
    return count


def _others() -> int:
    count: int = database.call(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
        [],
    )
    return count


# --- the programs ---------------------------------------------------------------------------------


def _run(program: str, *arguments: str) -> None:
    done = subprocess.run(
        _command(program, *arguments), capture_output=True, env=_environment(), check=False
    )
    if done.returncode:
        raise BackupFailed(_first_error(done.stderr))


def _command(program: str, *arguments: str) -> list[str]:
    return [str(_programs() / program), *arguments]


def _programs() -> pathlib.Path:
    """The folder of pg_dump, pg_restore and psql that are not older than the server."""
    connection.ensure_connection()
    server = connection.connection.info.server_version // 10_000
    on_path = shutil.which("pg_dump")
    folders = [settings.IPAM_PG_BIN, on_path and os.path.dirname(on_path)]
    for folder in map(pathlib.Path, filter(None, folders)):
        if _version(folder / "pg_dump") >= server:
            return folder
    raise NoProgram(
        f"pg_dump of PostgreSQL {server} or later is needed: IPAM_PG_BIN names its folder."
    )


def _version(program: pathlib.Path) -> int:
    """The major version, 0 where it does not run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, check=False, text=True)
    except OSError:
        return 0
    match = re.search(r"\) (\d+)", done.stdout)
    return int(match.group(1)) if match else 0


def _parameters() -> dict[str, Any]:
    """The connection's parameters that libpq knows; our own limits are not for a backup."""
    libpq_keywords = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    parameters = connection.get_connection_params()
    return {key: value for key, value in parameters.items() if key in libpq_keywords - {"options"}}


def _address() -> str:
    """Without the password: every user of the machine sees command lines."""
    without = {key: value for key, value in _parameters().items() if key != "password"}
    return psycopg.conninfo.make_conninfo(**without)


def _environment() -> dict[str, str]:
    password = _parameters().get("password")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return {**environment, "LC_ALL": "C", **({"PGPASSWORD": password} if password else {})}
