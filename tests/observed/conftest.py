"""A cluster whose objects use addresses: the fake API server, or with --real a kube-apiserver."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from pools.models import ObservedObject
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


@dataclass(frozen=True)
class Prod:
    """The cluster `prod`, which is connected."""

    server: Any

    def reconcile(self) -> str:
        """A full sync; raises CommandError if it fails."""
        return commands.output("reconcile", "prod")

    def follow(self, *manifests: dict[str, Any]) -> None:
        """Put them in the cluster, and run a full sync."""
        for manifest in manifests:
            self.server.put(manifest)
        self.reconcile()

    def reconcile_until_gone(self) -> None:
        """Two full syncs, so far apart that an object which both miss is gone."""
        self.reconcile()
        earlier = F("missed_at") - timedelta(hours=1)
        ObservedObject.objects.exclude(missed_at=None).update(missed_at=earlier)
        self.reconcile()


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
def prod(server: Cluster, connect: Callable[..., None]) -> Prod:
    connect()
    return Prod(server)
