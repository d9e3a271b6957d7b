"""Nothing is handed out before everything in use is known (cilium/cilium#21482)."""

import pytest

from pools.cilium.ciliumnodes import CiliumNodes
from pools.clusters.reconcile import leases, watch_events, watchers
from pools.models import Connection, Mode, Now, ObservedObject
from tests.handlers.node_world import MANAGED_RESOURCES, World
from tests.kube.fake import FakeCluster


@pytest.fixture
def world(fake: FakeCluster) -> World:
    world = World(fake, managed_resource=True)
    world.pool("a", "10.0.0.0/22")
    return world


def test_a_first_pass_hands_out_nothing_that_the_last_node_lists(world: World) -> None:
    world.node("n1", demands={"a": 300})
    world.node("n2", lists={"a": ["10.0.0.0/24", "10.0.2.0/24"]})
    world.passed()
    assert world.lists("n1") == ["10.0.1.0/24", "10.0.3.0/24"]


def test_a_process_that_started_goes_on_from_what_the_register_knows(world: World) -> None:
    world.node("n2", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    world.restarted()
    asking = world.node("n1", demands={"a": 8})
    assert world.tell(("ADDED", asking)).succeeded
    assert world.lists("n1") == ["10.0.1.0/24"]


def test_nobody_is_served_by_events_that_do_not_follow_a_list(world: World) -> None:
    """After a 410 the kind has no position until it was listed again."""
    world.passed()
    world.connection.refresh_from_db()
    position = watchers.read(world.connection.positions, CiliumNodes.kind)
    assert position is not None
    assert watchers.move(world.connection.pk, CiliumNodes.kind, position, None)
    asking = world.node("n1", demands={"a": 8})
    lease = leases.borrow(world.connection.pk, "watcher")
    assert lease is not None
    run = watch_events.ingest_events(
        lease,
        [world.handler],
        CiliumNodes.kind,
        [("ADDED", asking)],
        position=position,
        to=position,
    )
    assert run.error_code == watch_events.OVERTAKEN
    assert world.lists("n1") == []
    world.passed()
    assert world.lists("n1") == ["10.0.0.0/24"]


def test_what_another_operator_did_meanwhile_is_told_first(world: World) -> None:
    world.passed()
    Connection.objects.update(mode=Mode.OBSERVED, managed_resources=[])
    theirs = world.node("n2", lists={"a": ["10.0.0.0/24"]})
    Connection.objects.update(mode=Mode.MANAGED, managed_resources=MANAGED_RESOURCES)
    asking = world.node("n1", demands={"a": 8})
    assert world.tell(("ADDED", theirs), ("ADDED", asking)).succeeded
    assert world.lists("n1") == ["10.0.1.0/24"]


def test_next_fit_goes_on_in_another_process(world: World) -> None:
    world.node("n1", demands={"a": 8})
    world.passed()
    assert world.lists("n1") == ["10.0.0.0/24"]
    world.fake.remove("ciliumnodes", "n1")
    world.restarted()
    world.node("n3", demands={"a": 8})
    world.passed()
    assert world.lists("n3") == ["10.0.1.0/24"]


def test_a_list_that_failed_makes_nobody_ready(world: World) -> None:
    world.node("n1", demands={"a": 8})
    world.fake.faults.add(verb="list", path="ciliumnodes", status=503, times=None)
    world.run()
    assert world.held() == {}
    world.fake.faults.clear()
    world.passed()
    assert len(world.held()) == 1


def test_nor_is_anybody_served_while_the_pools_cannot_be_listed(world: World) -> None:
    ObservedObject.objects.create(
        cluster=world.cluster, kind="CiliumPodIPPool", name="a", uid="u", manifest={},
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    world.node("n1", demands={"a": 8, "b": 8})
    world.passed()
    assert world.lists("n1") == []
    assert world.error("n1") == ""


@pytest.mark.exhaustive
def test_cold_start_with_many_nodes(world: World) -> None:
    world.pool("b", "10.8.0.0/14")
    for number in range(700):
        world.node(f"n{number}", demands={"b": 8})
    world.passed()
    held = world.held()
    assert len(held) == len(set(held.values())) == 700
    world.fake.log.clear()
    world.passed()
    assert not world.fake.log.writes
