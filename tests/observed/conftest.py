"""A cluster whose objects use addresses: the fake API server, or with --real a kube-apiserver."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command

from tests import commands
from tests.edges import api as apis
from tests.kube.api import Cluster
from tests.kube.api_servers import (
    definitions,
    loopback_allowed,
    pytest_generate_tests,
    real_cluster,
    server,
)

Manifest = dict[str, Any]


@pytest.fixture
def erased() -> tuple[str, ...]:
    return ("nodes", "configmaps", "services")


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
    return functools.partial(commands.output, "reconcile", "prod")
