import pytest

from tests.claims.ipamclaims.world import MACHINES, NADS, PROPOSED, SHIPPED, World
from tests.kube.api import Cluster


@pytest.fixture
def definition() -> str:
    """The CRD of claims; tests that want the other one are parametrized with it."""
    return SHIPPED


@pytest.fixture
def definitions(definition: str) -> tuple[str, ...]:
    return (definition, MACHINES, NADS)


@pytest.fixture
def world(server: Cluster, db: None) -> World:
    """The register answers."""
    return World(server)


@pytest.fixture
def observed(server: Cluster, db: None) -> World:
    """Nothing is written to the cluster."""
    return World(server, managed_resource=False)


both = pytest.mark.parametrize("definition", [SHIPPED, PROPOSED])
decentralized = pytest.mark.parametrize("definition", [PROPOSED])
