"""The API server of the handlers: a fake for each test, or with --real one kube-apiserver for all."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.kube.fake import FakeCluster

if TYPE_CHECKING:
    from tests.kube.api import Cluster
    from tests.kube.real import RealCluster
    from tests.pools.conftest import Clock


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        real = metafunc.config.getoption("--real")
        metafunc.parametrize("server", ["real"] if real else ["fake"], indirect=True)


@pytest.fixture(scope="package")
def _real() -> Iterator[Callable[[], RealCluster]]:
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
def definitions() -> tuple[str | pathlib.Path, ...]:
    """The CRDs of the test's cluster; each folder has its own."""
    return ()


@pytest.fixture
def server(
    request: pytest.FixtureRequest,
    definitions: tuple[str | pathlib.Path, ...],
    _real: Callable[[], RealCluster],
) -> Iterator[Cluster]:
    """A cluster that has these definitions and no objects of them."""
    if request.param == "real":
        cluster = _real()
        cluster.anew(*definitions)
        yield cluster
        return
    with FakeCluster() as fake:
        fake.crds(*definitions)
        yield fake


@pytest.fixture
def clock(db: None) -> Clock:
    from tests.pools.conftest import Clock

    return Clock()
