from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

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
    with sites.running() as found:
        yield found
