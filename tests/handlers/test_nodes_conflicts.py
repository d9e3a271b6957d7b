"""Nodes in conflict, their pages, nodes that migrate while they run, and clocks that differ."""

import copy
import datetime
import json
import time
from ipaddress import ip_network
from typing import Literal

import pytest
from django.utils import timezone

from pools.cilium import pod_cidrs
from pools.core import errors
from pools.models import Block, Now, ObservedObject, PoolCIDR
from pools.register.allocator import allocation
from tests import factories
from tests.handlers.node_world import World, manifest
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

NODES = "ciliumnodes"
ONE = r"ciliumnodes/n1\?"


@pytest.fixture
def managed(fake: FakeCluster) -> World:
    managed = World(fake, managed_resource=True)
    managed.pool("a", "10.0.0.0/21")
    return managed


@pytest.mark.exhaustive
def test_what_the_agent_wrote_meanwhile_is_kept(managed: World) -> None:
    """A 409: the object is read again, and what to write worked out anew."""
    managed.node("n1", demands={"a": 600}, lists={"a": ["10.0.3.0/24", "10.0.4.0/24"]})

    def agent() -> None:
        managed.node("n1", demands={"a": 700}, lists={"a": ["10.0.3.0/24"]})

    managed.fake.faults.add(verb="update", path=ONE, call=agent)
    managed.passed()
    assert managed.lists() == ["10.0.0.0/24", "10.0.3.0/24"]
    requested = managed.fake.object(NODES, "n1")["spec"]["ipam"]["pools"]["requested"]
    assert requested == [{"pool": "a", "needed": {"ipv4-addrs": 700}}]
    managed.passed()
    assert managed.lists() == ["10.0.0.0/24", "10.0.1.0/24", "10.0.3.0/24"]
    assert set(managed.held().values()) == {"n1"}
    assert len(managed.held()) == 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("effect", ["cut", "lost"])
@pytest.mark.parametrize("restart", [False, True], ids=["same process", "another process"])
def test_a_write_that_failed_costs_no_second_block(
    managed: World, effect: Literal["cut", "lost"], restart: bool
) -> None:
    managed.node("n1", demands={"a": 8})
    # The first update is tried out.
    managed.fake.faults.add(verb="update", path=ONE, skip=1, effect=effect)
    assert not managed.run().succeeded
    assert managed.held() == {"10.0.0.0/24": "n1"}
    if restart:
        managed.restarted()
    managed.passed()
    assert managed.lists() == ["10.0.0.0/24"]
    assert managed.held() == {"10.0.0.0/24": "n1"}
    assert Block.objects.get(state="held").holder_uid == managed.observed_node().uid


def test_what_a_person_set_aside_for_a_node_is_given_to_it(managed: World) -> None:
    holder = factories.holder("n1", kind="node")
    factories.take(managed.cluster.pools.get(), holder, cidr="10.0.5.0/24")
    managed.follow_node("n1", demands={"a": 8})
    assert managed.lists() == ["10.0.5.0/24"]
    assert not managed.subjects_by_code()


def test_the_operator_takes_a_block_from_the_second_of_two_nodes(managed: World) -> None:
    managed.node("n1", lists={"a": ["10.0.0.0/24"]})
    managed.follow_node("n2", demands={"a": 8}, lists={"a": ["10.0.0.0/24"]})
    assert managed.lists("n1") == ["10.0.0.0/24"]
    assert managed.lists("n2") == ["10.0.1.0/24"]
    assert managed.error("n2") == (
        "ipam-multi-pool-sync allocation failed: unable to reuse from pool a: "
        "cidr 10.0.0.0/24 has already been allocated"
    )
    managed.passed()
    assert managed.error("n2") == ""
    assert not managed.subjects_by_code()


