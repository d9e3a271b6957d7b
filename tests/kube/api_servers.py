"""The API server of a test: a fake for each, or with --real one kube-apiserver for all tests of a folder.

A conftest imports the fixtures and the hook, and says by `definitions` what its clusters serve.
"""

import contextlib
import functools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kube.api import Cluster
from tests.kube.fake import FakeCluster
from tests.kube.real import RealCluster


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        real = metafunc.config.getoption("--real")
        metafunc.parametrize("server", ["real"] if real else ["fake"], indirect=True)


@pytest.fixture(scope="package")
def real_cluster() -> Iterator[Callable[[], RealCluster]]:
    """Return the one real API server of this folder, which the first call starts."""
    from tests.kube.real import RealCluster

    with contextlib.ExitStack() as stack:
        yield functools.cache(lambda: stack.enter_context(RealCluster()))


@pytest.fixture
def definitions() -> tuple[str | pathlib.Path, ...]:
    """The CRDs of the test's cluster."""
    return ()


@pytest.fixture
def erased() -> tuple[str, ...]:
    """The built-in kinds of which a test begins without objects."""
    return ()


@pytest.fixture
def server(
    request: pytest.FixtureRequest,
    definitions: tuple[str | pathlib.Path, ...],
    erased: tuple[str, ...],
    real_cluster: Callable[[], RealCluster],
) -> Iterator[Cluster]:
    """A cluster that has these definitions and no objects of them."""
    if request.param == "real":
        cluster = real_cluster()
        cluster.anew(*definitions)
        for plural in erased:
            cluster.erase(plural)
        yield cluster
        return
    with FakeCluster() as fake:
        fake.crds(*definitions)
        yield fake


@pytest.fixture(autouse=True)
def loopback_allowed(settings: Any) -> None:
    """The API server is on this machine."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
