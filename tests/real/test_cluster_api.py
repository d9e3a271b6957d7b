"""Claims of Cluster API on a real API server, answered by the watcher within seconds, killed in between."""

import time
from collections.abc import Callable

import pytest

from pools.core.cluster_api import contract
from pools.models import Block, Watcher
from tests import eventually
from tests.cluster_api.conftest import BOTH
from tests.cluster_api.world import World
from tests.kube.real import RealCluster
from tests.real import sites

pytestmark = pytest.mark.django_db(transaction=True)
PROMISED = 10  # seconds


@pytest.fixture
def world(kube: RealCluster) -> World:
    kube.anew(*BOTH)
    world = World(kube)
    world.pool("10.0.0.0/29", name="machines")  # six addresses, one of them the gateway's
    world.put_pool("pool", gateway="10.0.0.1")
    assert sites.reconcile(world.connection, kube).succeeded
    return world


def _within_seconds(happened: Callable[[], object]) -> None:
    began = time.monotonic()
    eventually.until(happened)
    assert time.monotonic() - began < PROMISED


def test_the_life_of_claims_under_a_watcher_that_is_killed(world: World) -> None:
    ready = ("True", "Ready")
    with sites.running("watch"):
        eventually.until(Watcher.objects.exists)
        world.put_claim("warm-up")
        eventually.until(lambda: world.ready("warm-up") == ready)
        world.put_claim("first")
        _within_seconds(lambda: world.ready("first") == ready)
        assert world.address_text("first") == "10.0.0.3"
    # Killed: what happens now is found by the next one.
    world.put_claim("second")
    world.delete_claim("first")
    with sites.running("watch"):
        # The clusters of a dead watcher are taken over when it was silent for a while.
        eventually.until(lambda: world.ready("second") == ready, 180)
        eventually.until(lambda: world.claim("first") is None)
        assert world.address("first") is None
        for number in range(4):
            world.put_claim(f"more-{number}")
        _within_seconds(
            lambda: [world.ready(f"more-{number}") for number in range(4)].count(ready) == 3
        )
        (waiting,) = (
            f"more-{number}" for number in range(4) if world.ready(f"more-{number}") != ready
        )
        _within_seconds(lambda: world.ready(waiting) == ("False", "PoolExhausted"))
        world.delete_claim("second")  # its address serves the one that waits
        _within_seconds(lambda: world.ready(waiting) == ready)
    texts = [
        str(cidr) for cidr in Block.objects.filter(state="held").values_list("cidr", flat=True)
    ]
    assert sorted(texts) == [f"10.0.0.{last}/32" for last in range(2, 7)]
    assert set(world.held()) == {"blue/warm-up", *(f"blue/more-{number}" for number in range(4))}


def test_a_pause_that_ends_and_a_pool_that_comes_late(world: World) -> None:
    ready = ("True", "Ready")
    world.put_cluster("prod", paused=True)
    world.put_claim("paused", cluster="prod")
    world.put_claim("early", pool="late")
    with sites.running("watch"):
        eventually.until(lambda: world.ready("early") == ("False", "PoolNotReady"))
        assert world.address("paused") is None
        world.put_cluster("prod")
        _within_seconds(lambda: world.ready("paused") == ready)
        world.put_pool("late", pool_name="machines")
        _within_seconds(lambda: world.ready("early") == ready)
        pool = world.pool_object("late")
        world.delete(pool, contract.POOLS[contract.POOL_KIND])
        world.delete_claim("early")
        _within_seconds(lambda: world.pool_object("late") is None)
        world.strip(world.address("paused"), world.addresses)
        _within_seconds(lambda: world.address_text("paused"))
    assert set(world.held()) == {"blue/paused"}
