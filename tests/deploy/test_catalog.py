"""The comparison of two schemas sees what code of the last release would miss."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.deploy import catalog, conftest

_OLD = """
CREATE TABLE t (id bigint PRIMARY KEY, a text NOT NULL, b int, c varchar(9) DEFAULT '' NOT NULL);
CREATE VIEW v AS SELECT id, a FROM t;
CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql AS 'SELECT x';
"""


@pytest.fixture
def connection(worker_id: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conftest.recreate(f"catalog_{worker_id}")) as connection:
        connection.execute(_OLD)
        yield connection


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        pytest.param("ALTER TABLE t ADD d text", [], id="nullable-column"),
        pytest.param("ALTER TABLE t ADD d text NOT NULL DEFAULT ''", [], id="column-with-default"),
        pytest.param("CREATE TABLE u (id int NOT NULL UNIQUE)", [], id="table"),
        pytest.param(
            "CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1'", [], id="function"
        ),
        pytest.param("CREATE INDEX i ON t (b)", [], id="index"),
        pytest.param("ALTER TABLE t ALTER a DROP NOT NULL", [], id="loosened"),
        pytest.param(
            "CREATE OR REPLACE FUNCTION f(x int) RETURNS int LANGUAGE sql AS 'SELECT 2'",
            [],
            id="function-rewritten",
        ),
        pytest.param("ALTER TABLE t DROP b", ["column t.b"], id="column-dropped"),
        pytest.param("ALTER TABLE t RENAME b TO d", ["column t.b"], id="column-renamed"),
        pytest.param("ALTER TABLE t ALTER b TYPE bigint", ["column t.b"], id="type"),
        pytest.param(
            "ALTER TABLE t ALTER b SET NOT NULL", ["demanded t.b", "not null t.b"], id="tightened"
        ),
        pytest.param(
            "ALTER TABLE t ADD d text NOT NULL",
            ["demanded t.d"],
            id="column-that-an-insert-must-name",
        ),
        pytest.param("ALTER TABLE t ALTER c DROP DEFAULT", ["demanded t.c"], id="default-dropped"),
        pytest.param(
            "ALTER TABLE t ADD CONSTRAINT k CHECK (b > 0)", ["constraint t.k"], id="constraint"
        ),
        pytest.param("DROP FUNCTION f(int)", ["routine f(integer)"], id="function-dropped"),
        pytest.param(
            "DROP FUNCTION f(int); CREATE FUNCTION f(x int, y int) RETURNS int LANGUAGE sql AS 'SELECT x'",
            ["routine f(integer)"],
            id="signature",
        ),
        pytest.param(
            "DROP FUNCTION f(int); CREATE FUNCTION f(x int, y int DEFAULT 0) RETURNS int"
            " LANGUAGE sql AS 'SELECT x'",
            [],
            id="argument-with-default",
        ),
        pytest.param("DROP VIEW v", ["relation v", "column v.a", "column v.id"], id="view"),
    ],
)
def test_contraction(connection: psycopg.Connection, change: str, missed: list[str]) -> None:
    old = catalog.read(connection)
    connection.execute(change.encode())
    found = catalog.contraction(old, catalog.read(connection))
    assert [one for one in found if not one.startswith("constraint t.t_")] == missed
