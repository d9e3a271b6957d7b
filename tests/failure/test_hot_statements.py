"""pools/platform/prepared.py beside psycopg's own prepared statements, transactions, errors and lost connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, transaction

from pools.platform import database, prepared

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("committed")]

_ECHO = "SELECT $1::text || $2::bigint::text"


@pytest.fixture(autouse=True)
def fresh_connection(committed: None) -> Iterator[None]:
    connection.close()
    yield
    connection.close()


def _prepared() -> set[str]:
    """The statements that the connection has prepared, seen without preparing one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return {statement for (statement,) in cursor.fetchall()}


def test_it_is_prepared_once_and_again_for_a_new_connection() -> None:
    for number in range(3):
        assert prepared.fetch_text(_ECHO, ["Zürich ", number]) == f"Zürich {number}"
    assert _ECHO in _prepared()
    connection.close()
    assert prepared.fetch_text(_ECHO, ["a", 1]) == "a1"
    assert _prepared() == {_ECHO}


def test_a_rollback_after_which_psycopg_drops_what_is_prepared() -> None:
    other = "SELECT 'other ' || $1::text"
    assert prepared.fetch_text(_ECHO, ["a", 1]) == "a1"
    assert prepared.fetch_text(other, ["b"]) == "other b"
    with transaction.atomic():
        database.rows("SELECT 1", [], prepare=True)
        transaction.set_rollback(True)
    assert not _prepared()
    assert prepared.fetch_text(_ECHO, ["a", 2]) == "a2"
    assert prepared.fetch_text(other, ["c"]) == "other c"
    assert _prepared() == {_ECHO, other}


def test_within_a_transaction_it_is_part_of_it() -> None:
    marked = "SELECT set_config('ipam.test_mark', $1::text, false)"
    assert prepared.fetch_text(marked, ["before"]) == "before"
    with transaction.atomic():
        assert prepared.fetch_text(marked, ["within"]) == "within"
        transaction.set_rollback(True)
    assert database.rows("SELECT current_setting('ipam.test_mark')", []) == [("before",)]


def test_where_nothing_may_be_prepared() -> None:
    connection.ensure_connection()
    connection.connection.prepare_threshold = None  # as DB_PREPARED_STATEMENTS=0
    for _ in range(7):
        assert prepared.fetch_text(_ECHO, ["a", 1]) == "a1"
    assert not _prepared()


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a transaction"])
def test_its_errors_are_those_of_django(within: bool) -> None:
    refuse = "SELECT ipam_refuse($1::text, 'no')::text"
    asked: list[tuple[type[Exception], str, list[str | int | None]]] = [
        (DataError, "SELECT (1 / $1::int)::text", [0]),
        (IntegrityError, refuse, ["some_rule"]),
        (DataError, _ECHO, ["before\0after", 1]),
        (DataError, _ECHO, ["a", "no number"]),
    ]
    for kind, statement, values in asked:
        with pytest.raises(kind) as caught, transaction.atomic() if within else nullcontext():
            prepared.fetch_text(statement, values)
        if statement == refuse:
            assert database.constraint(caught.value) == "some_rule"
            assert database.sqlstate(caught.value) == "23514"
    assert prepared.fetch_text(_ECHO, ["a", 1]) == "a1"


def test_a_null_parameter() -> None:
    assert prepared.fetch_text("SELECT COALESCE($1::text, 'nothing')", [None]) == "nothing"


def test_a_connection_that_was_cut() -> None:
    prepared.fetch_text(_ECHO, ["a", 1])
    with pytest.raises(OperationalError):
        prepared.fetch_text("SELECT pg_terminate_backend(pg_backend_pid())::text", [])
    with pytest.raises(OperationalError):
        prepared.fetch_text(_ECHO, ["a", 2])
    connection.close_if_unusable_or_obsolete()
    assert prepared.fetch_text(_ECHO, ["a", 3]) == "a3"
