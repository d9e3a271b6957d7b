"""`make squash-migrations`: the migrations anew, as of today's models and SQL objects.

For as long as nothing is released. Of each app remain

0001_initial        the tables, made of the models
0002_initial_data   rows of a new register; written by hand, stays as it is
0003_sql_vN         the SQL objects; a new name, by which `migrate` recognises a database of before
"""

from __future__ import annotations

import os
import sys

import django
from django.apps import apps
from django.core.management.commands import makemigrations
from django.db import migrations
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.questioner import NonInteractiveMigrationQuestioner
from django.db.migrations.state import ProjectState
from django.test.utils import override_settings

from pools import sql
from pools.platform.tables import CreateTables
from tests.deploy import frozen, release

_BY_HAND = "0002_initial_data"
# Its sequence is the default of another table's ids (claims_clusterowner), which Django does not see.
_FIRST = {"claims": "Membership"}


def _refuse_losses() -> None:
    """Exit if migrations must stay, or have steps that would be lost."""
    if release.last()["ref"]:
        sys.exit(f"{release.last()['ref']} is released: its migrations stay.")
    loader = MigrationLoader(None, load=False)  # whatever is missing: it is made anew
    loader.load_disk()
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        by_hand = any(
            isinstance(operation, migrations.RunPython | migrations.RunSQL)
            and not isinstance(operation, sql.Install)
            for operation in migration.operations
        )
        if app in frozen.APPS and name != _BY_HAND and by_hand:
            sys.exit(f"{app}.{name} has steps of its own: move what a new register needs of them"
                     f" to {app}.{_BY_HAND}, or to an SQL object.")  # fmt: skip


def _build_initial() -> list[Migration]:
    """Return the first migration of each app."""
    with override_settings(MIGRATION_MODULES=dict.fromkeys(frozen.APPS)):
        graph = MigrationLoader(None, ignore_no_migrations=True).graph
    initial_migrations, state = [], _read_state(())
    for place, app in enumerate(frozen.APPS):
        changes = makemigrations.Command.autodetector(
            state,
            _read_state(frozen.APPS[: place + 1]),
            NonInteractiveMigrationQuestioner(specified_apps={app}),
        ).changes(graph=graph, trim_to_apps={app})
        (migration,) = changes[app]
        migration.operations.sort(key=lambda operation: not _is_first(app, operation))
        graph.add_node((app, migration.name), migration)
        state = migration.mutate_state(state)
        migration.operations = [CreateTables(migration.operations)]
        initial_migrations.append(migration)
    return initial_migrations


def _read_state(ours: tuple[str, ...]) -> ProjectState:
    """Return the current models, of our apps only the named ones."""
    others = set(frozen.APPS) - set(ours)
    models = ProjectState.from_apps(apps).models
    return ProjectState({key: model for key, model in models.items() if key[0] not in others})


def _is_first(app: str, operation: object) -> bool:
    return isinstance(operation, migrations.CreateModel) and operation.name == _FIRST.get(app)


def _write_all(tables: list[Migration]) -> None:
    earlier: list[tuple[str, str]] = []
    for table in tables:
        app = table.app_label
        names = list(frozen.read_objects(app))
        copies = frozen.freeze(app, names)
        _remove_older(app, copies)
        before = [copy for copy in copies if copy.partition(".")[0] in _objects_before_tables(app)]
        if before:
            table.operations.insert(0, sql.Install(app, before))
        frozen.write_migration(table, "The tables. Made by `make squash-migrations`.")
        objects = frozen.build_migration(app, 3, [copy for copy in copies if copy not in before])
        objects.initial = True
        objects.dependencies = [*earlier, (app, _BY_HAND)]
        frozen.write_migration(objects, "The SQL objects. Made by `make squash-migrations`.")
        earlier = [(app, objects.name)]


def _objects_before_tables(app: str) -> tuple[str, ...]:
    names: tuple[str, ...] = sys.modules[f"{app}.sql"].BEFORE_TABLES
    return names


def _remove_older(app: str, copies: list[str]) -> None:
    for path in frozen.migrations_folder(app).glob("[0-9]*.py"):
        if path.stem != _BY_HAND:
            path.unlink()
    for path in frozen.migrations_folder(app).glob("sql/*.sql"):
        if path.stem not in copies:
            path.unlink()


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
    django.setup()
    _refuse_losses()
    _write_all(_build_initial())


if __name__ == "__main__":
    main()
