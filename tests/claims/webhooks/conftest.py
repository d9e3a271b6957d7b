"""The door of the mutating webhook for pods, before a network with an entry for the VM of `pod()`."""

import pytest

from claims.models import IPPool
from tests.claims import worlds
from tests.claims.webhooks.doors import Door, world
from tests.core.vm_world import MAC


@pytest.fixture
def pool(db: None) -> IPPool:
    result = world()
    worlds.entry(result, MAC, "10.0.0.5/16", vm="vm-server", namespace="blue")
    return result


@pytest.fixture
def door(pool: IPPool) -> Door:
    return Door(pool.cluster)
