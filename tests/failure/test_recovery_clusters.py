"""Rule `restored-register-waits`: until each connected cluster was listed; what it shows is recorded."""

import pytest

from pools.clusters import recovery_mode
from pools.models import Connection, ConnectionEvent, Recovery
from pools.platform import events
from tests import factories
from tests.handlers.cilium_world import CiliumWorld
from tests.kube.fake import FakeCluster

pytestmark = pytest.mark.django_db
BY = events.Author(actor="ann", source="command", reason="restored")


@pytest.fixture
def world(fake: FakeCluster) -> CiliumWorld:
    """The node n1 has the first block, and the register serves the nodes."""
    world = CiliumWorld(fake, managed_resource=True)
    world.cidrs("a", "10.0.0.0/21")
    world.node("n1", demands={"a": 8})
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}
    return world


def test_the_first_pass_records_what_is_used_and_the_next_one_serves(
    world: CiliumWorld,
) -> None:
    recovery_mode.begin(author=BY)
    world.node("n2", demands={"a": 8})
    world.node("n3", lists={"a": ["10.0.1.0/24"]})
    assert recovery_mode.clusters_to_list() == [world.cluster.name]
    world.passed()
    # Recorded, and nobody got anything: the cluster was not known before this pass.
    assert world.held() == {"10.0.0.0/24": "n1", "10.0.1.0/24": "n3"}
    ended = Recovery.objects.get()
    assert ended.ended_at is not None
    assert ended.ended_by == "worker"
    world.passed()
    assert world.held()["10.0.2.0/24"] == "n2"
    assert world.listed() == world.held()
    labels = ConnectionEvent.objects.filter(pgh_label__startswith="recovery").order_by("pgh_id")
    assert [label.pgh_label for label in labels] == ["recovery_began", "recovery_ended"]


@pytest.mark.exhaustive
def test_a_pass_that_began_before_or_failed_does_not_count(world: CiliumWorld) -> None:
    recovery_mode.begin(author=BY)
    world.fake.faults.add(verb="list", path="ciliumnodes", status=500, times=None)
    assert not world.run().succeeded
    assert recovery_mode.clusters_to_list() == [world.cluster.name]
    world.fake.faults.clear()
    world.tell(("ADDED", world.node("n2", demands={"a": 8})))
    assert world.run(dry=True).succeeded
    assert recovery_mode.clusters_to_list() == [world.cluster.name]
    world.passed()
    assert recovery_mode.clusters_to_list() == []
    assert recovery_mode.current_recovery() is None


def test_every_cluster_is_waited_for_but_those_that_are_paused(world: CiliumWorld) -> None:
    other = factories.cluster()
    Connection.objects.create(
        cluster=other, server="https://away.example:6443", due_at="2026-01-01T00:00Z"
    )
    recovery_mode.begin(author=BY)
    world.passed()
    assert recovery_mode.clusters_to_list() == [other.name]
    assert not recovery_mode.end_when_listed()
    Connection.objects.filter(cluster=other).update(paused=True)
    assert recovery_mode.end_when_listed()
    assert recovery_mode.current_recovery() is None


def test_a_worker_of_before_the_restore_writes_nothing(world: CiliumWorld) -> None:
    before = Connection.objects.get().fence
    recovery_mode.begin(author=BY)
    assert Connection.objects.get().fence > before + 1_000_000
