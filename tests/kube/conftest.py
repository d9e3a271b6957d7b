"""The same tests against the fake API server and, with --real, against a kube-apiserver."""

import itertools
from collections.abc import Iterator

import pytest

from pools.clusters.client.api_client import ClusterClient
from tests.kube.api import Api, Cluster
from tests.kube.fake import FakeCluster

_numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A cluster of today, and one like the oldest; or the real one alone."""
    if "cluster" in metafunc.fixturenames:
        real = metafunc.config.getoption("--real")
        which = ["real"] if real else ["fake", "fake-1.20"]
        metafunc.parametrize("cluster", which, indirect=True, scope="package")


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One for all tests of this folder, each of which uses names of its own."""
    from tests.kube.real import RealCluster

    started: Cluster
    if request.param == "real":
        started = RealCluster()
    else:
        started = FakeCluster(minor=20 if request.param == "fake-1.20" else 33)
    with started as running:
        running.crds(
            "cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes", "k8s.cni.cncf.io_ipamclaims"
        )
        yield running


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    """As the admin."""
    from tests.kube.api import Api

    connected = Api(cluster)
    yield connected
    connected.close()


@pytest.fixture
def gateway(cluster: Cluster) -> Iterator[ClusterClient]:
    """A client of the product with the rights of the admin."""
    from tests.kube import gateways

    with gateways.to(cluster) as opened:
        yield opened


@pytest.fixture
def name() -> str:
    """Of an object of this test alone."""
    return f"object-{next(_numbers)}"


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """A fake of this test alone, with the definitions of Cilium."""
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
        yield running
