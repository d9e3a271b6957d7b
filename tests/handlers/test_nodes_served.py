"""Nodes that are served: when they are ready, and with what."""

import pytest

from pools.cilium.ciliumnodes import CiliumNodes
from pools.clusters.reconcile import leases, watch_events, watchers
from pools.models import Block, Connection, Mode, Now, ObservedObject
from tests.handlers.node_world import MANAGED_RESOURCES, World
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

NODES = "ciliumnodes"


@pytest.fixture
def world(fake: FakeCluster) -> World:
    return World(fake, managed_resource=True)


def _converged(world: World) -> None:
    """The pass after this one writes nothing (rule `reconcile-converges`)."""
    world.passed()
    before = list(Block.objects.order_by("pk").values())
    world.fake.log.clear()
    world.passed()
    assert not world.fake.log.writes
    assert list(Block.objects.order_by("pk").values()) == before


def test_a_node_gets_what_it_lacks(world: World) -> None:
    world.pool("a", "10.0.0.0/22")
    world.follow_node("n1", demands={"a": 300})
    assert world.lists() == ["10.0.0.0/24", "10.0.1.0/24"]
    assert world.held() == {"10.0.0.0/24": "n1", "10.0.1.0/24": "n1"}
    uids = Block.objects.filter(state="held").values_list("holder_uid", flat=True)
    assert {*uids} == {world.observed_node().uid}
    _converged(world)


def test_nodes_get_different_blocks_and_keep_what_they_have(world: World) -> None:
    world.pool("a", "10.0.0.0/22")
    world.node("n1", demands={"a": 8}, lists={"a": ["10.0.1.0/24"]})
    world.node("n2", demands={"a": 8})
    world.follow_node("n3", demands={"a": 500})
    assert world.lists("n1") == ["10.0.1.0/24"]
    assert world.lists("n2") == ["10.0.0.0/24"]
    assert world.lists("n3") == ["10.0.2.0/24", "10.0.3.0/24"]


def test_nothing_of_the_object_but_allocated_is_touched(world: World) -> None:
    world.pool("a", "10.0.0.0/22")
    before = world.node("n1", demands={"a": 8})
    before["spec"]["encryption"] = {"key": 7}
    before["spec"]["ipam"]["podCIDRs"] = ["10.200.0.0/24"]
    before = world.fake.put(before, manager="cilium-agent")
    world.passed()
    after = world.fake.object(NODES, "n1")
    (entry,) = after["spec"]["ipam"]["pools"].pop("allocated")
    assert entry == {"pool": "a", "cidrs": ["10.0.0.0/24"]}
    assert after["spec"] == before["spec"]


def test_without_the_managed_resource_nothing_is_handed_out(fake: FakeCluster) -> None:
    world = World(fake)
    world.pool("a", "10.0.0.0/22")
    world.follow_node("n1", demands={"a": 300})
    assert world.held() == {}
    assert not fake.log.writes
    # Switched on later, an object that did not change since is served.
    Connection.objects.update(mode=Mode.MANAGED, managed_resources=MANAGED_RESOURCES)
    world.passed()
    assert len(world.lists()) == 2


@pytest.mark.exhaustive
def test_partial_success_and_the_error_in_the_nodes_status(world: World) -> None:
    world.pool("a", "10.0.0.0/24")
    world.follow_node("n1", demands={"a": 300, "b": 1})
    assert world.lists() == ["10.0.0.0/24"]
    assert world.error() == (
        "ipam-multi-pool-sync allocation failed: "
        'failed to allocate ipv4 address for node "n1" from pool "a": pool empty\n'
        'failed to allocate ipv4 address for node "n1" from pool "b": '
        "cannot allocate from non-existing pool: b"
    )
    _converged(world)
    _writers(world)
    world.add_cidr("10.1.0.0/24")
    world.pool("b", "10.2.0.0/24")
    world.passed()
    assert world.error() == ""
    assert world.lists() == ["10.0.0.0/24", "10.1.0.0/24"]
    assert world.lists(pool="b") == ["10.2.0.0/24"]
    _converged(world)


def _writers(world: World) -> None:
    entries = world.fake.object(NODES, "n1")["metadata"]["managedFields"]
    ours = {(entry["manager"], entry.get("subresource", "")) for entry in entries}
    assert {("cadastre", ""), ("cadastre-status", "status")} <= ours


def test_what_the_agent_removes_is_released(world: World) -> None:
    world.pool("a", "10.0.0.0/22")
    world.follow_node("n1", demands={"a": 300})
    world.follow_node("n1", demands={"a": 8}, lists={"a": ["10.0.1.0/24"]})
    assert world.held() == {"10.0.1.0/24": "n1"}
    assert world.lists() == ["10.0.1.0/24"]
    _converged(world)


def test_a_released_block_cools_before_another_gets_it(world: World, clock: Clock) -> None:
    world.pool("a", "10.0.0.0/24", cooldown=600)
    world.follow_node("n1", demands={"a": 8})
    world.node("n1")
    world.follow_node("n2", demands={"a": 8})
    assert world.lists("n2") == []
    assert world.error("n2").endswith("pool empty")
    clock.advance(601)
    world.passed()
    assert world.lists("n2") == ["10.0.0.0/24"]
    assert world.error("n2") == ""


def test_a_node_that_was_told_of_is_served_at_once(world: World) -> None:
    world.pool("a", "10.0.0.0/22")
    world.passed()
    new = world.node("n1", demands={"a": 8})
    assert world.tell(("ADDED", new)).succeeded
    assert world.lists() == ["10.0.0.0/24"]


