"""SQL objects (functions, triggers, views, storage settings): one file for each, edited here.

A migration installs frozen copies of them (`migrations/sql/NAME.vN.sql`), so that an edit here cannot
change what an older migration does. `make freeze-sql` writes the copies and the migration of an edit.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from django.db import migrations

# Types, sequences and functions that columns name; installed before the tables.
BEFORE_TABLES = ("clock", "ngrams", "pairs")
_OBJECTS = (
    *BEFORE_TABLES,
    "rules",
    "allocate",
    "observed_cidrs",
    "recovery",
    "event_log",
    "token_events",
    "plan",
    "pgtrigger",
    "storage",
)


class Install(migrations.RunSQL):
    """Run frozen files of an app, e.g. `Install("pools", ["rules.v2"])`; forward only."""

    def __init__(self, app: str, names: list[str]) -> None:
        self._app, self._names = app, names
        folder = resources.files(f"{app}.migrations").joinpath("sql")
        texts = (folder.joinpath(f"{name}.sql").read_text() for name in names)
        super().__init__("".join(texts), migrations.RunSQL.noop)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return type(self).__qualname__, [self._app, self._names], {}

    def describe(self) -> str:
        return f"Install {', '.join(self._names)} of {self._app}"


def read_objects() -> dict[str, str]:
    """Return the text of each SQL object, in the order of installation."""
    return {name: text(name) for name in _OBJECTS}


def text(name: str, package: str = __name__) -> str:
    """Return the text of one file."""
    return resources.files(package).joinpath(f"{name}.sql").read_text()
