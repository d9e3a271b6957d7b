from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.claims.ipamclaims.world import MACHINES, NADS, SHIPPED, SPEC_002, World
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock


@pytest.fixture
def definition() -> str:
    """The CRD of the test's cluster; tests that want the other one are parametrized with it."""
    return SHIPPED


@pytest.fixture
def fake(db: None, definition: str) -> Iterator[FakeCluster]:
    with FakeCluster() as running:
        running.crds(definition, MACHINES, NADS)
        yield running


@pytest.fixture
def world(fake: FakeCluster) -> World:
    """The register answers."""
    return World(fake)


@pytest.fixture
def observed(fake: FakeCluster) -> World:
    """Nothing is written to the cluster."""
    return World(fake, duty=False)


@pytest.fixture
def clock(db: None) -> Clock:
    return Clock()


both = pytest.mark.parametrize("definition", [SHIPPED, SPEC_002])
decentralized = pytest.mark.parametrize("definition", [SPEC_002])
