"""Rule `restored-register-waits`: what a cluster uses that is ahead of the register is recorded, not given.

A savepoint is the backup, its roll-back the restore: every row is as it was, also those of the engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from django.db import transaction

from pools.cilium.ciliumnodes import CiliumNodes
from pools.clusters.reconcile import leases, watch_events, watchers
from pools.models import Connection
from tests import factories
from tests.handlers.cilium_world import CiliumWorld
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

A = "10.0.0.0/21"


@pytest.fixture(params=[False, True], ids=["observed", "with the managed resource"])
def world(fake: FakeCluster, request: pytest.FixtureRequest) -> CiliumWorld:
    world = CiliumWorld(fake, managed_resource=request.param)
    world.cidrs("a", A)
    world.node("n1", demands={"a": 8}, lists={"a": ["10.0.0.0/24"]})
    world.follow_node("n2", demands={"a": 8}, lists={"a": ["10.0.1.0/24"]})
    assert world.held() == {"10.0.0.0/24": "n1", "10.0.1.0/24": "n2"}
    return world


@contextlib.contextmanager
def lost(world: CiliumWorld) -> Iterator[None]:
    """What the register learns inside it forgets at the end; the cluster does not."""
    backup = transaction.savepoint()
    yield
    world.passed()
    transaction.savepoint_rollback(backup)
    world.restarted()
    world.connection.refresh_from_db()


def _settled(world: CiliumWorld) -> None:
    """No block twice, the register and the cluster at one, and nothing left to do."""
    for _ in range(2):
        world.passed()
        assert world.listed() == world.held()
    world.fake.log.clear()
    world.passed()
    assert not world.fake.log.writes
    assert not world.subjects_by_code()


def test_what_was_handed_out_since_is_recorded_and_not_given_again(world: CiliumWorld) -> None:
    with lost(world):
        world.node("n3", lists={"a": ["10.0.2.0/24", "10.0.3.0/24"]})
    assert len(world.held()) == 2
    world.follow_node("n4", demands={"a": 8})
    assert world.listed().items() >= {"10.0.2.0/24": "n3", "10.0.3.0/24": "n3"}.items()
    _settled(world)
    # Nor to anybody else.
    drained = factories.drain(world.cluster.pools.get())
    assert not {"10.0.2.0/24", "10.0.3.0/24"} & set(drained)


def test_a_block_that_moved_to_another_node(world: CiliumWorld) -> None:
    """The register has it for the first one, which gave it back long ago."""
    with lost(world):
        world.follow_node("n1", demands={"a": 8}, lists={"a": ["10.0.4.0/24"]})
        world.node("n3", demands={"a": 8}, lists={"a": ["10.0.0.0/24"]})
    world.node("n4", demands={"a": 8})
    _settled(world)
    assert world.held()["10.0.0.0/24"] == "n3"
    assert world.held()["10.0.4.0/24"] == "n1"


def test_nodes_that_came_and_went(world: CiliumWorld, clock: Clock) -> None:
    with lost(world):
        world.fake.remove("ciliumnodes", "n1")
        world.fake.remove("ciliumnodes", "n2")
        world.node("n2", demands={"a": 8}, lists={"a": ["10.0.0.0/24"]})
    world.passed()
    clock.advance(60)
    _settled(world)
    assert set(world.held().values()) == {"n2"}


def test_pools_that_changed_since(world: CiliumWorld) -> None:
    with lost(world):
        world.cidrs("a", A, "10.7.0.0/21")
        world.cidrs("b", "10.8.0.0/21")
        world.node("n3", demands={"b": 8}, lists={"a": ["10.7.0.0/24"], "b": ["10.8.0.0/24"]})
    assert world.names() == ["a"]
    world.node("n4", demands={"b": 8})
    _settled(world)
    assert world.names() == ["a", "b"]
    assert world.held().items() >= {"10.7.0.0/24": "n3", "10.8.0.0/24": "n3"}.items()


def test_the_watch_goes_on_from_the_older_position(world: CiliumWorld) -> None:
    """Its events are those that the register forgot: told before anybody is served."""
    world.connection.refresh_from_db()
    position = watchers.read(world.connection.positions, CiliumNodes.kind)
    with lost(world):
        world.node("n3", lists={"a": ["10.0.2.0/24"]})
    assert position is not None
    assert watchers.is_current(world.connection.pk, CiliumNodes.kind, position)
    asks = world.node("n4", demands={"a": 8})
    with gateways.to(world.fake) as gateway:
        stream = [*gateway.watch(world.handler.resources[0], position.version, seconds=1)]
    events = [(event.type, event.object) for event in stream if event.type != "BOOKMARK"]
    assert [manifest["metadata"]["name"] for _, manifest in events] == ["n3", "n4"]
    assert world.tell(*events).succeeded
    assert world.held()["10.0.2.0/24"] == "n3"
    assert "10.0.2.0/24" not in world.lists(asks["metadata"]["name"])
    world.listed()
    _settled(world)


def test_when_the_older_position_is_gone_the_nodes_are_listed_first(world: CiliumWorld) -> None:
    world.connection.refresh_from_db()
    position = watchers.read(world.connection.positions, CiliumNodes.kind)
    assert position is not None
    with lost(world):
        world.node("n3", lists={"a": ["10.0.2.0/24"]})
    # What the watcher does after a 410.
    assert watchers.move(world.connection.pk, CiliumNodes.kind, position, None)
    asks = world.node("n4", demands={"a": 8})
    lease = leases.borrow(world.connection.pk, "watcher")
    assert lease is not None
    run = watch_events.ingest_events(
        lease, [world.handler], CiliumNodes.kind, [("ADDED", asks)], position=position, to=position
    )
    assert run.error_code == watch_events.OVERTAKEN
    assert world.lists("n4") == []
    _settled(world)


@pytest.mark.parametrize("world", [True], ids=["with the managed resource"], indirect=True)
def test_a_block_that_was_about_to_be_told(world: CiliumWorld) -> None:
    """The backup is of the moment between our transaction and our write: another node has it now."""
    asks = world.node("n3", demands={"a": 8})
    world.fake.faults.add(verb="update", path="ciliumnodes/n3", status=503, times=None)
    assert not world.run().succeeded
    (waiting,) = [cidr for cidr, node in world.held().items() if node == "n3"]
    world.fake.faults.clear()
    with lost(world):
        world.passed()
        assert world.lists("n3") == [waiting]
        world.fake.remove("ciliumnodes", "n3")
        world.tell(("DELETED", asks))
        world.node("n4", demands={"a": 8}, lists={"a": [waiting]})
        world.node("n3", demands={"a": 8}, lists={"a": ["10.0.7.0/24"]})
    assert Connection.objects.get(pk=world.connection.pk).positions
    _settled(world)
    assert world.held()[waiting] == "n4"
