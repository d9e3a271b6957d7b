"""A cluster with our IPPools: the fake API server, or with --real a kube-apiserver."""

from __future__ import annotations

import contextlib
import pathlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake import FakeCluster

if TYPE_CHECKING:
    from tests.claims.ippools.fleet import Fleet
    from tests.kube.api import Cluster
    from tests.pools.conftest import Clock

CRD = pathlib.Path(__file__).parents[3] / "deploy/crds/ippool.k8s.cni.cncf.io.yaml"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        real = metafunc.config.getoption("--real")
        metafunc.parametrize("server", ["real"] if real else ["fake"], indirect=True)


@pytest.fixture(scope="session")
def _real() -> Iterator[list[Any]]:
    """The one real API server of a run, started when it is first asked for."""
    with contextlib.ExitStack() as stack:
        started: list[Any] = []
        stack.callback(lambda: [one.__exit__() for one in started])
        yield started


@pytest.fixture
def server(request: pytest.FixtureRequest, _real: list[Any]) -> Iterator[Cluster]:
    """A cluster without IPPools that has our definition."""
    if request.param == "fake":
        with FakeCluster() as fake:
            fake.crds(CRD)
            yield fake
        return
    if not _real:
        from tests.kube.real import RealCluster

        _real.append(RealCluster().__enter__())
    (cluster,) = _real
    _emptied(cluster)
    yield cluster


def _emptied(cluster: Any) -> None:
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ippools.ippool.k8s.cni.cncf.io"
    until = time.monotonic() + 30
    with contextlib.suppress(RuntimeError):  # that it is gone
        while time.monotonic() < until:
            cluster.request("DELETE", crd)
            time.sleep(0.05)
    cluster.crds(CRD)


@pytest.fixture
def clock(db: None) -> Clock:
    from tests.pools.conftest import Clock

    return Clock()


@pytest.fixture
def fleet(server: Cluster, db: None) -> Fleet:
    """The server as an observed cluster of the register."""
    from tests.claims.ippools.fleet import Fleet

    return Fleet(server)
