"""Clusters for handlers: the fake API server, or with --real a kube-apiserver, and passes over them."""

from collections.abc import Iterator

import pytest

from tests.handlers.fleet import Fleet
from tests.handlers.node_world import World
from tests.kube.api import Cluster
from tests.kube.api_servers import erased, pytest_generate_tests, real_cluster, server
from tests.kube.fake import FakeCluster

SHIPPED = "cilium.io_ciliumpodippools.v2"
PROPOSAL = "cilium.io_ciliumpodippools.v2-proposal"
OLD = "cilium.io_ciliumpodippools.v2alpha1"


@pytest.fixture
def definition() -> str:
    """The CRD of the test's cluster; tests that want another one are parametrized with it."""
    return SHIPPED


@pytest.fixture
def definitions(definition: str) -> tuple[str, ...]:
    return (definition, "cilium.io_ciliumnodes")


@pytest.fixture
def fake(db: None) -> Iterator[FakeCluster]:
    """A fake cluster of this test alone, with the definitions of Cilium."""
    with FakeCluster() as running:
        running.crds(SHIPPED, "cilium.io_ciliumnodes")
        yield running


@pytest.fixture
def fleet(server: Cluster, db: None) -> Fleet:
    """The server as an observed cluster of the register."""
    return Fleet(server)


@pytest.fixture
def world(fake: FakeCluster) -> World:
    """A cluster whose nodes are recorded, with the pool `a`."""
    world = World(fake)
    world.pool("a", "10.0.0.0/22")
    return world
