import pathlib

import pytest

from claims.models import IPPool, Network
from tests.claims import worlds
from tests.claims.ippools.fleet import Fleet
from tests.kube.api import Cluster

CRD = pathlib.Path(__file__).parents[3] / "deploy/crds/ippool.k8s.cni.cncf.io.yaml"


@pytest.fixture
def definitions() -> tuple[pathlib.Path, ...]:
    """Our own."""
    return (CRD,)


@pytest.fixture
def fleet(server: Cluster, db: None) -> Fleet:
    """The server as an observed cluster of the register."""
    return Fleet(server)


@pytest.fixture
def network(db: None) -> Network:
    return worlds.network("prod-network")


@pytest.fixture
def ippool(network: Network) -> IPPool:
    return worlds.ippool(network, "prod-pool")
