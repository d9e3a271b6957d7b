"""`ipam backup` and `ipam restore` by themselves: exact, private, all or nothing."""

from __future__ import annotations

import io
import pathlib
import stat
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core import management
from django.db import connection

from pools.clusters import recovery_mode
from pools.core import errors
from pools.models import Block, Environment, JournalEntry, Recovery
from pools.register import backups, environments, journal
from tests import factories, servers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("committed", "remade_database")]


@pytest.fixture
def fresh(committed: None) -> Iterator[None]:
    """An empty database of its own, as the configured one."""
    name = f"{connection.settings_dict['NAME']}_fresh"
    with _server() as server:
        servers.drop(server, name)
        server.execute(f'CREATE DATABASE "{name}"')
    before = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = name
    yield
    connection.close()
    connection.settings_dict["NAME"] = before
    with _server() as server:
        servers.drop(server, name)


def _server() -> psycopg.Connection[Any]:
    settings = connection.get_connection_params()
    wanted = {name: settings[name] for name in ("host", "port", "user", "password", "dbname")}
    return psycopg.connect(**wanted, autocommit=True)


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("backup") / "register.dump"


def _dump() -> list[Any]:
    columns = "id, cidr::text, state, holder_id, available_from, allocated_at"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM pools_block ORDER BY id")  # noqa: S608
        return cursor.fetchall()


def _command(*arguments: str) -> str:
    out = io.StringIO()
    management.call_command("ipam", *arguments, stdout=out)
    return out.getvalue()


def test_what_is_restored_is_what_was_backed_up(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "register.dump"
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    factories.give_back(factories.take(pool))
    factories.take(pool)
    environments.declare(pool.cluster, "acme", "shop", author=factories.BY, description="Shop")
    journal.add(pool, "Moved.", "info", user=None, author=factories.BY)
    before = _dump()
    assert str(file) in _command("backup", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
    later = factories.take(pool)
    _command("restore", str(file), "--replace", "--without-recovery")
    assert _dump() == before
    assert Environment.objects.get(env="shop").description == "Shop"
    assert JournalEntry.objects.get().subject == pool
    assert recovery_mode.current_recovery() is None
    # The register works, triggers and all; its sequences go on behind what it has.
    assert factories.take(pool)["cidr"] == later["cidr"]
    _command("restore", str(file), "--replace", "--enter-recovery", "--reason=disk lost")
    assert Recovery.objects.get().reason == "disk lost"
    with pytest.raises(errors.Recovering):
        factories.take(pool)
    cooling = Block.objects.get(state="cooling")
    assert cooling.available_from > next(row[4] for row in before if row[0] == cooling.pk)


def test_a_full_database_is_not_overwritten(tmp_path: pathlib.Path) -> None:
    made = backups.write_backup(tmp_path / "register.dump")
    with pytest.raises(backups.NotEmpty):
        backups.restore_backup(made.path, author=factories.WITH_REASON)


@pytest.mark.exhaustive
def test_into_an_empty_database(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    pool = factories.pool("10.0.0.0/24")
    taken = factories.take(pool)
    made = backups.write_backup(tmp_path / "register.dump")
    request.getfixturevalue("fresh")
    _command("restore", str(made.path), "--enter-recovery")
    assert factories.row(taken).holder_id == taken["holder"]["id"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stats WHERE tablename = 'pools_block'")
        assert cursor.fetchone() != (0,), "the planner knows nothing of the restored table"
    assert recovery_mode.current_recovery() is not None


def test_a_backup_that_is_cut_off_changes_nothing(tmp_path: pathlib.Path) -> None:
    pool = factories.pool("10.0.0.0/16")
    factories.ask(pool, *factories.holders(5000))
    made = backups.write_backup(tmp_path / "register.dump")
    whole = made.path.read_bytes()
    before = _dump()
    made.path.write_bytes(whole[: len(whole) * 9 // 10])
    with pytest.raises((backups.RestoreFailed, backups.NotABackup)):
        backups.restore_backup(made.path, author=factories.WITH_REASON, replace=True)
    assert _dump() == before
    assert recovery_mode.current_recovery() is None


def test_other_files_and_newer_releases_are_refused(tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"no backup")
    with pytest.raises(backups.NotABackup):
        backups.restore_backup(other, author=factories.WITH_REASON, replace=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('pools', '9999_later', now())"
        )
        made = backups.write_backup(tmp_path / "newer.dump")
        cursor.execute("DELETE FROM django_migrations WHERE name = '9999_later'")
    with pytest.raises(backups.NewerRelease, match="9999_later"):
        backups.restore_backup(made.path, author=factories.WITH_REASON, replace=True)


def test_nowhere_to_write(tmp_path: pathlib.Path) -> None:
    with pytest.raises(backups.BackupFailed):
        backups.write_backup(tmp_path / "there" / "is" / "nothing")
