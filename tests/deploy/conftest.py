"""The last release's register, migrated as an upgrade does it, while others work with it; a real API server."""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from tests import servers
from tests.deploy import catalog, real_api, release

# The limits of a web request and of the migration job (deploy/kustomize, compose.yaml).
_WEB = "-c lock_timeout=2s -c statement_timeout=5s"
_MIGRATE = {"IPAM_ROLE": "command", "LOCK_TIMEOUT_MS": "2000"}


def url_of(database: str) -> str:
    """Of a database of the tests' server."""
    server, _, _ = settings.DATABASES["default"], None, None
    password = f"{server['USER']}:{server['PASSWORD']}"
    return f"postgresql://{password}@{server['HOST']}:{server['PORT']}/{database}"


def recreate(database: str, template: str = "template1") -> str:
    with psycopg.connect(url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, database)
        named = map(sql.Identifier, (database, template))
        made = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*named)
        connection.execute(made)
    return url_of(database)


@dataclass
class Upgrade:
    url: str
    before: catalog.Found
    after: catalog.Found
    rows: dict[str, str]
    refused: list[str] = field(default_factory=list)
    worked: int = 0


def contents(connection: psycopg.Connection, columns: dict[str, list[str]]) -> dict[str, str]:
    """Table -> digest of its rows in these columns."""
    found = {}
    for table, names in columns.items():
        listed = sql.SQL(", ").join(map(sql.Identifier, names))
        query = sql.SQL(
            "SELECT md5(coalesce(string_agg(r, E'\\n' ORDER BY r), '')) FROM"
            ' (SELECT ROW({})::text COLLATE "C" AS r FROM {}) AS rows'
        ).format(listed, sql.Identifier(table))
        row = connection.execute(query).fetchone()
        assert row is not None
        found[table] = str(row[0])
    return found


def columns(found: catalog.Found) -> dict[str, list[str]]:
    """Table -> its columns, of tables that are not views."""
    tables = {name for name, kind in found["relation"].items() if kind == "r"}
    named = [name.split(".", 1) for name in sorted(found["column"])]
    return {
        table: [column.strip('"') for owner, column in named if owner == table]
        for table in sorted(tables)
    }


class Traffic:
    """What the old release's web processes do meanwhile: short transactions, with their limits."""

    def __init__(self, url: str) -> None:
        self._url, self._over = url, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.refused: list[str] = []
        self.worked = 0

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._url, options=_WEB, autocommit=True) as connection:
            while not self._over.is_set():
                try:
                    connection.execute(
                        "UPDATE pools_block SET allocated_at = allocated_at WHERE id ="
                        " (SELECT min(id) FROM pools_block WHERE state = 'held')"
                    )
                    connection.execute(
                        "SELECT count(*) FROM pools_pool JOIN pools_cluster c ON c.id = cluster_id"
                    )
                    self.worked += 1
                except psycopg.Error as error:
                    self.refused.append(str(error))
                self._over.wait(0.01)


def upgrade_register(folder: pathlib.Path, name: str) -> Upgrade:
    """Run the code's `manage.py migrate` on the last release's register, in a database of that name."""
    url = recreate(name)
    release.restore(url)
    with psycopg.connect(url, autocommit=True) as connection:
        # Otherwise autovacuum may begin with the new rows, and hold a table for a second.
        connection.execute("VACUUM ANALYZE")
    with psycopg.connect(url) as connection:
        before = catalog.read(connection)
        rows = contents(connection, columns(before))
    with Traffic(url) as traffic:
        release.command(folder, url, "migrate", "--no-input", "--verbosity=0", **_MIGRATE)
    with psycopg.connect(url) as connection:
        after = catalog.read(connection)
    return Upgrade(url, before, after, rows, traffic.refused, traffic.worked)


@pytest.fixture(scope="session")
def upgrade(worker_id: str) -> Iterator[Upgrade]:
    """The last release's register after `manage.py migrate` of this code."""
    name = f"upgrade_{worker_id}"
    yield upgrade_register(release.PROJECT, name)
    with psycopg.connect(url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, name)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[real_api.Guarded]:
    if not request.config.getoption("--real"):
        pytest.skip("needs --real: make test-cluster")
    with real_api.Guarded() as running:
        if running.old:
            running.put(real_api.RESTRICTED)
        for group, kinds in real_api.FOREIGN.items():
            for kind in kinds:
                running.put(real_api.definition(group, kind))
        yield running


@pytest.fixture(scope="module")
def kubectl(
    cluster: real_api.Guarded, tmp_path_factory: pytest.TempPathFactory
) -> real_api.Kubectl:
    return real_api.Kubectl(cluster, tmp_path_factory.mktemp("kubectl"))
