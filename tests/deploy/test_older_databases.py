"""A database of before the migrations were made anew is refused in plain words; all others are migrated."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests import servers
from tests.deploy import conftest, release


@pytest.fixture
def url(worker_id: str) -> Iterator[str]:
    name = f"older_{worker_id}"
    url = conftest.recreate(name)
    release.restore(url)
    yield url
    with psycopg.connect(conftest.url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, name)


def _execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


_OTHER = "INSERT INTO django_migrations (app, name, applied) VALUES ('pools', '0002_rules', now())"
_WITHOUT_OURS = "DELETE FROM django_migrations WHERE app = 'claims' AND name LIKE '0003_sql_%'"


# What `make run` starts first, and what the deployments run.
@pytest.mark.parametrize("command", ["prepare", "migrate"])
def test_refused_in_one_line(url: str, command: str) -> None:
    _execute(url, _OTHER, _WITHOUT_OURS)
    result = release.run(release.PROJECT, url, command)
    assert result.returncode
    message = result.stderr.strip().splitlines()[-1]  # which `make run` shows
    assert "pools.0002_rules" in message
    assert "development version of Cadastre and cannot be upgraded" in message
    assert "Traceback" not in result.stderr


def test_a_newer_release_was_here(url: str) -> None:
    """After a rollback the database has migrations that the old code does not know."""
    _execute(url, _OTHER)
    assert release.run(release.PROJECT, url, "migrate").returncode == 0


def test_a_first_migration_that_was_interrupted_goes_on(worker_id: str) -> None:
    url = conftest.recreate(f"older_{worker_id}")
    release.command(release.PROJECT, url, "migrate", "pools", "0002_initial_data")
    assert release.run(release.PROJECT, url, "migrate").returncode == 0


def test_the_tables_go_back_and_come_again(worker_id: str) -> None:
    url = conftest.recreate(f"older_{worker_id}")
    for target in ((), ("claims", "zero"), ("pools", "zero"), ()):
        release.command(release.PROJECT, url, "migrate", *target)
    ours = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'pools@_%' ESCAPE '@'"
    with psycopg.connect(url) as connection:
        ((number,),) = connection.execute(ours).fetchall()
    assert number > 50
