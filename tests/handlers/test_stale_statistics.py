"""Rule `nothing-enumerates-a-network` of nodes, whatever the planner knows of their cluster."""

import pytest

from pools.clusters.reconcile import registry
from tests import stale
from tests.handlers.node_world import World
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

NODES = 1500
TIMES = 40  # that a row may be read


@pytest.fixture
def world(fake: FakeCluster, clock: Clock) -> World:
    stale.another_cluster("CiliumNode")
    world = World(fake)
    world.pool("a", "10.0.0.0/12")
    for n in range(NODES):
        world.node(f"n{n}", lists={"a": [f"10.{n // 256}.{n % 256}.0/24"]})
    return world


def _pass(world: World) -> dict[str, int]:
    """A pass of all handlers; what it read, by table."""
    before = stale.read()
    record = world.sync(*registry.HANDLERS)
    assert record.kinds["CiliumNode"]["seen"] == NODES
    assert not record.kinds["CiliumNode"]["failed"]
    return stale.since(before)


def test_first_and_later_passes(world: World, clock: Clock) -> None:
    for turn in range(3):
        read = _pass(world)
        assert sum(read.values()) < TIMES * NODES, (turn, read)
        clock.advance(3600)
    assert len(world.held()) == NODES
    for n in range(0, NODES, 2):
        world.fake.remove("ciliumnodes", f"n{n}")
    for turn in range(3):
        read = _pass_without(world)
        assert sum(read.values()) < TIMES * NODES, (turn, read)
        clock.advance(3600)


def _pass_without(world: World) -> dict[str, int]:
    before = stale.read()
    world.passed()
    return stale.since(before)
