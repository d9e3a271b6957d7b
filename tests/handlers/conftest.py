"""Clusters for handlers: the fake API server, or with --real a kube-apiserver, and passes over them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake import FakeCluster

if TYPE_CHECKING:
    from tests.handlers.fleet import Fleet
    from tests.kube.api import Cluster
    from tests.pools.conftest import Clock

SHIPPED = "cilium.io_ciliumpodippools.v2"
PROPOSAL = "cilium.io_ciliumpodippools.v2-proposal"
OLD = "cilium.io_ciliumpodippools.v2alpha1"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        real = metafunc.config.getoption("--real")
        metafunc.parametrize("server", ["real"] if real else ["fake"], indirect=True)


@pytest.fixture(scope="package")
def _real() -> Iterator[Callable[[], Any]]:
    """The one real API server of this folder, started when it is first asked for."""
    from tests.kube.real import RealCluster

    with contextlib.ExitStack() as stack:
        started: list[RealCluster] = []

        def get() -> RealCluster:
            if not started:
                started.append(stack.enter_context(RealCluster()))
            return started[0]

        yield get


@pytest.fixture
def definition() -> str:
    """The CRD of the test's cluster; tests that want another one are parametrized with it."""
    return SHIPPED


@pytest.fixture
def server(
    request: pytest.FixtureRequest, definition: str, _real: Callable[[], Any]
) -> Iterator[Cluster]:
    """A cluster without pools."""
    if request.param == "real":
        cluster = _real()
        cluster.anew(definition, "cilium.io_ciliumnodes")
        yield cluster
        return
    with FakeCluster() as fake:
        fake.crds(definition, "cilium.io_ciliumnodes")
        yield fake


@pytest.fixture
def fake(db: None) -> Iterator[FakeCluster]:
    """A fake cluster of this test alone, with the definitions of Cilium."""
    with FakeCluster() as running:
        running.crds(SHIPPED, "cilium.io_ciliumnodes")
        yield running


@pytest.fixture
def clock(db: None) -> Clock:
    from tests.pools.conftest import Clock

    return Clock()


@pytest.fixture
def fleet(server: Cluster, db: None) -> Fleet:
    """The server as an observed cluster of the register."""
    from tests.handlers.fleet import Fleet

    return Fleet(server)
