"""A management cluster of Cluster API: the fake API server, or with --real a kube-apiserver."""

import pathlib
from typing import Any

import pytest

from tests.cluster_api.world import World
from tests.kube.api import Cluster
from tests.kube.api_servers import (
    erased,
    loopback_allowed,
    pytest_generate_tests,
    real_cluster,
    server,
)

POOLS = pathlib.Path(__file__).parents[2] / "deploy/crds/ipam.cadastre.dev.yaml"
CLUSTERS = "cluster.x-k8s.io_clusters"
CLAIMS = "ipam.cluster.x-k8s.io_ipaddressclaims"
ADDRESSES = "ipam.cluster.x-k8s.io_ipaddresses"
BOTH = (CLAIMS, ADDRESSES, CLUSTERS, POOLS)  # v1beta1 and v1beta2 served, v1beta2 stored
OLD = (f"{CLAIMS}.v1beta1", f"{ADDRESSES}.v1beta1", CLUSTERS, POOLS)  # Cluster API 1.9


@pytest.fixture
def definitions() -> tuple[Any, ...]:
    """The CRDs of the test's cluster; tests that want others are parametrized with them."""
    return BOTH


@pytest.fixture
def world(server: Cluster, db: None) -> World:
    """The cluster, managed by the register, with two namespaces."""
    from tests.cluster_api.world import World

    return World(server)
