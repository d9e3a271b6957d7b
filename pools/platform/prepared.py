"""Statements of the hot path, prepared and executed by libpq itself.

A cursor of psycopg is Python code, and costs a client as much again as sending a prepared statement and
reading its answer: half of the cost of an allocation outside the server.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult


def fetch_text(statement: str, values: Sequence[str | int | None]) -> str:
    """Return the only value, a text that is not null, of a statement with the parameters $1, $2, …

    Raises Django's errors, as its cursors do: DataError for a text with NUL bytes. A cursor of psycopg
    executes the statement within a transaction, which psycopg begins, if statements may not be prepared, and
    behind a pooler: PgBouncer ends a connection that executes a statement which psycopg has dropped.
    """
    wrapper = connections[DEFAULT_DB_ALIAS]
    wrapper.ensure_connection()
    pg_connection: psycopg.Connection[Any] = wrapper.connection
    with wrapper.wrap_database_errors:
        may_prepare = pg_connection.prepare_threshold is not None and not settings.DB_POOLER
        if pg_connection.autocommit and may_prepare:
            return _execute_prepared(pg_connection, statement, values)
        with psycopg.RawCursor(pg_connection) as cursor:
            ((answer,),) = cursor.execute(statement, values)
    return str(answer)


def is_connected() -> bool:
    """Return True if the thread has a connection which the server has not closed since its last statement.

    For statements that must not be repeated when the connection breaks.
    """
    pg_connection = connections[DEFAULT_DB_ALIAS].connection
    if pg_connection is None or pg_connection.pgconn.status != ConnStatus.OK:
        return False
    poll = select.poll()
    poll.register(pg_connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)  # a server that has been asked nothing sends nothing but its end


class _PreparedStatements(threading.local):
    """The statements that the thread's connection has prepared: statement -> name."""

    link: psycopg.Connection[Any] | None = None
    names: dict[str, bytes]


_statements = _PreparedStatements()
_NOT_PREPARED = b"26000"  # invalid_sql_statement_name


def _execute_prepared(
    pg_connection: psycopg.Connection[Any], statement: str, values: Sequence[str | int | None]
) -> str:
    if _statements.link is not pg_connection:
        _statements.link, _statements.names = pg_connection, {}
    parameters: Any = [None if value is None else _bytes(value) for value in values]
    name = _statements.names.get(statement)
    if name is not None:
        result = pg_connection.pgconn.exec_prepared(name, parameters)
        if result.error_field(DiagnosticField.SQLSTATE) != _NOT_PREPARED:
            return _answer(result)
    else:
        name = b"ipam_%d" % len(_statements.names)
    # New to the connection, or deallocated: psycopg drops all prepared statements at a rollback.
    prepared = pg_connection.pgconn.prepare(name, statement.encode())
    if prepared.status != ExecStatus.COMMAND_OK:
        raise _error(prepared)
    _statements.names[statement] = name
    return _answer(pg_connection.pgconn.exec_prepared(name, parameters))


def _bytes(value: str | int) -> bytes:
    """Encode a value for libpq, which would cut it off at a NUL."""
    encoded = str(value).encode()
    if b"\0" in encoded:
        raise psycopg.DataError("PostgreSQL text cannot contain NUL bytes")
    return encoded


def _answer(result: PGresult) -> str:
    value = result.get_value(0, 0) if result.status == ExecStatus.TUPLES_OK else None
    if value is None:
        raise _error(result)
    return value.decode()


def _error(result: PGresult) -> psycopg.Error:
    if result.error_field(DiagnosticField.SQLSTATE) is None:  # libpq's own error: no server
        return psycopg.OperationalError(result.get_error_message())
    return psycopg.errors.error_from_result(result)
