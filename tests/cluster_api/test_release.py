"""What is released, and what protects an address until then.

The cases of cluster-api-ipam-provider-in-cluster on deletion: the claim was fulfilled and is deleted, the
pool is deleted before the claim, a finalizer prevents the deletion of a pool with IPAddresses. Its grace
period keeps the IPAddress; here the register's cooldown keeps the address, and the objects go at once.
"""

from typing import Any

import pytest

from pools.cluster_api import allocation
from pools.core.cluster_api import contract
from pools.models import Block, Connection, ManagedResource
from pools.platform import database
from pools.register import pools
from pools.register.leaks import detection
from tests import factories
from tests.cluster_api.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.exhaustive
def test_a_deleted_claim_releases_its_address_into_the_cooldown(world: World) -> None:
    world.serve("test", cidr="10.0.0.0/29", cooldown=3600)
    world.delete_claim("test")
    assert world.claim("test") is not None, "the finalizer keeps it until the address is released"
    world.sync()
    assert world.claim("test") is None
    assert world.address("test") is None
    block = Block.objects.get(cidr="10.0.0.1/32")
    assert (block.state, block.holder_id) == ("cooling", "blue/test")
    world.follow_claims("next")
    assert world.address_text("next") == "10.0.0.2"


@pytest.mark.exhaustive
def test_a_name_that_is_used_again_is_another_claim(world: World) -> None:
    """A machine is made anew under its name; nothing of the first claim is the second one's."""
    world.serve("test", cidr="10.0.0.0/30", cooldown=3600)
    world.delete_claim("test")
    world.sync()
    claim = world.put_claim("test")
    world.sync()
    assert world.address_text("test") == "10.0.0.2"
    address = world.address("test")
    assert address["metadata"]["ownerReferences"][0]["uid"] == claim["metadata"]["uid"]
    assert Block.objects.get(state="held").holder_uid == claim["metadata"]["uid"]


def test_an_unanswered_claim_of_a_missing_cluster_can_be_deleted(world: World) -> None:
    """The cluster can not be retrieved, the claim is not fulfilled, and has the finalizer."""
    world.pool("10.0.0.0/29")
    world.put_pool("pool")
    world.follow_claims("test", cluster="gone", finalizers=[contract.RELEASE_FINALIZER])
    assert world.address("test") is None
    world.delete_claim("test")
    assert world.claim("test") is not None
    world.sync()
    assert world.claim("test") is None


@pytest.mark.exhaustive
def test_a_claim_that_goes_with_its_cluster_is_released_at_once(world: World) -> None:
    """The claim was fulfilled, the Cluster is gone, and the claim is deleted."""
    world.pool("10.0.0.0/29")
    world.put_pool("pool")
    world.put_cluster("prod")
    world.follow_claims("test", cluster="prod")
    assert world.address_text("test") == "10.0.0.1"
    world.delete(world.client.get(contract.CLUSTERS[0], "prod", "blue"), contract.CLUSTERS[0])
    world.delete_claim("test")
    world.sync()
    assert world.claim("test") is None
    assert world.held() == {}


@pytest.mark.exhaustive
def test_an_address_in_its_cooldown_is_not_given_to_another_claim(world: World) -> None:
    world.serve("test", cidr="10.0.0.7/32", cooldown=3600)
    world.delete_claim("test")
    world.follow_claims("next")
    assert world.address("next") is None
    assert world.ready("next") == ("False", "PoolExhausted")


def test_a_protected_address_survives_a_deletion_by_hand(world: World) -> None:
    world.serve("test", cidr="10.0.0.0/29")
    world.delete(world.address("test"), world.addresses)
    world.sync()
    assert world.address_text("test") == "10.0.0.1"


@pytest.mark.exhaustive
def test_an_address_that_is_gone_is_made_again_with_the_same_address(world: World) -> None:
    world.serve("other", "test", cidr="10.0.0.0/29")
    text = world.address_text("test")
    world.strip(world.address("test"), world.addresses)
    assert world.address("test") is None
    world.sync()
    assert world.address_text("test") == text
    assert world.ready("test") == ("True", "Ready")


@pytest.mark.exhaustive
def test_a_pool_with_addresses_is_protected(world: World) -> None:
    """Add a finalizer to prevent pool deletion before IPAddresses are deleted."""
    world.serve("test", cidr="10.0.0.0/29")
    world.delete(world.pool_object(), contract.POOLS[contract.POOL_KIND])
    world.sync()
    assert world.pool_object() is not None
    world.follow_claims("late")
    assert world.ready("late") == ("False", "PoolNotReady")
    assert world.ready("test") == ("True", "Ready"), "the claim keeps what it has"
    world.delete_claim("test")
    world.sync()
    assert world.claim("test") is None
    assert world.pool_object() is None


@pytest.mark.exhaustive
def test_a_claim_is_released_when_its_pool_is_gone(world: World) -> None:
    """The pool is deleted before the claim (cluster teardown)."""
    world.serve("test", cidr="10.0.0.0/29")
    world.strip(world.pool_object(), contract.POOLS[contract.POOL_KIND])
    world.delete_claim("test")
    world.sync()
    assert world.claim("test") is None
    assert world.address("test") is None
    assert world.held() == {}


def test_a_claim_whose_finalizer_was_taken_is_released_when_all_of_it_is_gone(world: World) -> None:
    world.serve("test", cidr="10.0.0.0/29")
    world.strip(world.claim("test"), world.claims)
    world.sync_until_missed()
    assert world.held() == {"blue/test": "10.0.0.1"}, "its IPAddress still has it"
    world.delete(world.address("test"), world.addresses)  # as the garbage collector does
    world.sync()
    assert world.address("test") is None
    world.sync_until_missed()
    assert world.held() == {}


@pytest.mark.exhaustive
def test_a_cluster_is_woken_when_a_waiting_claim_can_be_served(world: World) -> None:
    """The pool is exhausted; somebody releases, or adds a CIDR, in the register."""
    pool = world.pool("10.0.0.7/32")
    world.put_pool("pool")
    world.follow_claims("first")
    world.follow_claims("second")
    assert allocation.nudge_clusters() == 0, "nothing is free"
    pools.add_cidr(pool.pk, factories.entry("10.0.0.8/32"), author=factories.BY)
    assert allocation.nudge_clusters() == 1
    world.connection.refresh_from_db()
    assert world.connection.nudged_at is not None
    world.sync()
    assert world.address_text("second") == "10.0.0.8"
    assert allocation.nudge_clusters() == 0


@pytest.mark.exhaustive
def test_addresses_of_claims_that_are_gone_are_reported_where_nobody_answers(
    world: World, settings: Any
) -> None:
    settings.IPAM_LEAK_GRACE_SECONDS = 0
    world.serve("kept", "lost", cidr="10.0.0.0/29")
    Connection.objects.update(managed_resources=[ManagedResource.POOLS])
    world.strip(world.claim("lost"), world.claims)
    world.strip(world.address("lost"), world.addresses)
    world.sync_until_missed()
    for _ in range(2):
        began = database.now()
        source = allocation.LEAK_SOURCE
        detection.record_observation(
            source.name,
            source.covers,
            cluster_id=world.cluster.pk,
            holders=source.holders,
            began=began,
        )
    holders = set(detection.confirmed_leaks().values_list("holder_id", flat=True))
    assert holders == {"blue/lost"}
