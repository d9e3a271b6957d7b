"""The migrations of an empty database: they go on after an interruption, and go back and forth."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest

from ipam_site import data_folder
from tests import servers
from tests.deploy import conftest


@pytest.fixture
def url(worker_id: str) -> Iterator[str]:
    name = f"migrations_{worker_id}"
    yield conftest.recreate(name)
    with psycopg.connect(conftest.url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, name)


def _migrate(url: str, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity=0", *arguments],
        cwd=data_folder.PROJECT,
        env=os.environ | {"DATABASE_URL": url},
        check=True,
    )


def _count(url: str) -> int:
    ours = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'pools@_%' ESCAPE '@'"
    with psycopg.connect(url) as connection:
        ((number,),) = connection.execute(ours).fetchall()
    return int(number)


def test_tables_go_back_and_come_again(url: str) -> None:
    _migrate(url, "pools", "0001_initial")
    tables = _count(url)
    _migrate(url)
    _migrate(url, "claims", "zero")
    _migrate(url, "pools", "zero")
    assert _count(url) == 0
    _migrate(url)
    assert _count(url) == tables > 50
