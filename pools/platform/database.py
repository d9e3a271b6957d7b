"""Access to PostgreSQL: statements with bound values, errors by name, retries, versions of rows, new tables."""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, ClassVar, TypeVar

import psycopg
from django import db
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.migrations import CreateModel, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from pgtrigger.migrations import AddTrigger
from psycopg import sql

from pools.core import errors

T = TypeVar("T")

ATTEMPTS = 6
# serialization_failure, deadlock_detected, lock_not_available
_RETRIED = {"40001", "40P01", "55P03"}
RECOVERING = "57R01"  # pools/sql/recovery.sql
# Constraints that a concurrent request can violate first: a retry finds the other request's row.
_RACES = {
    "one_block_per_holder",
    "one_block_per_environment",
    "idempotency_key_unique",
    "block_unique",
    "environment_unique",
}


def sqlstate(error: BaseException) -> str:
    """Return the five-character SQLSTATE of a Django or psycopg error, "" if it has none."""
    cause = error.__cause__ or error
    return getattr(cause, "sqlstate", None) or ""


def constraint(error: BaseException) -> str:
    """Return the name of the violated constraint or trigger rule, "" if the error has none."""
    diagnostics = getattr(error.__cause__ or error, "diag", None)
    return getattr(diagnostics, "constraint_name", None) or ""


Query = str | sql.SQL | sql.Composed
Values = Sequence[object] | Mapping[str, object]


def rows(statement: Query, values: Values, *, prepare: bool | None = None) -> list[tuple[Any, ...]]:
    """Return the rows of a statement; for statements that run thousands of times a second.

    A prepared statement with separate values saves the server parsing and planning, and the client quoting,
    which Django's cursor cannot; its errors are Django's all the same. With `prepare` False the statement is
    planned each time: for long values.
    """
    # Once: every access to `connection` looks up the thread.
    wrapper = db.connections[db.DEFAULT_DB_ALIAS]
    wrapper.ensure_connection()
    cursor: psycopg.Cursor[tuple[Any, ...]] | None = getattr(_thread, "cursor", None)
    if cursor is None or cursor.connection is not wrapper.connection or prepare is False:
        cursor = psycopg.Cursor(wrapper.connection)
        if prepare is not False:  # a cursor that is reused keeps its last rows, which may be many
            _thread.cursor = cursor
    with wrapper.wrap_database_errors:
        return cursor.execute(statement, values, prepare=prepare).fetchall()


# The cursor of each thread: a new cursor would look up the adapters of every type again.
_thread = threading.local()


@contextmanager
def _cursor() -> Iterator[psycopg.Cursor[tuple[Any, ...]]]:
    """A cursor of psycopg, which binds values on the server; its errors become Django's."""
    db.connection.ensure_connection()
    with db.connection.wrap_database_errors, psycopg.Cursor(db.connection.connection) as cursor:
        yield cursor