def test_nothing_is_taken_from_a_node_for_somebody_who_uses_it_not(managed: World) -> None:
    """That the register has it for another is no reason to take it from a node with pods."""
    pool = managed.cluster.pools.get()
    factories.take(pool, factories.holder("vm-1"), cidr="10.0.0.0/24")
    factories.take(pool, factories.holder("n9", kind="node"), cidr="10.0.1.0/24")
    managed.follow_node("n1", lists={"a": ["10.0.0.0/24", "10.0.1.0/24"]})
    assert managed.lists() == ["10.0.0.0/24", "10.0.1.0/24"]
    assert managed.subjects_by_code()["pod_cidr_overlap"] == ["10.0.0.0/24 n1", "10.0.1.0/24 n1"]


def test_an_orphan_stays_with_its_node_and_counts_for_nothing(managed: World) -> None:
    managed.follow_node("n1", demands={"a": 8}, lists={"a": ["10.9.0.0/24"], "b": ["10.8.0.0/24"]})
    assert managed.lists() == ["10.0.0.0/24", "10.9.0.0/24"]
    assert managed.lists(pool="b") == ["10.8.0.0/24"]
    assert managed.error() == (
        "ipam-multi-pool-sync allocation failed: unable to reuse from pool a: "
        "cidr 10.9.0.0/24 is not part of the requested pool\n"
        "unable to find pool b, prefix 10.8.0.0/24 is still allocated to the node "
        "but is marked as orphan"
    )
    managed.fake.log.clear()
    managed.passed()
    assert not managed.fake.log.writes


def test_a_cidr_that_the_pool_lost_serves_nobody(managed: World) -> None:
    """What a node has of it stays with the node, which gets others in its place."""
    managed.follow_node("n1", demands={"a": 8})
    PoolCIDR.objects.update(orphaned_at=Now())
    managed.add_cidr("10.1.0.0/23")
    managed.follow_node("n2", demands={"a": 8})
    assert managed.lists("n1") == ["10.0.0.0/24", "10.1.0.0/24"]
    assert managed.lists("n2") == ["10.1.1.0/24"]
    assert managed.subjects_by_code() == {"orphaned_pod_cidr": ["10.0.0.0/24 n1"]}
    PoolCIDR.objects.update(orphaned_at=None)
    managed.passed()
    assert managed.error("n1") == ""
    assert not managed.subjects_by_code()


def test_no_block_under_a_cidr_of_another_size_is_handed_out(managed: World) -> None:
    managed.node("n1", lists={"a": ["10.0.0.0/23"]})
    managed.follow_node("n2", demands={"a": 8}, lists={"a": ["10.0.2.128/25"]})
    assert managed.lists("n2") == ["10.0.2.128/25"]
    managed.follow_node("n2", demands={"a": 300}, lists={"a": ["10.0.2.128/25"]})
    assert managed.lists("n2") == ["10.0.2.128/25", "10.0.3.0/24"]


def test_what_newer_versions_keep_beside_the_cidrs_stays(managed: World) -> None:
    node = managed.node("n1", demands={"a": 300}, lists={"a": ["10.0.0.0/24"]})
    node["spec"]["ipam"]["pools"]["resourcepools"] = {"x": 1}
    managed.fake.put(node, manager="cilium-agent")
    stored = managed.fake.object(NODES, "n1")["spec"]
    managed.passed()
    after = managed.fake.object(NODES, "n1")["spec"]
    assert len(managed.lists()) == 2
    del stored["ipam"]["pools"]["allocated"], after["ipam"]["pools"]["allocated"]
    assert after == stored


def test_a_block_that_was_released_before_it_was_written_is_not_written(managed: World) -> None:
    managed.node("n1", demands={"a": 8})
    managed.fake.faults.add(verb="update", path=ONE, status=503, times=None)
    assert not managed.run().succeeded
    block = Block.objects.get(state="held")
    allocation.release(block.pk, None, author=factories.WITH_REASON, force=True)
    managed.node("n1")
    managed.fake.faults.clear()
    managed.passed()
    assert managed.lists() == []
    assert managed.held() == {}


def test_one_node_that_may_not_be_written_does_not_keep_others_waiting(managed: World) -> None:
    managed.node("n1", demands={"a": 8})
    managed.node("n2", demands={"a": 8})
    managed.fake.faults.add(verb="update", path=ONE, status=422, reason="Invalid", times=None)
    record = managed.run()
    assert record.kinds["CiliumNode"]["failed"]
    assert managed.lists("n1") == []
    assert len(managed.lists("n2")) == 1


