"""Backup and restore of the database with PostgreSQL's client programs.

A backup is a `pg_dump` in the custom format: one snapshot, which is restored exactly. A restore is one
transaction: it replaces the contents of the database by those of the backup and begins the recovery
mode, or changes nothing. Other connections see the state before or after. Passwords are passed to the
programs in the environment, which other users of the machine cannot read.
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

# A restore ends all sessions: an old session must not become valid again.
_WITHOUT_ROWS = ("pools_browsersession", "django_session")
_APPS = ("pools", "claims")
_CHUNK = 1 << 20  # bytes
_Migrations = set[tuple[str, str]]


class NoProgram(errors.Unavailable):
    """PostgreSQL's client programs are not installed, or are older than the server."""

    code = "no_backup_program"


class BackupFailed(errors.IpamError):
    """The backup could not be written."""

    code = "backup_failed"


class RestoreFailed(errors.IpamError):
    """The backup could not be restored; nothing was changed."""

    code = "restore_failed"


class NotABackup(errors.InvalidInput):
    """The file is not a backup of a register."""

    code = "not_a_backup"


class NewerRelease(errors.Conflict):
    """A newer release than this one has written the backup."""

    code = "newer_release"


class NotEmpty(errors.Conflict):
    """The database is not empty, or other clients are connected to it."""

    code = "not_empty"


class ThroughPooler(errors.Unavailable):
    """The programs leave settings of their sessions on a pooler's connections, for its next client."""

    code = "through_a_pooler"


@dataclass(frozen=True)
class Backup:
    """A written backup; `size` is in bytes."""

    path: pathlib.Path
    size: int


def write_backup(path: pathlib.Path) -> Backup:
    """Write a backup of the configured database, complete or not at all, readable by its owner only.

    Raises ThroughPooler, NoProgram, BackupFailed.
    """
    _refuse_pooler()
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BackupFailed(f"{path.parent}: {error.strerror}") from error
    os.close(handle)
    try:
        options = [f"--exclude-table-data={name}" for name in _WITHOUT_ROWS]
        _run(
            "pg_dump",
            "--format=custom",
            "--no-owner",
            "--no-privileges",
            *options,
            f"--file={temporary}",
            f"--dbname={_connection_string()}",
        )
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        size = os.stat(temporary).st_size
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return Backup(path, size)


def restore_backup(
    path: pathlib.Path, *, author: events.Author, replace: bool = False, recovery: bool = True
) -> str:
    """Restore a backup; return the time when it was written, as PostgreSQL formats it.

    With `recovery`, recovery mode begins with the restore, and nothing is allocated until it ends.
    Migrations that the backup lacks are applied afterwards. Then no other client may be connected,
    because an older release does not know recovery mode. Raises NotABackup, NewerRelease, NotEmpty,
    ThroughPooler, NoProgram, RestoreFailed.
    """
    _refuse_pooler()
    applied, release_migrations = _backup_migrations(path), _release_migrations()
    newer = sorted(f"{app}.{name}" for app, name in applied - release_migrations if app in _APPS)
    if newer:
        raise NewerRelease(
            f"The backup contains the migration {newer[0]}, which this release does not know."
        )
    older = bool(release_migrations - applied)
    if _count_tables() and not replace:
        raise NotEmpty("The database is not empty: restore into a new one, or replace this one.")
    if older and (connections := _count_other_connections()):
        raise NotEmpty(
            f"The backup is of an older release, and {connections} other clients are connected: stop web,"
            " workers, watcher and beat, or restore the backup with its own release."
        )
    _load_dump(
        path,
        [statements.text("emptied")] if replace else [],
        _begin_recovery_statements(author, recovery and not older),
    )
    connection.close()  # its prepared statements are invalid now
    management.call_command("migrate", interactive=False, verbosity=0)
    if recovery and older:
        recovery_mode.begin(author=author, lost=recovery_mode.time_since_last_write())
    with (
        connection.cursor() as cursor
    ):  # a backup has no statistics, and autovacuum comes a minute later
        cursor.execute("ANALYZE (SKIP_LOCKED)")
    return _created_at(path)


def _begin_recovery_statements(author: events.Author, recovery: bool) -> list[str]:
    if not recovery:
        return []
    values = [
        sql.Literal(text) for text in (author.reason[:500], author.actor, author.as_context())
    ]
    call = sql.SQL("SELECT ipam_recovery_begin({}, {}, {}, ipam_lost_since_backup());\n")
    connection.ensure_connection()
    return ["RESET search_path;\n", call.format(*values).as_string(connection.connection)]


def _load_dump(path: pathlib.Path, before: Iterable[str], after: Iterable[str]) -> None:
    """Run the backup as SQL in the database, within one transaction."""
    pg_restore = _command("pg_restore", "--no-owner", "--no-privileges", "--file=-", str(path))
    psql_command = _command(
        "psql",
        "--no-psqlrc",
        "--quiet",
        "--set=ON_ERROR_STOP=1",
        "--output=/dev/null",
        f"--dbname={_connection_string()}",
    )
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            psql_command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=_environment()
        ) as psql,
    ):
        stdin = psql.stdin
        assert stdin is not None  # noqa: S101  # mypy
        with contextlib.suppress(BrokenPipeError):  # psql reports the error
            stdin.write("".join(["BEGIN;\n", *before]).encode())
            with _program_output(pg_restore) as script:
                _copy_script(script, stdin)
            stdin.write("".join([*after, "COMMIT;\n"]).encode())
            stdin.close()
        if psql.wait():
            output.seek(0)
            raise RestoreFailed(_first_error(output.read()))


