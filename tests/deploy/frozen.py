"""`make freeze-sql`: the SQL objects that were edited, frozen, with the migration that installs them.

pools/sql and claims/sql are edited; `migrations/sql/NAME.vN.sql` of each app are copies of what its
migrations install, and never change. N counts the freezes of an app.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import sys

import django
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.writer import MigrationWriter

from pools import sql

PROJECT = pathlib.Path(__file__).parents[2]
APPS = ("pools", "claims")  # each after those whose tables its objects name
_FILE = re.compile(r"(\w+)\.v(\d+)\.sql")


def folder(app: str) -> pathlib.Path:
    return PROJECT / app / "migrations"


def objects(app: str) -> dict[str, str]:
    """Name -> today's text, in the order of installation."""
    texts: dict[str, str] = importlib.import_module(f"{app}.sql").read_objects()
    return texts


def versions(app: str) -> dict[str, int]:
    """Name -> its newest frozen version."""
    matches = filter(None, (_FILE.fullmatch(path.name) for path in folder(app).glob("sql/*.sql")))
    newest: dict[str, int] = {}
    for match in matches:
        newest[match[1]] = max(newest.get(match[1], 0), int(match[2]))
    return newest


def edited(app: str) -> list[str]:
    """The objects whose text of today no migration installs."""
    newest = versions(app)
    return [
        name
        for name, text in objects(app).items()
        if name not in newest
        or folder(app).joinpath(f"sql/{name}.v{newest[name]}.sql").read_text() != text
    ]


def freeze(app: str, names: list[str]) -> list[str]:
    """Write the next version of each object; the names of the copies, as a migration lists them."""
    version = max(versions(app).values(), default=0) + 1
    folder(app).joinpath("sql").mkdir(exist_ok=True)
    for name in names:
        folder(app).joinpath(f"sql/{name}.v{version}.sql").write_text(objects(app)[name])
    return [f"{name}.v{version}" for name in names]


def migration_of(app: str, number: int, copies: list[str]) -> Migration:
    """The migration that installs the copies, without its dependencies."""
    version = copies[0].rpartition(".")[2]
    migration = Migration(f"{number:04}_sql_{version}", app)
    migration.operations = [sql.Install(app, copies)]
    return migration


def write(migration: Migration, about: str) -> None:
    text = MigrationWriter(migration, include_header=False).as_string()
    path = folder(migration.app_label) / f"{migration.name}.py"
    path.write_text(f'"""{about}"""\n\n{text}')
    sys.stdout.write(f"{path.relative_to(PROJECT)}\n")


def _leaf(app: str) -> tuple[str, str]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    ((_, name),) = loader.graph.leaf_nodes(app)
    return app, name


def _migrate_edited() -> None:
    for place, app in enumerate(APPS):
        if not (names := edited(app)):
            continue
        parent = _leaf(app)
        migration = migration_of(app, int(parent[1][:4]) + 1, freeze(app, names))
        # The view of all events is installed by each app, with more branches by the later ones.
        migration.dependencies = [*map(_leaf, APPS[:place]), parent]
        write(migration, f"{', '.join(names)}: as edited. Goes before the code.")


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
    django.setup()
    if arguments == ["--check"]:
        if names := [f"{app}/sql/{name}.sql" for app in APPS for name in edited(app)]:
            sys.exit(f"No migration installs {', '.join(names)} as edited: run `make freeze-sql`.")
    else:
        _migrate_edited()


if __name__ == "__main__":
    main(sys.argv[1:])
