"""Point 16: while the webhook is down, its policy says what fails: writes of pools, nothing else."""

from __future__ import annotations

import pytest

from pools.models import Drift
from pools.webhooks import configuration
from tests.handlers.cilium_world import CiliumWorld
from tests.handlers.fleet import manifest
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

MANAGED_RESOURCES = ["pools", "pod-cidrs"]


@pytest.fixture
def world(fake: FakeCluster) -> CiliumWorld:
    """A managed cluster with a pool of the register's own, and a node."""
    world = CiliumWorld(fake, managed_resource=True)
    world.connection.managed_resources = MANAGED_RESOURCES
    world.connection.save()
    world.pool("a", "10.0.0.0/22")
    world.node("n1", demands={"a": 8})
    world.passed()
    return world


def _down(world: CiliumWorld, policy: str) -> None:
    """Installed as the command prints it, and nobody is there."""
    hook = configuration.CILIUM_POD_IP_POOLS
    at = configuration.path(hook, world.cluster.name, "key")
    client = configuration.by_url("https://127.0.0.1:1", at)
    world.fake.put(configuration.manifest(hook, client, failure_policy=policy))


@pytest.mark.exhaustive
def test_with_fail_writes_of_pools_wait_and_nothing_else(world: CiliumWorld) -> None:
    _down(world, "Fail")
    world.pool("b", "10.1.0.0/22")
    world.node("n2", demands={"a": 8})
    for _ in range(2):
        run = world.run()
        assert (run.error_code, run.kinds["CiliumPodIPPool"]["failed"]) == ("", 1)
        rows = list(Drift.objects.all())
        assert {row.name for row in rows} == {"b"}
        assert all("failed calling webhook" in row.conflict for row in rows)
    assert len(world.lists("n1")) == len(world.lists("n2")) == 1
    with gateways.to(world.fake) as gateway, pytest.raises(Exception, match="calling webhook"):
        gateway.apply(gateways.POOLS, manifest("theirs", "10.2.0.0/16"), manager="kubectl")
    # Breaking the glass, or the webhook is up again.
    world.fake.remove("validatingwebhookconfigurations", configuration.CILIUM_POD_IP_POOLS.name)
    world.passed()
    assert len(world.fake.objects("ciliumpodippools")) == 2
    assert not Drift.objects.exists()


@pytest.mark.exhaustive
def test_with_ignore_what_was_not_judged_is_found(world: CiliumWorld, clock: Clock) -> None:
    _down(world, "Ignore")
    world.pool("b", "10.1.0.0/22")
    world.passed()
    assert len(world.fake.objects("ciliumpodippools")) == 2
    # The webhook would have refused it: it overlaps a pool in use.
    with gateways.to(world.fake) as gateway:
        gateway.apply(gateways.POOLS, manifest("theirs", "10.0.0.0/24"), manager="kubectl")
    world.run()
    assert world.subjects_by_code()["cidr_overlap"] == ["theirs 10.0.0.0/24, a 10.0.0.0/22"]
    assert world.held() == world.listed()
