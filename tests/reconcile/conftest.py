from collections.abc import Iterator

import pytest

from pools.models import Connection
from tests.kube.api_servers import loopback_allowed
from tests.kube.fake import FakeCluster
from tests.reconcile import small

CRDS = ("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes", "k8s.cni.cncf.io_ipamclaims")


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """A cluster of this test alone."""
    with FakeCluster() as running:
        running.crds(*CRDS)
        yield running


@pytest.fixture
def connection(fake: FakeCluster, db: None) -> Connection:
    return small.connect(fake)


@pytest.fixture
def nodes() -> small.Small:
    return small.Small()


@pytest.fixture
def world(fake: FakeCluster, connection: Connection, nodes: small.Small) -> small.World:
    return small.World(fake, connection, nodes)
