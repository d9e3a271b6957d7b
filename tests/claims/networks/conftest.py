"""Clusters with OVN-Kubernetes' and Multus' definitions: the fake, or with --real a kube-apiserver."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake import FakeCluster

if TYPE_CHECKING:
    from tests.claims.networks.ovn import Ovn
    from tests.pools.conftest import Clock

CRDS = (
    "k8s.ovn.org_clusteruserdefinednetworks",
    "k8s.ovn.org_userdefinednetworks",
    "k8s.cni.cncf.io_network-attachment-definitions",
)
PLURALS = ("network-attachment-definitions", "userdefinednetworks", "clusteruserdefinednetworks")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        real = metafunc.config.getoption("--real")
        metafunc.parametrize("server", ["real"] if real else ["fake"], indirect=True)


@pytest.fixture(scope="session")
def _real() -> Iterator[Callable[[], Any]]:
    """The one real API server of a run, started when it is first asked for."""
    from tests.kube.real import RealCluster

    with contextlib.ExitStack() as stack:
        started: list[RealCluster] = []

        def get() -> RealCluster:
            if not started:
                started.append(stack.enter_context(RealCluster()))
                started[0].crds(*CRDS)
            return started[0]

        yield get


@pytest.fixture
def server(request: pytest.FixtureRequest, _real: Callable[[], Any]) -> Iterator[Any]:
    """A cluster without networks."""
    if request.param == "real":
        cluster = _real()
        for plural in PLURALS:
            for one in cluster.objects(plural):
                metadata = one["metadata"]
                cluster.remove(plural, metadata["name"], metadata.get("namespace", ""))
        yield cluster
        return
    with FakeCluster() as fake:
        fake.crds(*CRDS)
        yield fake


@pytest.fixture
def clock(db: None) -> Clock:
    from tests.pools.conftest import Clock

    return Clock()


@pytest.fixture
def ovn(server: Any, db: None) -> Ovn:
    """The server as an observed cluster of the register."""
    from tests.claims.networks.ovn import Ovn

    return Ovn(server)
