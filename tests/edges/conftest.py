"""Clusters of this machine for the tests of the edges."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pools.clusters.reconcile import registry
from pools.core.kubernetes import resources
from pools.core.kubernetes.resources import Resource
from tests.edges import api as apis
from tests.kube.api_servers import (
    definitions,
    erased,
    pytest_generate_tests,
    real_cluster,
    server,
)
from tests.kube.fake import FakeCluster


@pytest.fixture
def api() -> apis.Api:
    """As an administrator, with the cluster `prod`."""
    api = apis.Api()
    api.cluster()
    return api


@pytest.fixture
def fake(settings: Any) -> Iterator[FakeCluster]:
    """A cluster of this test alone, with the definitions of Cilium; loopback is allowed."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
        yield running


@pytest.fixture
def other(settings: Any) -> Iterator[FakeCluster]:
    """Another cluster."""
    with FakeCluster() as running:
        yield running


@dataclass(frozen=True)
class Reader:
    """As much of a handler as the edges ask for."""

    kind: str
    resources: tuple[Resource, ...]


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cilium's pools and nodes are read, and nothing else, whatever is installed."""
    pools = (resources.CILIUM_POD_IP_POOL, resources.CILIUM_POD_IP_POOL_V2ALPHA1)
    result = (Reader("CiliumPodIPPool", pools), Reader("CiliumNode", (resources.CILIUM_NODE,)))
    monkeypatch.setattr(registry, "HANDLERS", result)
