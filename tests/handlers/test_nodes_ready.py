"""Nothing is handed out before everything in use is known (cilium/cilium#21482)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pools.models import Connection, ObservedObject
from pools.models.connections import Mode
from pools.models.fields import Now
from tests.handlers.node_world import DUTY, World

if TYPE_CHECKING:
    from tests.kube.fake import FakeCluster


@pytest.fixture
def world(fake: FakeCluster) -> World:
    world = World(fake, duty=True)
    world.pool("a", "10.0.0.0/22")
    return world


def test_r5_a_first_pass_hands_out_nothing_that_the_last_node_lists(world: World) -> None:
    world.node("n1", wants={"a": 300})
    world.node("n2", lists={"a": ["10.0.0.0/24", "10.0.2.0/24"]})
    world.passed()
    assert world.lists("n1") == ["10.0.1.0/24", "10.0.3.0/24"]


def test_r5_a_process_that_started_serves_nobody_before_its_first_list(world: World) -> None:
    world.passed()
    world.restarted()
    # Since then somebody else handed out what the register takes for free.
    world.node("n2", lists={"a": ["10.0.0.0/24"]})
    asking = world.node("n1", wants={"a": 8})
    assert world.tell(("ADDED", asking)).succeeded
    assert world.lists("n1") == []
    assert world.error("n1") == ""
    world.passed()
    assert world.lists("n1") == ["10.0.1.0/24"]
    more = world.node("n3", wants={"a": 8})
    assert world.tell(("ADDED", more)).succeeded
    assert world.lists("n3") == ["10.0.2.0/24"]


def test_r5_nor_after_the_duty_was_given_back_and_taken(world: World) -> None:
    """Meanwhile another operator may have handed out blocks of which no event came yet."""
    world.passed()
    Connection.objects.update(mode=Mode.OBSERVED, duties=[])
    Connection.objects.update(mode=Mode.MANAGED, duties=DUTY)
    asking = world.node("n1", wants={"a": 8})
    assert world.tell(("ADDED", asking)).succeeded
    assert world.lists("n1") == []
    world.passed()
    assert world.lists("n1") == ["10.0.0.0/24"]


def test_r5_a_list_that_failed_makes_nobody_ready(world: World) -> None:
    world.node("n1", wants={"a": 8})
    world.fake.faults.add(verb="list", path="ciliumnodes", status=503, times=None)
    world.run()
    assert world.held() == {}
    world.fake.faults.clear()
    world.passed()
    assert len(world.held()) == 1


def test_r5_nor_is_anybody_served_while_the_pools_cannot_be_listed(world: World) -> None:
    ObservedObject.objects.create(
        cluster=world.cluster, kind="CiliumPodIPPool", name="a", uid="u", manifest={},
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    world.node("n1", wants={"a": 8, "b": 8})
    world.passed()
    assert world.lists("n1") == []
    assert world.error("n1") == ""


def test_1_cold_start_with_many_nodes(world: World) -> None:
    world.pool("b", "10.8.0.0/14")
    for number in range(700):
        world.node(f"n{number}", wants={"b": 8})
    world.passed()
    held = world.held()
    assert len(held) == len(set(held.values())) == 700
    world.fake.log.clear()
    world.passed()
    assert not world.fake.log.writes
