"""Nodes that go, and the finalizers that keep them."""

import json
from collections.abc import Sequence

import pytest

from pools.cilium.ciliumnodes import CiliumNodes
from pools.clusters.reconcile.handler import SyncContext
from pools.models import Block, Connection, Event, ObservedObject
from tests.handlers.node_world import World, manifest
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

NODES = "ciliumnodes"


@pytest.fixture
def world(fake: FakeCluster) -> World:
    world = World(fake)
    world.pool("a", "10.0.0.0/22")
    world.follow_node("n1", lists={"a": ["10.0.0.0/24", "10.0.1.0/24"]})
    return world


def test_two_lists_without_a_node_are_its_end(world: World, clock: Clock) -> None:
    world.fake.remove(NODES, "n1")
    world.passed()
    assert len(world.held()) == 2
    clock.advance(31)
    world.passed()
    assert world.held() == {}


def test_a_deletion_that_was_told_is_its_end(world: World) -> None:
    last = world.fake.object(NODES, "n1")
    world.fake.remove(NODES, "n1")
    world.tell(("DELETED", last))
    assert world.held() == {}


@pytest.mark.sample(7)
@pytest.mark.parametrize("status", [401, 403, 404, 410, 429, 500, 503])
def test_a_list_that_failed_is_not_an_empty_one(world: World, clock: Clock, status: int) -> None:
    world.fake.remove(NODES, "n1")
    world.fake.faults.add(verb="list", path=NODES, status=status, times=None)
    for _ in range(3):
        world.run()
        clock.advance(600)
    assert len(world.held()) == 2


def test_a_node_of_the_same_name_keeps_what_it_lists(world: World, clock: Clock) -> None:
    """whereabouts#176: the same name, another uid."""
    world.fake.remove(NODES, "n1")
    world.follow_node("n1", lists={"a": ["10.0.0.0/24"]})
    clock.advance(31)
    world.passed()
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}
    assert Block.objects.get(state="held").holder_uid == world.observed_node().uid
    assert not world.subjects_by_code()


def test_the_end_of_the_old_object_takes_nothing_from_the_new_one(world: World) -> None:
    old = world.fake.object(NODES, "n1")
    world.fake.remove(NODES, "n1")
    new = world.node("n1", lists={"a": ["10.0.1.0/24", "10.0.2.0/24"]})
    world.tell(("DELETED", old), ("ADDED", new))
    assert world.held() == {"10.0.1.0/24": "n1", "10.0.2.0/24": "n1"}


@pytest.mark.exhaustive
def test_an_old_event_releases_nothing(world: World) -> None:
    """A watch may tell of a version that is older than what was written since."""
    before = world.fake.object(NODES, "n1")
    world.follow_node("n1", lists={"a": ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]})
    assert len(world.held()) == 3
    world.tell(("MODIFIED", before))
    assert len(world.held()) == 3
    world.passed()
    assert len(world.held()) == 3


def test_what_a_watch_tells_twice_of_a_release_is_asked_and_done(world: World) -> None:
    now = world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.tell(("MODIFIED", now), ("MODIFIED", now))
    assert world.held() == {"10.0.0.0/24": "n1"}


def test_when_it_cannot_be_asked_nothing_is_released(world: World) -> None:
    now = world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.fake.faults.add(verb="get", path=NODES, status=503, times=None)
    assert not world.tell(("MODIFIED", now)).succeeded
    assert len(world.held()) == 2
    world.fake.faults.clear()
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}


def test_a_node_that_cannot_be_understood_keeps_what_it_has(world: World) -> None:
    world.fake.faults.add(verb="list", path=NODES, body=_garbled(world))
    world.node("n2", lists={"a": ["10.0.3.0/24"]})
    world.run()
    assert len(world.held()) == 2
    assert world.observed_node().problem_code
    world.passed()
    assert len(world.held()) == 3


def _garbled(world: World) -> bytes:
    version = {"resourceVersion": "99999"}
    listed = world.fake.object(NODES, "n1")
    listed["spec"]["ipam"]["pools"]["allocated"][0]["cidrs"] = ["10.0.0.0/99"]
    listed["metadata"] |= version
    answer = {"apiVersion": "cilium.io/v2", "kind": "CiliumNodeList", "metadata": version}
    return json.dumps(answer | {"items": [listed]}).encode()


# --- Point 10: a node that is being deleted keeps its blocks until it is gone; then they go, once
#
# The finalizers are other people's: the register has none of its own on nodes, so that what it does at
# an object's end is release, then forget the object, in one transaction.
THEIRS = ["example.org/theirs"]


class Crash(BaseException):
    """The process ends here."""


class Crashing(CiliumNodes):
    """Ends after the blocks were released, and before the object was forgotten."""

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        super().forget(context, rows)
        raise Crash


@pytest.fixture(params=[False, True], ids=["observed", "with the managed resource"])
def ending(fake: FakeCluster, request: pytest.FixtureRequest) -> World:
    """A node that somebody has deleted, and that a finalizer keeps."""
    ending = World(fake, managed_resource=request.param)
    ending.pool("a", "10.0.0.0/22")
    node = manifest("n1", lists={"a": ["10.0.0.0/24"]})
    node["metadata"]["finalizers"] = THEIRS
    fake.put(node, manager="cilium-agent")
    ending.passed()
    with gateways.to(fake) as gateway:
        stored = fake.object(NODES, "n1")["metadata"]
        gateway.delete(gateways.NODES, "n1", uid=stored["uid"])
    assert fake.object(NODES, "n1")["metadata"]["deletionTimestamp"]
    return ending


@pytest.mark.exhaustive
def test_it_keeps_its_blocks_while_it_is_there(ending: World, clock: Clock) -> None:
    ending.fake.log.clear()
    for _ in range(3):
        ending.passed()
        clock.advance(600)
    assert ending.held() == {"10.0.0.0/24": "n1"}
    stored = ending.fake.object(NODES, "n1")
    assert stored["metadata"]["finalizers"] == THEIRS
    assert not ending.fake.log.writes
    ending.fake.remove(NODES, "n1")  # its owner takes the finalizer away
    ending.passed()
    clock.advance(60)
    ending.passed()
    assert ending.held() == {}


@pytest.mark.sample(2)
def test_what_a_watch_tells(ending: World) -> None:
    """MODIFIED when it is deleted, DELETED when it is gone."""
    last = ending.fake.object(NODES, "n1")
    ending.tell(("MODIFIED", last))
    assert ending.held() == {"10.0.0.0/24": "n1"}
    ending.fake.remove(NODES, "n1")  # its owner takes the finalizer away
    ending.tell(("DELETED", last))
    assert (ending.held(), ObservedObject.objects.count()) == ({}, 0)


@pytest.mark.sample(2)
def test_a_crash_between_release_and_the_end(ending: World) -> None:
    last = ending.fake.object(NODES, "n1")
    ending.fake.remove(NODES, "n1")  # its owner takes the finalizer away
    ending.handler = Crashing()
    with pytest.raises(Crash):
        ending.tell(("DELETED", last))
    assert ending.held() == {"10.0.0.0/24": "n1"}, "neither was done"
    assert ending.observed_node().uid == last["metadata"]["uid"]
    Connection.objects.update(leased_until=None)
    ending.restarted()
    ending.tell(("DELETED", last), ("DELETED", last))
    assert (ending.held(), ObservedObject.objects.count()) == ({}, 0)
    ending.passed()
    assert Block.objects.get().state == "available"
    events = Event.objects.filter(cidr="10.0.0.0/24").order_by("id")
    assert list(events.values_list("type", flat=True)) == ["block.allocated", "released"]
