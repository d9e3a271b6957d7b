from __future__ import annotations

from typing import Any

from django.core.management import base
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader

_OURS = ("pools", "claims")


class Command(migrate.Command):
    """Django's command; it refuses a database that was created by other initial migrations.

    Before the first release, the initial migrations change now and then (docs/how-to/upgrade.md).
    """

    def handle(self, *args: Any, **options: Any) -> None:
        _refuse_other_initial_migrations(options["database"])
        super().handle(*args, **options)


def _refuse_other_initial_migrations(database: str) -> None:
    loader = MigrationLoader(connections[database], ignore_no_migrations=True)
    applied = {key for key in loader.applied_migrations if key[0] in _OURS}
    unknown = sorted(applied - set(loader.disk_migrations))
    initial = {
        (app, name)
        for (app, name), migration in loader.disk_migrations.items()
        if app in _OURS and migration.initial
    }
    if unknown and initial - applied:
        raise base.CommandError(
            "This database was created by a development version of Cadastre and cannot be upgraded: it"
            f" has the migration {'.'.join(unknown[0])}, which this version does not have. Use an empty"
            " database (with `make run`: another data folder, DATA=…)."
        )