def fetch(statement: Query, values: Mapping[str, object]) -> list[Mapping[str, Any]]:
    """Return the rows of a statement as mappings by column; for statements with long values.

    The values are bound as in `rows`, but the statement is planned each time.
    """
    with _cursor() as cursor:
        cursor.execute(statement, values, prepare=False)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def copy(table: str, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Insert many rows by COPY, several times faster than INSERT if a column is JSON (given as text)."""
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with _cursor() as cursor, cursor.copy(statement) as stream:
        for line in lines:
            stream.write_row(line)


def analyze(table: str) -> None:
    """Update the statistics of a table after a bulk insert, also within its transaction; about 50 ms.

    If autovacuum is analyzing the table, its statistics serve as well. Only the table's owner may do this;
    for others PostgreSQL skips it.
    """
    with db.connection.cursor() as cursor:
        cursor.execute(f"ANALYZE (SKIP_LOCKED) {table}")


@contextmanager
def hash_joins_only(*, many: bool = True) -> Iterator[None]:
    """Run statements that join whole tables by hash joins only, in a transaction or a part of one.

    Each table is read once, even if the planner's statistics do not know the newest rows: a nested loop
    over a misleading index, or a merge by the first of several keys, would never end. With `many` False
    nothing changes. After an error the rollback restores the settings.
    """
    if not many:
        yield
        return
    with planner_settings(enable_nestloop="off", enable_mergejoin="off", work_mem="64MB"):
        yield


def in_parallel() -> AbstractContextManager[None]:
    """Let PostgreSQL read large tables with several processes: for searches that no index serves."""
    return planner_settings(max_parallel_workers_per_gather="2")


@contextmanager
def planner_settings(**settings: str) -> Iterator[None]:
    """Run statements with settings of PostgreSQL's planner. After an error the rollback restores the settings."""
    # Outside a transaction the settings would not apply.
    with db.transaction.atomic(savepoint=False):
        names = list(settings)
        before = rows(_CHANGE_SETTINGS, [names, list(settings.values())])
        yield
        rows(_CHANGE_SETTINGS, [names, [value for (value, _) in before]])


_CHANGE_SETTINGS = """
    SELECT current_setting(name), set_config(name, value, true)
    FROM unnest(%s::text[], %s::text[]) AS settings (name, value)
"""


def join_values(values: Iterable[object]) -> str:
    """Join values into one text for string_to_array, which is quoted as a whole; no value has a comma."""
    return ",".join(map(str, values))


def recovery_error(error: BaseException) -> errors.Recovering:
    """Return the error of the product for a database error with the SQLSTATE of a recovery."""
    diagnostics = getattr(error.__cause__ or error, "diag", None)
    message, clusters = (
        getattr(diagnostics, f"message_{part}", None) for part in ("primary", "detail")
    )
    return errors.Recovering(message or "", clusters=clusters or "")


def call(statement: Query, values: Values) -> Any:
    """Return the only value of a statement that selects one row, by `rows`."""
    ((value,),) = rows(statement, values)
    return value


def now() -> datetime:
    """Return the database's clock: the beginning of the current transaction."""
    moment: datetime = call("SELECT ipam_now()", [])
    return moment


def with_retries(work: Callable[[], T]) -> T:
    """Run a whole transaction and repeat it after lost races, at most 6 times, with jitter.

    Inside an open transaction it runs once: only the outermost transaction can be repeated. Raises
    Recovering if the database refuses to allocate a block.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return work()
        except db.DatabaseError as error:
            if sqlstate(error) == RECOVERING:
                raise recovery_error(error) from error
            lost_race = sqlstate(error) in _RETRIED or constraint(error) in _RACES
            if not lost_race or attempt == ATTEMPTS or db.connection.in_atomic_block:
                raise
            time.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311  # jitter, no secret
    raise AssertionError("unreachable")


# The errors of the product that violations of constraints mean.
_MEANINGS: dict[str, type[errors.Conflict]] = {
    "cidrs_of_a_space_never_overlap": errors.CIDROverlap,
    "cidr_observed_elsewhere": errors.CIDROverlap,
    "ranges_of_a_cidr_never_overlap": errors.RangesOverlap,
    "pool_name_unique": errors.AlreadyExists,
    "pools_cluster_name_key": errors.AlreadyExists,
    "pools_cluster_name_uniq": errors.AlreadyExists,
    "environment_unique": errors.AlreadyExists,
    "saved_filter_name_unique": errors.AlreadyExists,
    "custom_field_name_unique": errors.AlreadyExists,
    "pool_is_immutable": errors.ImmutableInUse,
}


def save(row: db.models.Model) -> None:
    """Validate and save a row, then read it back as it is stored.

    ValidationError becomes InvalidInput with a problem per field; the violation of a constraint becomes its
    named error (a race that validation cannot see).
    """
    try:
        row.full_clean()
    except ValidationError as error:
        raise _domain_error(error) from error
    try:
        row.save()
    except db.IntegrityError as error:
        meaning = _MEANINGS.get(constraint(error))
        if meaning is None:
            raise
        raise meaning from error
    row.refresh_from_db()


def _domain_error(error: ValidationError) -> errors.IpamError:
    """Return the first conflict with another row as its named error, else all problems."""
    conflicts = {meaning.code: meaning for meaning in _MEANINGS.values()}
    problems = []
    for name, field_errors in error.error_dict.items():
        for field_error in field_errors:
            code = field_error.code or "invalid"
            if code in conflicts:
                return conflicts[code](" ".join(field_error.messages))
            field = "" if name == NON_FIELD_ERRORS else name
            problems.append(errors.FieldProblem(field, code, " ".join(field_error.messages)))
    return errors.InvalidInput.all(problems)


# What a change is based on: the number that REST has in its ETag, or the check of a form, which is called
# with the locked row and raises VersionMismatch. None: the row may have any version.
Version = int | Callable[[Any], None] | None


def require_version(row: Any, version: Version) -> None:
    """Raise VersionMismatch if a row changed since its version was read; the row is locked by the caller."""
    if callable(version):
        version(row)
    elif version is not None and row.version != version:
        raise errors.VersionMismatch


class CreateTables(SeparateDatabaseAndState):
    """Create the tables and triggers of the models that `operations` describe, as they are after the last of them.

    As operations of their own, Django would build all related models anew after each: three quarters
    of the time of a first start.
    """

    serialization_expand_args: ClassVar[list[str]] = ["operations"]

    def __init__(self, operations: list[Operation]) -> None:
        super().__init__(state_operations=operations)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return type(self).__qualname__, [], {"operations": self.state_operations}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop(
            "apps", None
        )  # a cached property: the models, if they were built already
        super().state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, *states: ProjectState) -> None:
        # A model is created with all its columns, constraints and indexes, but without its triggers.
        for operation in self.state_operations:
            if isinstance(operation, CreateModel | AddTrigger):
                operation.database_forwards(app_label, schema_editor, *states)

    def database_backwards(self, app_label: str, schema_editor: Any, *states: ProjectState) -> None:
        for operation in reversed(self.state_operations):
            if isinstance(operation, CreateModel):  # a table goes with its triggers
                operation.database_backwards(app_label, schema_editor, *states)
