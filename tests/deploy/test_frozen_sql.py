"""Migrations install frozen SQL: what is edited today changes nothing that an older migration does."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection as fresh

from tests import servers
from tests.deploy import catalog, conftest, frozen, trees


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    return trees.copy(tmp_path)


@pytest.fixture
def url(worker_id: str) -> Iterator[str]:
    name = f"frozen_{worker_id}"
    yield conftest.recreate(name)
    with psycopg.connect(conftest.url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, name)


def _schema(url: str) -> catalog.Found:
    with psycopg.connect(url) as connection:
        return catalog.read(connection)


def _schema_of_head() -> catalog.Found:
    fresh.ensure_connection()
    return catalog.read(fresh.connection)


def test_a_migration_installs_what_was_edited_last() -> None:
    edited = {app: frozen.list_edited(app) for app in frozen.APPS}
    assert not any(edited.values()), f"run `make freeze-sql`: {edited}"


@pytest.mark.django_db
def test_migrations_read_no_file_of_today(tree: pathlib.Path, url: str) -> None:
    files = [path for app in frozen.APPS for path in tree.glob(f"{app}/sql/**/*.sql")]
    assert len(files) > 10
    for path in files:
        path.write_text(f"{path.name} is no SQL;")
    trees.migrate(tree, url)
    assert _schema(url) == _schema_of_head()


def test_an_edit_is_frozen_by_one_command(tree: pathlib.Path, url: str) -> None:
    rules = tree / "pools/sql/rules.sql"
    rules.write_text(rules.read_text().replace("FUNCTION ipam_refuse(", "FUNCTION ipam_deny(", 1))
    log = tree / "claims/sql/event_log.sql"
    log.write_text(log.read_text() + "WHERE true\n")
    check = trees.run(tree, "tests.deploy.frozen", "--check")
    assert check.returncode
    assert "pools/sql/rules.sql, claims/sql/event_log.sql" in check.stderr
    assert "make freeze-sql" in check.stderr

    before = {
        path: path.read_text()
        for path in tree.glob("*/migrations/**/*.*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    new_migrations = trees.run(tree, "tests.deploy.frozen").stdout.splitlines()
    pools, claims = (tree / path for path in new_migrations)
    assert f"('pools', '{pools.stem}')" in claims.read_text(), "the view of all events comes last"
    assert trees.run(tree, "tests.deploy.frozen", "--check").returncode == 0
    for path, text in before.items():
        assert path.read_text() == text, "what was frozen stays"

    trees.migrate(tree, url)
    routines = _schema(url)["routine"]
    assert any(name.startswith("ipam_deny(") for name in routines)
    assert any(name.startswith("ipam_refuse(") for name in routines), "of the migration before"


@pytest.mark.django_db
def test_migrations_are_squashed_by_one_command(tree: pathlib.Path, url: str) -> None:
    of_model = "class Measure(models.Model)"
    (model,) = (path for path in tree.glob("pools/**/*.py") if of_model in path.read_text())
    model.write_text(model.read_text().replace("max_length=120", "max_length=121", 1))
    rules = tree / "pools/sql/rules.sql"
    function = "CREATE FUNCTION is_new() RETURNS int LANGUAGE sql AS 'SELECT 1';\n"
    rules.write_text(rules.read_text() + function)
    assert trees.run(tree, "tests.deploy.frozen").returncode == 0
    result = trees.run(tree, "tests.deploy.squash")
    assert result.returncode == 0, result.stderr
    for app in frozen.APPS:
        names = sorted(path.stem for path in tree.glob(f"{app}/migrations/[0-9]*.py"))
        assert [name[:5] for name in names] == ["0001_", "0002_", "0003_"]
        assert names[2] not in {path.stem for path in frozen.migrations_folder(app).glob("*.py")}
    trees.migrate(tree, url)
    schema, head = _schema(url), _schema_of_head()
    assert schema["column"].pop("pools_measure.name") == "character varying(121)"
    assert schema["routine"].pop("is_new()")
    del schema["call"]["is_new()"], head["column"]["pools_measure.name"]
    assert schema == head


def test_steps_of_a_migration_are_not_squashed_away(tree: pathlib.Path) -> None:
    (tree / "pools/migrations/0004_step.py").write_text(
        "from django.db import migrations\n\n\n"
        "class Migration(migrations.Migration):\n"
        "    dependencies = [('pools', '0003_sql_v1')]\n"
        "    operations = [migrations.RunSQL('SELECT 1')]\n"
    )
    result = trees.run(tree, "tests.deploy.squash")
    assert result.returncode
    assert "pools.0004_step has steps of its own" in result.stderr


def test_what_is_released_is_not_squashed(tree: pathlib.Path) -> None:
    facts = tree / "tests/deploy/last_release/release.json"
    facts.write_text(facts.read_text().replace('"ref": ""', '"ref": "v0.1.0"'))
    result = trees.run(tree, "tests.deploy.squash")
    assert result.returncode
    assert "v0.1.0 is released" in result.stderr
