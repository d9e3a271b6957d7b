"""The backup and restore that the documentation says: exact, private, all or nothing."""

import pathlib
import stat
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from pools.clusters import recovery_mode
from pools.core import errors
from pools.models import Block, BrowserSession, Environment, JournalEntry, Recovery
from pools.register import environments, journal
from tests import commands, factories, people, servers
from tests.failure import dumps

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
    options = {name: settings[name] for name in ("host", "port", "user", "password", "dbname")}
    return psycopg.connect(**options, autocommit=True)


def _dump() -> list[Any]:
    columns = "id, cidr::text, state, holder_id, available_from, allocated_at"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM pools_block ORDER BY id")  # noqa: S608
        return cursor.fetchall()


def test_what_is_restored_is_what_was_backed_up(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "register.dump"
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    factories.give_back(factories.take(pool))
    factories.take(pool)
    environments.declare(pool.cluster, "acme", "shop", author=factories.BY, description="Shop")
    journal.add(pool, "Moved.", "info", user=None, author=factories.BY)
    people.browser()  # signed in
    before = _dump()
    assert dumps.back_up(file).returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
    later = factories.take(pool)
    done = dumps.restore(file, recovery=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert _dump() == before
    assert Environment.objects.get(env="shop").description == "Shop"
    assert JournalEntry.objects.get().subject == pool
    assert not BrowserSession.objects.exists()
    assert recovery_mode.current_recovery() is None
    # The register works, triggers and all; its sequences go on behind what it has.
    assert factories.take(pool)["cidr"] == later["cidr"]
    assert dumps.restore(file).returncode == 0
    began = Recovery.objects.get()
    assert (began.reason, began.actor, began.ended_at) == ("the disk died", "ann", None)
    with pytest.raises(errors.Recovering):
        factories.take(pool)
    cooling = Block.objects.get(state="cooling")
    assert cooling.available_from > next(row[4] for row in before if row[0] == cooling.pk)


@pytest.mark.exhaustive
def test_into_an_empty_database(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    file = tmp_path / "register.dump"
    block = factories.take(factories.pool("10.0.0.0/24"))
    assert dumps.back_up(file).returncode == 0
    request.getfixturevalue("fresh")
    assert dumps.restore(file).returncode == 0
    assert factories.row(block).holder_id == block["holder"]["id"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stats WHERE tablename = 'pools_block'")
        assert cursor.fetchone() != (0,), "the planner knows nothing of the restored table"
    assert recovery_mode.current_recovery() is not None


def test_a_backup_that_is_cut_off_changes_nothing(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "register.dump"
    pool = factories.pool("10.0.0.0/16")
    factories.ask(pool, *factories.holders(5000))
    assert dumps.back_up(file).returncode == 0
    whole = file.read_bytes()
    before = _dump()
    for part in (whole[: len(whole) * 9 // 10], b"no backup"):
        file.write_bytes(part)
        assert dumps.restore(file).returncode != 0
        assert _dump() == before
        assert recovery_mode.current_recovery() is None


def test_a_backup_that_cannot_be_written_replaces_none(tmp_path: pathlib.Path) -> None:
    assert dumps.back_up(tmp_path / "there" / "is" / "nothing").returncode != 0
    assert not list(tmp_path.iterdir())


def test_the_environment_has_the_password_and_no_time_limit() -> None:
    lines = commands.output("pg_environment").splitlines()
    assert all(line.startswith("export PG") for line in lines)
    names = {line.removeprefix("export ").partition("=")[0] for line in lines}
    assert names >= {"PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"}
    assert "PGOPTIONS" not in names
