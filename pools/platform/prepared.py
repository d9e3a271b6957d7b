"""The statements of the hot path, prepared and run by libpq itself.

The cursor of psycopg is Python, and costs a client as much again as sending a prepared statement and
reading its answer: half of what an allocation costs outside the server.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult


def text(statement: str, values: Sequence[str | int | None]) -> str:
    """The one text that a statement with the parameters $1, $2, … answers, which is not null.

    Raises Django's errors, as its cursors do: DataError for a text with NUL bytes. Within a transaction, which psycopg begins, and where
    nothing may be prepared, it is a cursor of psycopg that runs it.
    """
    own = connections[DEFAULT_DB_ALIAS]
    own.ensure_connection()
    link: psycopg.Connection[Any] = own.connection
    with own.wrap_database_errors:
        if link.autocommit and link.prepare_threshold is not None:
            return _prepared(link, statement, values)
        with psycopg.RawCursor(link) as cursor:
            ((answer,),) = cursor.execute(statement, values)
    return str(answer)


class _Kept(threading.local):
    """What the thread's connection has prepared: statement -> name."""

    link: psycopg.Connection[Any] | None = None
    names: dict[str, bytes]


_kept = _Kept()
_NOT_PREPARED = b"26000"  # invalid_sql_statement_name


def _prepared(
    link: psycopg.Connection[Any], statement: str, values: Sequence[str | int | None]
) -> str:
    if _kept.link is not link:
        _kept.link, _kept.names = link, {}
    texts: Any = [None if value is None else _bytes(value) for value in values]
    name = _kept.names.get(statement)
    if name is not None:
        result = link.pgconn.exec_prepared(name, texts)
        if result.error_field(DiagnosticField.SQLSTATE) != _NOT_PREPARED:
            return _answer(result)
    else:
        name = b"ipam_%d" % len(_kept.names)
    # New to the connection, or gone: psycopg drops all that is prepared when something is rolled back.
    done = link.pgconn.prepare(name, statement.encode())
    if done.status != ExecStatus.COMMAND_OK:
        raise _error(done)
    _kept.names[statement] = name
    return _answer(link.pgconn.exec_prepared(name, texts))


def _bytes(value: str | int) -> bytes:
    """A value as libpq takes it; what comes after a NUL, it would leave out."""
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
    if result.error_field(DiagnosticField.SQLSTATE) is None:  # libpq's own: the server is away
        return psycopg.OperationalError(result.get_error_message())
    return psycopg.errors.error_from_result(result)
