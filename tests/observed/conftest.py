"""A cluster whose objects use addresses: the fake API server, or with --real a kube-apiserver."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from tests.edges import api as apis
from tests.kube.fake import FakeCluster

if TYPE_CHECKING:
    from tests.kube.api import Cluster

Manifest = dict[str, Any]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        real = metafunc.config.getoption("--real")
        metafunc.parametrize("server", ["real"] if real else ["fake"], indirect=True)


@pytest.fixture(scope="package")
def _real(request: pytest.FixtureRequest) -> Iterator[Any]:
    if not request.config.getoption("--real"):
        yield None
        return
    from tests.kube.real import RealCluster

    with RealCluster() as running:
        yield running


@pytest.fixture
def server(request: pytest.FixtureRequest, settings: Any, _real: Any) -> Iterator[Cluster]:
    """A cluster that serves the built-in kinds only, without nodes."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    if request.param == "real":
        _real.anew()
        for plural in ("nodes", "configmaps", "services"):
            _real.erase(plural)
        yield _real
        return
    with FakeCluster() as fake:
        yield fake


@pytest.fixture
def api() -> apis.Api:
    return apis.Api()


@pytest.fixture
def connect(server: Cluster, api: apis.Api) -> Callable[..., None]:
    """Connect the API server as the cluster `prod`, with the rights of a token."""

    def run(token: str | None = None) -> None:
        api.cluster()
        body = {"kubeconfig": server.kubeconfig(token)}
        answer = api("PUT", "clusters/prod/connection/", body)
        assert answer.status_code == 201, answer.content

    return run


@pytest.fixture
def reconcile(connect: Callable[..., None]) -> Callable[[], str]:
    """Connect the cluster, then run a full sync; raises CommandError if it fails."""
    connect()

    def run() -> str:
        output = io.StringIO()
        call_command("reconcile", "prod", stdout=output)
        return output.getvalue()

    return run
