"""Databases of their own, and a real API server."""

from collections.abc import Iterator

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from tests import servers
from tests.deploy import real_api


def url_of(database: str) -> str:
    """Of a database of the tests' server."""
    server, _, _ = settings.DATABASES["default"], None, None
    password = f"{server['USER']}:{server['PASSWORD']}"
    return f"postgresql://{password}@{server['HOST']}:{server['PORT']}/{database}"


def recreate(database: str, template: str = "template1") -> str:
    with psycopg.connect(url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, database)
        identifiers = map(sql.Identifier, (database, template))
        created = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*identifiers)
        connection.execute(created)
    return url_of(database)


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
