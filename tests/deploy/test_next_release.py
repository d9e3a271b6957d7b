"""An upgrade to a release that expands the schema, as docs/how-to/upgrade.md says, and what a contraction would do.

The migrations here are made up: so the tests of upgrades prove something also where nothing new is there.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests import servers
from tests.deploy import catalog, conftest, trees


@pytest.fixture(scope="module")
def following(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[conftest.Upgrade]:
    """The last release's register after the next release's migrations, while requests go on."""
    tree = trees.following(tmp_path_factory.mktemp("next"))
    name = f"next_{worker_id}"
    yield conftest.upgrade_register(tree, name)
    with psycopg.connect(conftest.url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, name)


@pytest.mark.exhaustive
def test_web_requests_are_answered_meanwhile(following: conftest.Upgrade) -> None:
    assert following.worked
    assert following.refused == []


def test_every_row_is_still_there(following: conftest.Upgrade) -> None:
    names = conftest.columns(following.before)
    with psycopg.connect(following.url) as connection:
        rows = conftest.contents(connection, names)
    changed = {table for table in names if rows[table] != following.rows[table]}
    assert changed <= {"django_migrations", "pools_blockevent"}


def test_what_the_old_code_uses_is_still_there(following: conftest.Upgrade) -> None:
    assert "is_new()" in following.after["routine"]
    assert "pools_block.label" in following.after["column"]
    assert catalog.contraction(following.before, following.after) == []


def test_what_a_contraction_takes_is_named(following: conftest.Upgrade) -> None:
    with psycopg.connect(following.url) as connection:
        connection.execute("DROP FUNCTION ipam_clock(); ALTER TABLE pools_block DROP env CASCADE")
        after = catalog.read(connection)
        connection.rollback()
    missed = catalog.contraction(following.before, after)
    assert {"routine ipam_clock()", "column pools_block.env"} <= set(missed)
