"""A management cluster of Cluster API: the fake API server, or with --real a kube-apiserver."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake import FakeCluster

if TYPE_CHECKING:
    from tests.cluster_api.world import World
    from tests.kube.api import Cluster

POOLS = pathlib.Path(__file__).parents[2] / "deploy/crds/ipam.cadastre.dev.yaml"
CLUSTERS = "cluster.x-k8s.io_clusters"
CLAIMS = "ipam.cluster.x-k8s.io_ipaddressclaims"
ADDRESSES = "ipam.cluster.x-k8s.io_ipaddresses"
BOTH = (CLAIMS, ADDRESSES, CLUSTERS, POOLS)  # v1beta1 and v1beta2 served, v1beta2 stored
OLD = (f"{CLAIMS}.v1beta1", f"{ADDRESSES}.v1beta1", CLUSTERS, POOLS)  # Cluster API 1.9


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        real = metafunc.config.getoption("--real")
        metafunc.parametrize("server", ["real"] if real else ["fake"], indirect=True)


@pytest.fixture(scope="package")
def real_server(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The one kube-apiserver of this folder; None without --real."""
    if not request.config.getoption("--real"):
        yield None
        return
    from tests.kube.real import RealCluster

    with RealCluster() as running:
        yield running


@pytest.fixture
def definitions() -> tuple[Any, ...]:
    """The CRDs of the test's cluster; tests that want others are parametrized with them."""
    return BOTH


@pytest.fixture
def server(
    request: pytest.FixtureRequest, definitions: tuple[Any, ...], real_server: Any, settings: Any
) -> Iterator[Cluster]:
    """A cluster without objects of Cluster API."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    if request.param == "real":
        real_server.anew(*definitions)
        yield real_server
        return
    with FakeCluster() as fake:
        fake.crds(*definitions)
        yield fake


@pytest.fixture
def world(server: Cluster, db: None) -> World:
    """The cluster, managed by the register, with two namespaces."""
    from tests.cluster_api.world import World

    return World(server)
