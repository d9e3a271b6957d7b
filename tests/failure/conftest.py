import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from tests import eventually, servers
from tests.failure import sites
from tests.kube.fake import FakeCluster


@pytest.fixture
def committed(transactional_db: None) -> Iterator[None]:
    """Transactions of their own, as in production; afterwards blocks are handed out again.

    The tables are emptied after the test, which leaves the trigger as it is.
    """
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pools_block DISABLE TRIGGER pools_block_recovers")


@pytest.fixture(scope="module")
def remade_database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A restore makes rules and indexes in another order and from other texts; later tests have the migrations' own."""
    yield
    url, name = os.environ["DATABASE_URL"], connection.settings_dict["NAME"]
    template = sql.Identifier(servers.migrated(url))
    with django_db_blocker.unblock(), psycopg.connect(url, autocommit=True) as server:
        connection.close()
        servers.drop(server, name)
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        server.execute(statement.format(sql.Identifier(name), template))


@pytest.fixture
def fake(committed: None, settings: Any) -> Iterator[FakeCluster]:
    """A fake cluster of this test alone, with the definitions of Cilium."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
        yield running


@pytest.fixture(scope="package")
def site() -> Iterator[sites.Site]:
    """The one site of all tests here that stop processes; each leaves it well."""
    with sites.running() as result:
        yield result


@pytest.fixture
def well(site: sites.Site) -> Iterator[None]:
    """The site answers before the test and after it."""
    eventually.until(site.ready)
    yield
    eventually.until(site.ready)