def test_reserved_blocks_are_not_handed_out(world: World) -> None:
    world.pool("a", "10.0.0.0/22", reserved=["10.0.0.10-10.0.1.20"])
    world.follow_node("n1", demands={"a": 2000})
    assert world.lists() == ["10.0.2.0/24", "10.0.3.0/24"]


def test_a_dry_run_says_what_it_would_do(world: World) -> None:
    world.pool("a", "10.0.0.0/22")
    world.node("n1", demands={"a": 8})
    record = world.run(dry=True)
    (planned,) = record.kinds["CiliumNode"]["plan"]
    assert "10.0.0.0/24" in str(planned)
    assert world.held() == {}
    assert not world.fake.log.writes
    # Nor is anything concluded from it: what it saw is not in the register.
    world.connection.refresh_from_db()
    assert not world.connection.positions


@pytest.mark.exhaustive
@pytest.mark.parametrize("needed", [(1 << 63) - 1, 10**6])
def test_a_node_that_asks_for_everything_gets_so_much_at_once(world: World, needed: int) -> None:
    world.pool("a", "fd00::/96", mask=112)
    world.node("n1", demands={"a": {6: needed}})
    world.node("n2", demands={"a": {6: 10}})
    world.passed()
    everything = needed > 10**7
    assert len(world.lists()) == (256 if everything else 16)
    assert world.error().endswith("more than 256 blocks at once") is everything
    assert everything or world.error() == ""
    assert len(world.lists("n2")) == 1


# --- Nothing is handed out before everything in use is known (cilium/cilium#21482) ----------------
@pytest.fixture
def pool_world(fake: FakeCluster) -> World:
    pool_world = World(fake, managed_resource=True)
    pool_world.pool("a", "10.0.0.0/22")
    return pool_world


def test_a_first_pass_hands_out_nothing_that_the_last_node_lists(pool_world: World) -> None:
    pool_world.node("n1", demands={"a": 300})
    pool_world.follow_node("n2", lists={"a": ["10.0.0.0/24", "10.0.2.0/24"]})
    assert pool_world.lists("n1") == ["10.0.1.0/24", "10.0.3.0/24"]


def test_a_process_that_started_goes_on_from_what_the_register_knows(pool_world: World) -> None:
    pool_world.follow_node("n2", lists={"a": ["10.0.0.0/24"]})
    pool_world.restarted()
    asking = pool_world.node("n1", demands={"a": 8})
    assert pool_world.tell(("ADDED", asking)).succeeded
    assert pool_world.lists("n1") == ["10.0.1.0/24"]


def test_nobody_is_served_by_events_that_do_not_follow_a_list(pool_world: World) -> None:
    """After a 410 the kind has no position until it was listed again."""
    pool_world.passed()
    pool_world.connection.refresh_from_db()
    position = watchers.read(pool_world.connection.positions, CiliumNodes.kind)
    assert position is not None
    assert watchers.move(pool_world.connection.pk, CiliumNodes.kind, position, None)
    asking = pool_world.node("n1", demands={"a": 8})
    lease = leases.borrow(pool_world.connection.pk, "watcher")
    assert lease is not None
    place = {"position": position, "to": position}
    events = [("ADDED", asking)]
    run = watch_events.ingest_events(lease, [pool_world.handler], CiliumNodes.kind, events, **place)
    assert run.error_code == watch_events.OVERTAKEN
    assert pool_world.lists("n1") == []
    pool_world.passed()
    assert pool_world.lists("n1") == ["10.0.0.0/24"]


def test_what_another_operator_did_meanwhile_is_told_first(pool_world: World) -> None:
    pool_world.passed()
    Connection.objects.update(mode=Mode.OBSERVED, managed_resources=[])
    theirs = pool_world.node("n2", lists={"a": ["10.0.0.0/24"]})
    Connection.objects.update(mode=Mode.MANAGED, managed_resources=MANAGED_RESOURCES)
    asking = pool_world.node("n1", demands={"a": 8})
    assert pool_world.tell(("ADDED", theirs), ("ADDED", asking)).succeeded
    assert pool_world.lists("n1") == ["10.0.1.0/24"]


def test_next_fit_goes_on_in_another_process(pool_world: World) -> None:
    pool_world.follow_node("n1", demands={"a": 8})
    assert pool_world.lists("n1") == ["10.0.0.0/24"]
    pool_world.fake.remove("ciliumnodes", "n1")
    pool_world.restarted()
    pool_world.follow_node("n3", demands={"a": 8})
    assert pool_world.lists("n3") == ["10.0.1.0/24"]


def test_a_list_that_failed_makes_nobody_ready(pool_world: World) -> None:
    pool_world.node("n1", demands={"a": 8})
    pool_world.fake.faults.add(verb="list", path="ciliumnodes", status=503, times=None)
    pool_world.run()
    assert pool_world.held() == {}
    pool_world.fake.faults.clear()
    pool_world.passed()
    assert len(pool_world.held()) == 1


def test_nor_is_anybody_served_while_the_pools_cannot_be_listed(pool_world: World) -> None:
    ObservedObject.objects.create(
        cluster=pool_world.cluster, kind="CiliumPodIPPool", name="a", uid="u", manifest={},
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    pool_world.follow_node("n1", demands={"a": 8, "b": 8})
    assert pool_world.lists("n1") == []
    assert pool_world.error("n1") == ""


@pytest.mark.exhaustive
def test_cold_start_with_many_nodes(pool_world: World) -> None:
    pool_world.pool("b", "10.8.0.0/14")
    for number in range(700):
        pool_world.node(f"n{number}", demands={"b": 8})
    pool_world.passed()
    held = pool_world.held()
    assert len(held) == len(set(held.values())) == 700
    pool_world.fake.log.clear()
    pool_world.passed()
    assert not pool_world.fake.log.writes
