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


def migrations_folder(app: str) -> pathlib.Path:
    return PROJECT / app / "migrations"


def read_objects(app: str) -> dict[str, str]:
    """Return name -> today's text, in the order of installation."""
    texts: dict[str, str] = importlib.import_module(f"{app}.sql").read_objects()
    return texts


def newest_versions(app: str) -> dict[str, int]:
    """Return name -> its newest frozen version."""
    matches = filter(
        None, (_FILE.fullmatch(path.name) for path in migrations_folder(app).glob("sql/*.sql"))
    )
    newest: dict[str, int] = {}
    for match in matches:
        newest[match[1]] = max(newest.get(match[1], 0), int(match[2]))
    return newest


def list_edited(app: str) -> list[str]:
    """Return the objects whose current text no migration installs."""
    newest = newest_versions(app)
    return [
        name
        for name, text in read_objects(app).items()
        if name not in newest
        or migrations_folder(app).joinpath(f"sql/{name}.v{newest[name]}.sql").read_text() != text
    ]


def freeze(app: str, names: list[str]) -> list[str]:
    """Write the next version of each object. Return the names of the copies, as a migration lists them."""
    version = max(newest_versions(app).values(), default=0) + 1
    migrations_folder(app).joinpath("sql").mkdir(exist_ok=True)
    for name in names:
        migrations_folder(app).joinpath(f"sql/{name}.v{version}.sql").write_text(
            read_objects(app)[name]
        )
    return [f"{name}.v{version}" for name in names]


def build_migration(app: str, number: int, copies: list[str]) -> Migration:
    """Return the migration that installs the copies, without its dependencies."""
    version = copies[0].rpartition(".")[2]
    migration = Migration(f"{number:04}_sql_{version}", app)
    migration.operations = [sql.Install(app, copies)]
    return migration


def write_migration(migration: Migration, about: str) -> None:
    text = MigrationWriter(migration, include_header=False).as_string()
    path = migrations_folder(migration.app_label) / f"{migration.name}.py"
    path.write_text(f'"""{about}"""\n\n{text}')
    sys.stdout.write(f"{path.relative_to(PROJECT)}\n")


def _find_leaf(app: str) -> tuple[str, str]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    ((_, name),) = loader.graph.leaf_nodes(app)
    return app, name


def _freeze_edited() -> None:
    for place, app in enumerate(APPS):
        if not (names := list_edited(app)):
            continue
        parent = _find_leaf(app)
        migration = build_migration(app, int(parent[1][:4]) + 1, freeze(app, names))
        # The view of all events is installed by each app, with more branches by the later ones.
        migration.dependencies = [*map(_find_leaf, APPS[:place]), parent]
        write_migration(migration, f"{', '.join(names)}: as edited. Goes before the code.")


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
    django.setup()
    if arguments == ["--check"]:
        if names := [f"{app}/sql/{name}.sql" for app in APPS for name in list_edited(app)]:
            sys.exit(f"No migration installs {', '.join(names)} as edited: run `make freeze-sql`.")
    else:
        _freeze_edited()


if __name__ == "__main__":
    main(sys.argv[1:])