# --- What pages say of nodes: what they ask for and have, and who is in the way of a migration ----
def test_a_node_with_what_it_asks_for_and_has(world: World) -> None:
    lists = {"a": ["10.0.0.0/24", "10.9.0.0/24"]}
    world.follow_node("n1", demands={"a": {4: 600, 6: 5}, "x": 1}, lists=lists)
    (node,) = pod_cidrs.list_nodes(world.cluster.pk)
    a, x = node.pools
    assert (a.pool, a.needed, a.usable) == ("a", {4: 600, 6: 5}, {4: 254, 6: 0})
    assert a.missing == {4: 346, 6: 5}
    assert a.cidrs == (ip_network("10.0.0.0/24"), ip_network("10.9.0.0/24"))
    assert (x.pool, x.missing) == ("x", {4: 1, 6: 0})
    assert node.orphans == (("a", ip_network("10.9.0.0/24")),)
    assert node.uid == world.observed_node().uid
    assert (node.error, node.problem) == ("", "")


def test_overlaps_errors_and_blocks_that_wait(world: World) -> None:
    pool = world.cluster.pools.get()
    factories.take(pool, factories.holder("n2", kind="node"), cidr="10.0.3.0/24")
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    second = world.node("n2", lists={"a": ["10.0.0.0/24"]})
    second["status"] = {"ipam": {"operator-status": {"error": "pool empty"}}}
    world.fake.put(second)
    world.passed()
    _, node = pod_cidrs.list_nodes(world.cluster.pk)
    assert node.overlaps == (("a", ip_network("10.0.0.0/24"), "node n1"),)
    assert node.waiting == (ip_network("10.0.3.0/24"),)
    assert node.error == "pool empty"


def test_an_error_of_the_operator_is_shown_without_secrets(world: World) -> None:
    node = world.node("n1")
    node["status"] = {"ipam": {"operator-status": {"error": "refused: token=abcdef0123456789"}}}
    world.fake.put(node)
    world.passed()
    (shown,) = pod_cidrs.list_nodes(world.cluster.pk)
    assert shown.error == "refused: token=[redacted]"


def test_pages_of_nodes(world: World) -> None:
    for number in range(5):
        world.node(f"n{number}")
    world.passed()
    for query, names in (
        ({"limit": 2}, ["n0", "n1"]),
        ({"after": "n1", "limit": 9}, ["n2", "n3", "n4"]),
        ({"name": "n3"}, ["n3"]),
    ):
        assert [node.name for node in pod_cidrs.list_nodes(world.cluster.pk, **query)] == names


# --- Rule `migration-keeps-the-address`, also where two objects stand for one owner
# (kubevirt#13709)
#
# What of it belongs to clusters: a block stays with its holder's uid whichever node it is on, a block
# that moves between nodes has one holder at every moment, and two objects with one uid are one. The
# claims of virtual machines stand on this.
UID = "7d2f8a54-6a0b-4a3c-9d5c-6c1a4b6f2f10"


def test_a_holder_keeps_its_block_while_nodes_come_and_go(world: World, clock: Clock) -> None:
    machines = factories.pool("10.9.0.0/24", category="instance", within=world.cluster)
    owner = allocation.Holder("instance", "vm-1", UID)
    block = factories.take(machines, owner)
    world.follow_node("source", lists={"a": ["10.0.0.0/24"]})
    world.follow_node("target", lists={"a": ["10.0.1.0/24"]})
    assert factories.take(machines, owner) == block, "the target's pod asks, too"
    world.fake.remove(NODES, "source")
    for _ in range(2):
        world.passed()
        clock.advance(60)
    assert factories.take(machines, owner) == block
    assert Block.objects.filter(holder_id="vm-1", state="held").count() == 1


