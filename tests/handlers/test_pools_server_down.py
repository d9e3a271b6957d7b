"""Point 13: while an API server is down the register goes on, and what waits is done when it is back."""

from __future__ import annotations

import pytest

from pools.clusters.reconcile import leases
from pools.models import Connection
from pools.register import pools
from tests import factories
from tests.handlers.cilium_world import CiliumWorld
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock


@pytest.fixture
def world(fake: FakeCluster) -> CiliumWorld:
    world = CiliumWorld(fake, managed_resource=True)
    world.connection.managed_resources = ["pools", "pod-cidrs"]
    world.connection.save()
    world.pool("a", "10.0.0.0/22")
    world.follow_node("n1", demands={"a": 8})
    return world


def test_the_register_stays_authoritative(world: CiliumWorld, clock: Clock) -> None:
    before = world.held()
    world.fake.faults.add(status=503, times=None)
    machines = factories.pool("10.9.0.0/24", within=world.cluster)
    for number in range(4):
        assert not world.run().succeeded
        assert factories.take(machines)["cidr"].startswith("10.9.0.")
        pools.add_cidr(
            world.cluster.pools.get(name="a").pk,
            factories.entry(f"10.{number + 1}.0.0/22"),
            author=factories.BY,
        )
        clock.advance(600)
    assert world.held().items() >= before.items()
    row = Connection.objects.get(pk=world.connection.pk)
    assert (row.error_code, row.failures) == ("cluster_server_error", 4)
    world.fake.faults.clear()
    world.passed()
    there = world.fake.object("ciliumpodippools", "a")["spec"]["ipv4"]["cidrs"]
    assert there == ["10.0.0.0/22", *(f"10.{number + 1}.0.0/22" for number in range(4))]
    world.fake.log.clear()
    world.passed()
    assert not world.fake.log.writes


def test_changes_do_not_hammer_at_a_server_that_is_down(world: CiliumWorld) -> None:
    """The pass that is due waits as long as the back-off says, however much is changed here."""
    world.fake.faults.add(status=503, times=None)
    for _ in range(6):
        world.run()
    assert leases.due_connections() == []
    due = Connection.objects.get(pk=world.connection.pk).due_at
    for number in range(3):
        pools.add_cidr(
            world.cluster.pools.get(name="a").pk,
            factories.entry(f"10.{number + 1}.0.0/22"),
            author=factories.BY,
        )
    assert leases.due_connections() == []
    assert Connection.objects.get(pk=world.connection.pk).due_at == due