@contextlib.contextmanager
def _program_output(command: list[str]) -> Iterator[IO[bytes]]:
    """Yield the output of a program; raise RestoreFailed if it fails, before anything is committed."""
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=output, env=_environment()
        ) as program,
    ):
        assert program.stdout is not None  # noqa: S101  # mypy
        yield program.stdout
        if program.wait():
            output.seek(0)
            raise RestoreFailed(_first_error(output.read()))


def _copy_script(script: IO[bytes], target: IO[bytes]) -> None:
    # Older servers do not know this setting, which is among the first lines.
    first = script.read(_CHUNK).replace(b"SET transaction_timeout = 0;\n", b"", 1)
    target.write(first)
    shutil.copyfileobj(script, target, _CHUNK)


def _first_error(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return next(
        (line for line in lines if "ERROR" in line or "error" in line), "; ".join(lines[:1])
    )


# --- contents of backup and database --------------------------------------------------------------


def _backup_migrations(path: pathlib.Path) -> _Migrations:
    """Return the migrations that a backup contains; raise NotABackup or NoProgram."""
    command = _command(
        "pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(path)
    )
    try:
        process = subprocess.run(command, capture_output=True, env=_environment(), check=False)
    except OSError as error:
        raise NoProgram(str(error)) from error
    if process.returncode:
        raise NotABackup(_first_error(process.stderr))
    rows = [line.split("\t") for line in process.stdout.decode().splitlines()]
    migrations = {(row[1], row[2]) for row in rows if len(row) == 4 and row[0].isdigit()}
    if not any(app in _APPS for app, _ in migrations):
        raise NotABackup(f"{path} is not a backup of Cadastre.")
    return migrations


def _created_at(path: pathlib.Path) -> str:
    process = subprocess.run(
        _command("pg_restore", "--list", str(path)), capture_output=True, check=False, text=True
    )
    match = re.search(r"^; *Archive created at (.*)$", process.stdout, re.MULTILINE)
    return match.group(1) if match else "?"


def _release_migrations() -> _Migrations:
    return set(loader.MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {})


def _count_tables() -> int:
    count: int = database.call(
        "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()", []
    )
    return count


def _count_other_connections() -> int:
    count: int = database.call(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
        [],
    )
    return count


# --- the programs ---------------------------------------------------------------------------------


def _refuse_pooler() -> None:
    """Raise ThroughPooler unless the server itself answers: a pooler tells its clients another process id."""
    server = database.call("SELECT pg_backend_pid()", [])
    if connection.connection.info.backend_pid != server:
        raise ThroughPooler(
            "DATABASE_URL leads to a pooler, whose connections a backup or restore would leave with its own"
            " search_path and without limits: give this command the URL of PostgreSQL itself, and DB_POOLER=0."
        )


def _run(program: str, *arguments: str) -> None:
    process = subprocess.run(
        _command(program, *arguments), capture_output=True, env=_environment(), check=False
    )
    if process.returncode:
        raise BackupFailed(_first_error(process.stderr))


def _command(program: str, *arguments: str) -> list[str]:
    return [str(_programs() / program), *arguments]


def _programs() -> pathlib.Path:
    """Return the folder of pg_dump, pg_restore and psql that are not older than the server."""
    connection.ensure_connection()
    server = connection.connection.info.server_version // 10_000
    on_path = shutil.which("pg_dump")
    folders = [settings.IPAM_PG_BIN, on_path and os.path.dirname(on_path)]
    for folder in map(pathlib.Path, filter(None, folders)):
        if _version(folder / "pg_dump") >= server:
            return folder
    raise NoProgram(
        f"pg_dump of PostgreSQL {server} or later is required: set IPAM_PG_BIN to its folder."
    )


def _version(program: pathlib.Path) -> int:
    """Return the major version of a program, or 0 if it cannot be run."""
    try:
        process = subprocess.run(
            [program, "--version"], capture_output=True, check=False, text=True
        )
    except OSError:
        return 0
    match = re.search(r"\) (\d+)", process.stdout)
    return int(match.group(1)) if match else 0


def _parameters() -> dict[str, Any]:
    """Return the connection parameters of libpq, without `options`: a backup has no time limits."""
    libpq_keywords = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    parameters = connection.get_connection_params()
    return {key: value for key, value in parameters.items() if key in libpq_keywords - {"options"}}


def _connection_string() -> str:
    """Return the connection string without the password: all users of the machine see command lines."""
    parameters = {key: value for key, value in _parameters().items() if key != "password"}
    return psycopg.conninfo.make_conninfo(**parameters)


def _environment() -> dict[str, str]:
    password = _parameters().get("password")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return {**environment, "LC_ALL": "C", **({"PGPASSWORD": password} if password else {})}
