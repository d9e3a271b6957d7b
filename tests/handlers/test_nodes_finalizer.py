"""Point 10: a node that is being deleted keeps its blocks until it is gone; then they go, once.

The finalizers are other people's: the register has none of its own on nodes, so that what it does at
an object's end is release, then forget the object, in one transaction.
"""

from collections.abc import Sequence

import pytest

from pools.cilium.ciliumnodes import CiliumNodes
from pools.clusters.reconcile.handler import SyncContext
from pools.models import Block, Connection, Event, ObservedObject
from tests.handlers.node_world import World, manifest
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

THEIRS = ["example.org/theirs"]
NODES = "ciliumnodes"


class Crash(BaseException):
    """The process ends here."""


class Crashing(CiliumNodes):
    """Ends after the blocks were released, and before the object was forgotten."""

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        super().forget(context, rows)
        raise Crash


@pytest.fixture(params=[False, True], ids=["observed", "with the managed resource"])
def world(fake: FakeCluster, request: pytest.FixtureRequest) -> World:
    """A node that somebody has deleted, and that a finalizer keeps."""
    world = World(fake, managed_resource=request.param)
    world.pool("a", "10.0.0.0/22")
    node = manifest("n1", lists={"a": ["10.0.0.0/24"]})
    node["metadata"]["finalizers"] = THEIRS
    fake.put(node, manager="cilium-agent")
    world.passed()
    with gateways.to(fake) as gateway:
        stored = fake.object(NODES, "n1")["metadata"]
        gateway.delete(gateways.NODES, "n1", uid=stored["uid"])
    assert fake.object(NODES, "n1")["metadata"]["deletionTimestamp"]
    return world


def _gone(world: World) -> None:
    """Its owner takes the finalizer away."""
    world.fake.remove(NODES, "n1")


@pytest.mark.exhaustive
def test_it_keeps_its_blocks_while_it_is_there(world: World, clock: Clock) -> None:
    world.fake.log.clear()
    for _ in range(3):
        world.passed()
        clock.advance(600)
    assert world.held() == {"10.0.0.0/24": "n1"}
    stored = world.fake.object(NODES, "n1")
    assert stored["metadata"]["finalizers"] == THEIRS
    assert not world.fake.log.writes
    _gone(world)
    world.passed()
    clock.advance(60)
    world.passed()
    assert world.held() == {}


@pytest.mark.sample(2)
def test_what_a_watch_tells(world: World) -> None:
    """MODIFIED when it is deleted, DELETED when it is gone."""
    last = world.fake.object(NODES, "n1")
    world.tell(("MODIFIED", last))
    assert world.held() == {"10.0.0.0/24": "n1"}
    _gone(world)
    world.tell(("DELETED", last))
    assert (world.held(), ObservedObject.objects.count()) == ({}, 0)


@pytest.mark.sample(2)
def test_a_crash_between_release_and_the_end(world: World) -> None:
    last = world.fake.object(NODES, "n1")
    _gone(world)
    world.handler = Crashing()
    with pytest.raises(Crash):
        world.tell(("DELETED", last))
    assert world.held() == {"10.0.0.0/24": "n1"}, "neither was done"
    assert world.observed_node().uid == last["metadata"]["uid"]
    Connection.objects.update(leased_until=None)
    world.restarted()
    world.tell(("DELETED", last), ("DELETED", last))
    assert (world.held(), ObservedObject.objects.count()) == ({}, 0)
    world.passed()
    assert Block.objects.get().state == "available"
    events = Event.objects.filter(cidr="10.0.0.0/24").order_by("id")
    assert list(events.values_list("type", flat=True)) == ["block.allocated", "released"]