def test_another_owner_of_the_name_does_not_release_it(world: World) -> None:
    """The name is the same, the uid is not: what ends is the other one."""
    machines = factories.pool("10.9.0.0/24", category="instance", within=world.cluster)
    block = factories.take(machines, allocation.Holder("instance", "vm-1", UID))
    other = allocation.Holder("instance", "vm-1", "another")
    with pytest.raises(errors.IpamError):
        allocation.release(block["id"], other, author=factories.BY)
    assert factories.row(block).state == "held"


def test_a_block_that_moves_between_nodes_is_never_free(world: World) -> None:
    world.follow_node("source", lists={"a": ["10.0.0.0/24"]})
    world.node("target", lists={"a": ["10.0.0.0/24"]})  # both list it for a while
    world.passed()
    assert world.held() == {"10.0.0.0/24": "source"}
    world.follow_node("source")
    assert world.held() == {"10.0.0.0/24": "target"}
    assert not world.subjects_by_code()
    assert "10.0.0.0/24" not in factories.drain(world.cluster.pools.get())


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", [("source", "target"), ("target", "source")])
def test_two_objects_that_name_one_uid_are_one(world: World, order: tuple[str, str]) -> None:
    """No API server says so; were it told, nothing is held twice and nothing is lost."""
    stored = world.node("source", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    both = []
    for name in order:
        both.append(copy.deepcopy(stored))
        both[-1]["metadata"] |= {"name": name, "resourceVersion": "99999"}
    listed = {"apiVersion": "cilium.io/v2", "kind": "CiliumNodeList", "items": both}
    body = json.dumps(listed | {"metadata": {"resourceVersion": "99999"}}).encode()
    world.fake.faults.add(verb="list", path=NODES, body=body, times=2)
    for _ in range(2):
        world.run()
        assert list(world.held()) == ["10.0.0.0/24"]
        assert ObservedObject.objects.count() == 1
    world.passed()
    world.passed()
    assert world.held() == {"10.0.0.0/24": "source"}


# --- Cooldown is judged by the database's clock, whatever workers and clusters think it is
HOUR = 3600
MARGIN = 60  # seconds that a slow test may take


def _skewed(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The worker's clock; the database has its own."""
    right, now = time.time, timezone.now
    monkeypatch.setattr(time, "time", lambda: right() + seconds)
    monkeypatch.setattr(timezone, "now", lambda: now() + datetime.timedelta(seconds=seconds))


@pytest.mark.exhaustive
@pytest.mark.parametrize("worker", [0, HOUR, -HOUR, 30 * 24 * HOUR])
@pytest.mark.parametrize("created_at", ["1970-01-01T00:00:00Z", "2099-12-31T23:59:59Z"])
def test_clock_skew(
    worker: float, created_at: str, fake: FakeCluster, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(fake, managed_resource=True)
    world.pool("a", "10.0.0.0/24", cooldown=2 * HOUR)
    node = manifest("n1", lists={"a": ["10.0.0.0/24"]})
    node["metadata"]["creationTimestamp"] = created_at
    fake.put(node)
    world.passed()
    _skewed(monkeypatch, worker)
    world.follow_node("n1")
    assert Block.objects.get().state == "cooling"
    world.node("n2", demands={"a": 8})
    world.run()
    assert world.held() == {}
    clock.advance(2 * HOUR - MARGIN)
    world.run()
    assert world.held() == {}
    clock.advance(MARGIN)
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n2"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("back", [HOUR, 24 * HOUR])
def test_the_databases_clock_is_set_back(back: float, fake: FakeCluster, clock: Clock) -> None:
    """It gets longer, and never shorter."""
    world = World(fake, managed_resource=True)
    world.pool("a", "10.0.0.0/24", cooldown=HOUR)
    world.follow_node("n1", lists={"a": ["10.0.0.0/24"]})
    world.follow_node("n1")
    clock.advance(-back)
    world.node("n2", demands={"a": 8})
    world.run()
    clock.advance(HOUR - MARGIN)
    world.run()
    assert world.held() == {}
    clock.advance(back + MARGIN)
    world.run()
    assert world.held() == {"10.0.0.0/24": "n2"}
