"""PostgreSQL's errors, named: which constraint was broken, and whether asking again helps."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    IntegrityError,
    connection,
    connections,
    models,
    transaction,
)
from psycopg import sql

from pools.core import errors

T = TypeVar("T")

ATTEMPTS = 6
# serialization_failure, deadlock_detected, lock_not_available
_ASK_AGAIN = {"40001", "40P01", "55P03"}
RECOVERING = "57R01"  # pools/sql/recovery.sql
# Two requests met: the one that lost finds the other's row when it asks again.
_MET = {
    "one_block_per_holder",
    "one_block_per_environment",
    "idempotency_key_unique",
    "block_unique",
    "environment_unique",
}


def sqlstate(error: BaseException) -> str:
    """The five-character SQLSTATE of a Django or psycopg error, "" without one."""
    cause = error.__cause__ or error
    return getattr(cause, "sqlstate", None) or ""


def constraint(error: BaseException) -> str:
    """The name of the constraint or trigger rule that was broken, "" without one."""
    diagnostics = getattr(error.__cause__ or error, "diag", None)
    return getattr(diagnostics, "constraint_name", None) or ""


Query = str | sql.SQL | sql.Composed
Values = Sequence[object] | Mapping[str, object]


def rows(statement: Query, values: Values, *, prepare: bool | None = None) -> list[tuple[Any, ...]]:
    """The rows that a statement answers; for what is asked thousands of times a second.

    A prepared statement with its values apart spares the server from parsing and planning and the
    client from quoting, which Django's cursor cannot; its errors are Django's all the same. With
    `prepare` False it is planned each time: for long values.
    """
    own = connections[DEFAULT_DB_ALIAS]  # once: each look through `connection` asks for the thread
    own.ensure_connection()
    cursor: psycopg.Cursor[tuple[Any, ...]] | None = getattr(_kept, "cursor", None)
    if cursor is None or cursor.connection is not own.connection or prepare is False:
        cursor = psycopg.Cursor(own.connection)
        if prepare is not False:  # a kept cursor keeps its last rows, and those may be many
            _kept.cursor = cursor
    with own.wrap_database_errors:
        return cursor.execute(statement, values, prepare=prepare).fetchall()


# The thread's cursor: a new one would find out again how to write and read each type of value.
_kept = threading.local()


@contextmanager
def _cursor() -> Iterator[psycopg.Cursor[tuple[Any, ...]]]:
    """psycopg's own cursor, which binds values on the server; its errors become Django's."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        yield cursor


def fetch(statement: Query, values: Mapping[str, object]) -> list[Mapping[str, Any]]:
    """The rows that a statement answers, by column; for what carries long values.

    Its values travel apart like those of `rows`, but the statement is planned each time.
    """
    with _cursor() as cursor:
        cursor.execute(statement, values, prepare=False)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def copy(table: str, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Insert many rows by COPY, several times as fast as INSERT where a column is JSON (as text)."""
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with _cursor() as cursor, cursor.copy(statement) as stream:
        for line in lines:
            stream.write_row(line)


def analyze(table: str) -> None:
    """Fresh statistics after many rows came at once, also those of this transaction; some 50 ms.

    Where autovacuum is at it, its own are as good. Only the table's owner may; others go on without.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE (SKIP_LOCKED) {table}")


@contextmanager
def hash_joins_only(*, many: bool = True) -> Iterator[None]:
    """A transaction, or a part of one, for statements that lay whole tables beside each other.

    Each table is read once, whatever the planner believes of rows that came a moment ago: a nested
    loop by a misleading index, or a merge by the first of several keys, would never end. With `many`
    False nothing is changed. After an error the rollback takes it back.
    """
    if not many:
        yield
        return
    with transaction.atomic(savepoint=False):  # outside of one nothing would be set
        before = rows(_PLANNER, ["off", "off", "64MB"])[0][:3]
        yield
        rows(_PLANNER, before)


_PLANNER = """
    SELECT current_setting('enable_nestloop'), current_setting('enable_mergejoin'),
        current_setting('work_mem'), set_config('enable_nestloop', %s, true),
        set_config('enable_mergejoin', %s, true), set_config('work_mem', %s, true)
"""


def joined(values: Iterable[object]) -> str:
    """A list as one text, which is quoted at once; for string_to_array, so nothing has a comma."""
    return ",".join(map(str, values))


def recovering(error: BaseException) -> errors.Recovering:
    """What an error with the SQLSTATE of a recovery says."""
    said = getattr(error.__cause__ or error, "diag", None)
    message, clusters = (getattr(said, f"message_{part}", None) for part in ("primary", "detail"))
    return errors.Recovering(message or "", clusters=clusters or "")


def call(statement: Query, values: Values) -> Any:
    """The one value that a statement answers, by `rows`."""
    ((value,),) = rows(statement, values)
    return value


def now() -> datetime:
    """The register's clock: the database's, the same during a transaction."""
    moment: datetime = call("SELECT ipam_now()", [])
    return moment


def retried(work: Callable[[], T]) -> T:
    """Run a whole transaction, again when it lost a race; at most 6 times, with jitter.

    Inside an open transaction it runs once: only the outermost one can be repeated. Raises
    Recovering where the database refused to hand out a block.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return work()
        except DatabaseError as error:
            if sqlstate(error) == RECOVERING:
                raise recovering(error) from error
            lost = sqlstate(error) in _ASK_AGAIN or constraint(error) in _MET
            if not lost or attempt == ATTEMPTS or connection.in_atomic_block:
                raise
            time.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311  # jitter, no secret
    raise AssertionError("unreachable")


# What breaking a constraint of the tables means to a caller.
_MEANINGS: dict[str, type[errors.Conflict]] = {
    "cidrs_of_a_space_never_overlap": errors.CIDROverlap,
    "cidr_observed_elsewhere": errors.CIDROverlap,
    "ranges_of_a_cidr_never_overlap": errors.RangesOverlap,
    "pool_name_unique": errors.AlreadyExists,
    "pools_cluster_name_key": errors.AlreadyExists,
    "pools_cluster_name_uniq": errors.AlreadyExists,
    "pool_is_immutable": errors.ImmutableInUse,
}


def save(row: models.Model) -> None:
    """Validate and write a row, then read it back as it is stored.

    ValidationError becomes InvalidInput with a problem for each field; a broken constraint becomes
    its named error (a race that validation cannot see).
    """
    try:
        row.full_clean()
    except ValidationError as error:
        raise _named(error) from error
    try:
        row.save()
    except IntegrityError as error:
        meaning = _MEANINGS.get(constraint(error))
        if meaning is None:
            raise
        raise meaning from error
    row.refresh_from_db()


def _named(error: ValidationError) -> errors.IpamError:
    """The first conflict with other rows by name, else all problems."""
    conflicts = {meaning.code: meaning for meaning in _MEANINGS.values()}
    problems = []
    for name, found in error.error_dict.items():
        for one in found:
            code = one.code or "invalid"
            if code in conflicts:
                return conflicts[code](" ".join(one.messages))
            field = "" if name == NON_FIELD_ERRORS else name
            problems.append(errors.FieldProblem(field, code, " ".join(one.messages)))
    return errors.InvalidInput.all(problems)
