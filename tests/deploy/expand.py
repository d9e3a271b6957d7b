"""Migrations that a running site bears: what a new one may not do to tables that are there already.

The schema before and after is compared in test_upgrade.py; here is what a comparison does not see: which
locks a migration holds, and for how long. A table that the same upgrade makes is nobody's yet.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.postgres import operations as postgres
from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

# Tables that stay small however large the register is: a lock on them ends at once.
SMALL = {
    "auth_group", "auth_permission", "auth_user", "django_content_type", "django_session",
    "pools_addressspace", "pools_browsersession", "pools_cluster", "pools_connection", "pools_pool", "pools_poolcidr",
    "pools_reservedrange", "pools_window",
}  # fmt: skip

_GONE = (operations.RemoveField, operations.DeleteModel)
_RENAMED = (operations.RenameField, operations.RenameModel, operations.AlterModelTable)
_WITHOUT_LOCK = (
    postgres.AddIndexConcurrently,
    postgres.RemoveIndexConcurrently,
    postgres.AddConstraintNotValid,
    postgres.ValidateConstraint,
)
_INDEX = re.compile(
    r"\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)(?:IF\s+NOT\s+EXISTS\s+)?\S+\s+ON\s+(?:ONLY\s+)?(\w+)",
    re.IGNORECASE,
)
_GET_MODEL = re.compile(r"""get_model\(\s*["'](\w+)["']\s*,\s*["'](\w+)["']\s*\)""")


def problems(migration: Migration, state: ProjectState, old: set[str]) -> list[str]:
    """What is wrong with it, in words; `state` is that before it, `old` the tables of the last release."""
    found = []
    for operation in _flat(migration.operations):
        found += [
            f"{migration.app_label}.{migration.name}: {operation.describe()}: {why}"
            for why in _of(operation, migration, state, old)
        ]
        operation.state_forwards(migration.app_label, state)
    return found


def _flat(listed: Sequence[Operation]) -> Iterator[Operation]:
    for operation in listed:
        if isinstance(operation, operations.SeparateDatabaseAndState):
            yield from _flat(operation.database_operations)
        else:
            yield operation


def _of(
    operation: Operation, migration: Migration, state: ProjectState, old: set[str]
) -> Iterator[str]:
    if isinstance(operation, operations.RunSQL):
        yield from _of_sql(operation, old)
    elif isinstance(operation, operations.RunPython):
        yield from _of_python(operation, migration, state, old)
    else:
        table = _table(operation, migration.app_label, state)
        if table in old:
            yield from _of_table(operation, migration, state, table)


def _table(operation: Any, app: str, state: ProjectState) -> str:
    name = getattr(operation, "model_name", "") or getattr(operation, "name", "")
    key = (app, name.lower())
    if key not in state.models:
        return ""
    return str(state.apps.get_model(*key)._meta.db_table)


def _of_table(
    operation: Any, migration: Migration, state: ProjectState, table: str
) -> Iterator[str]:
    declared = getattr(migration, "contract", None)
    if isinstance(operation, _RENAMED):
        yield "code of the last release knows the old name: add, fill, and remove a release later"
    if isinstance(operation, _GONE) and not declared:
        yield "code of the last release reads it: remove it a release later, with `contract = […]`"
    if isinstance(operation, operations.AddField):
        yield from _of_new_field(operation.field, table)
    if isinstance(operation, operations.AlterField):
        yield from _of_altered_field(operation, migration, state, table)
    if table not in SMALL and not isinstance(operation, _WITHOUT_LOCK):
        yield from _of_locking(operation)


def _of_locking(operation: Operation) -> Iterator[str]:
    if isinstance(operation, operations.AddIndex | operations.RemoveIndex):
        yield "AddIndexConcurrently (and RemoveIndexConcurrently), with `atomic = False`"
    if isinstance(operation, operations.AddConstraint):
        yield "AddConstraintNotValid, and ValidateConstraint in a migration after it"


def _of_new_field(field: Any, table: str) -> Iterator[str]:
    if not field.null and not field.many_to_many and not field.has_db_default():
        yield "code of the last release inserts without it: null=True or db_default"
    if table not in SMALL and (field.unique or field.db_index):
        yield "its index is built under a lock: add it without, and the index concurrently"
    if table not in SMALL and field.remote_field and getattr(field, "db_constraint", False):
        yield "its foreign key is proved under a lock: db_constraint=False, or NOT VALID first"


def _of_altered_field(
    operation: Any, migration: Migration, state: ProjectState, table: str
) -> Iterator[str]:
    was = state.models[migration.app_label, operation.model_name_lower].get_field(operation.name)
    now = operation.field
    if was.null and not now.null and not getattr(migration, "contract", None):
        yield "code of the last release may write null: tighten a release later, with `contract = […]`"
    if type(was) is not type(now) and table not in SMALL:
        yield "another type rewrites the table under a lock: a new column, filled in batches"


def _of_sql(operation: Any, old: set[str]) -> Iterator[str]:
    statements = [operation.sql] if isinstance(operation.sql, str) else operation.sql
    texts = (one if isinstance(one, str) else one[0] for one in statements)  # or with parameters
    for table in _INDEX.findall("\n".join(texts)):
        if table in old - SMALL:
            yield f"an index of {table} is built under a lock: CREATE INDEX CONCURRENTLY"


def _of_python(
    operation: Any, migration: Migration, state: ProjectState, old: set[str]
) -> Iterator[str]:
    for app, name in _GET_MODEL.findall(inspect.getsource(inspect.unwrap(operation.code))):
        if (app, name.lower()) not in state.models:
            continue
        table = state.apps.get_model(app, name)._meta.db_table
        if table in old - SMALL and migration.atomic:
            yield f"rows of {table} are written in one transaction: batches, with `atomic = False`"
