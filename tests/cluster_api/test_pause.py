"""Paused: nothing is done, also not on deletion (the cases of the reference provider on paused objects)."""

import pytest

from pools.core.cluster_api import contract
from tests.cluster_api.world import World

pytestmark = pytest.mark.django_db(transaction=True)
PAUSED = {contract.PAUSED: ""}


@pytest.fixture(autouse=True)
def _pool(world: World) -> None:
    world.pool("10.0.0.0/29")
    world.put_pool("pool")


def test_a_paused_claim_waits(world: World) -> None:
    """When the ipaddressclaim is paused: not until the ip address claim is unpaused."""
    world.follow_claims("test", annotations=PAUSED)
    claim = world.claim("test")
    assert world.address("test") is None
    assert "finalizers" not in claim["metadata"]
    world.follow_claims("test")
    assert world.address_text("test") == "10.0.0.1"


def test_a_paused_claim_is_not_released(world: World) -> None:
    world.follow_claims("test")
    world.put_claim("test", annotations=PAUSED)
    world.delete_claim("test")
    world.sync()
    assert world.claim("test") is not None
    assert world.address_text("test") == "10.0.0.1"
    assert world.held() == {"blue/test": "10.0.0.1"}


def _annotate_pool(world: World, *, paused: bool) -> None:
    pool = world.pool_object()
    world.client.patch(
        contract.POOLS[contract.POOL_KIND],
        pool,
        {"/metadata/annotations": PAUSED if paused else {}},
        manager="user",
    )


@pytest.mark.exhaustive
def test_a_paused_pool(world: World) -> None:
    """The pool is paused: no IPAddress until it is unpaused; should prevent deletion of claims."""
    _annotate_pool(world, paused=True)
    world.follow_claims("test")
    assert world.address("test") is None
    _annotate_pool(world, paused=False)
    world.sync()
    assert world.address_text("test") == "10.0.0.1"
    _annotate_pool(world, paused=True)
    world.delete_claim("test")
    world.sync()
    assert world.claim("test") is not None
    _annotate_pool(world, paused=False)
    world.sync()
    assert world.claim("test") is None
    assert world.held() == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("by_label", [False, True], ids=["spec.clusterName", "label"])
@pytest.mark.parametrize("annotated", [False, True], ids=["spec.paused", "annotation"])
def test_a_paused_cluster(world: World, by_label: bool, annotated: bool) -> None:
    """A paused cluster: nothing upon creating; an address when the pause is removed; no release."""
    belongs = {"labels": {contract.CLUSTER_NAME: "prod"}} if by_label else {"cluster": "prod"}
    pause = {"annotated": True} if annotated else {"paused": True}
    world.put_claim("test", **belongs)
    world.put_cluster("prod", **pause)
    world.sync()
    assert world.address("test") is None
    world.put_cluster("prod")
    world.sync()
    assert world.address_text("test") == "10.0.0.1"
    world.put_cluster("prod", **pause)
    world.delete_claim("test")
    world.sync()
    assert world.address_text("test") == "10.0.0.1"
    assert world.claim("test") is not None
    world.put_cluster("prod")
    world.sync()
    assert world.claim("test") is None


@pytest.mark.exhaustive
def test_a_cluster_that_is_not_there(world: World) -> None:
    """The cluster can not be retrieved: no address; a fulfilled claim is released all the same."""
    world.follow_claims("early", cluster="prod")
    assert world.address("early") is None
    world.put_cluster("prod")
    world.sync()
    assert world.address_text("early") == "10.0.0.1"
    cluster = world.client.get(contract.CLUSTERS[0], "prod", "blue")
    world.delete(cluster, contract.CLUSTERS[0])
    world.delete_claim("early")
    world.sync_until_missed()
    assert world.claim("early") is None
    assert world.held() == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("paused", [False, True], ids=["annotation", "annotation and spec.paused"])
def test_another_change_of_a_paused_cluster_is_no_end_of_its_pause(
    world: World, paused: bool
) -> None:
    """A paused cluster is updated: does not allocate; the claim came after the pause."""
    world.put_cluster("prod", annotated=True, paused=paused)
    world.follow_claims("test", labels={contract.CLUSTER_NAME: "prod"})
    cluster = world.client.get(contract.CLUSTERS[0], "prod", "blue")
    world.client.patch(
        contract.CLUSTERS[0],
        cluster,
        {"/metadata/annotations": {**PAUSED, "superficial": "change"}},
        manager="user",
    )
    world.sync()
    assert world.address("test") is None
    assert world.held() == {}
