"""A worker that is killed at any step neither loses an address nor gives a second one."""

from typing import Any

import pytest

from pools.core.cluster_api import contract
from pools.models import Block
from tests.cluster_api.world import BLUE, World, owner_reference
from tests.kube.manifests import build

pytestmark = pytest.mark.django_db(transaction=True)
MOST_WRITES = 5  # of one sync of one claim and its pool
STRANGER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "dummy", "uid": "abc-dev-123"}


def _held_blocks() -> list[str]:
    return [str(row.cidr) for row in Block.objects.filter(state="held").order_by("cidr")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("category", ["node", "vm"])
def test_a_crash_between_allocation_and_write(world: World, category: str) -> None:
    """At each write of the first answer; the next sync finishes it with the same address.

    A pool of VMs lets a holder have several blocks, so that nothing but the claim's uid finds the first.
    """
    world.pool("10.0.0.0/24", category=category)
    world.put_pool("pool")
    crashed = 0
    for number in range(MOST_WRITES):
        name = f"test-{number}"
        world.put_claim(name)
        crashed += world.crash_at(number)
        held = world.held().get(f"{BLUE}/{name}")
        assert held, "the register decides before the cluster is written"
        world.sync()
        assert world.address_text(name) == held
        assert world.ready(name) == ("True", "Ready")
    assert crashed >= 3, "finalizer, address and status"
    assert len(_held_blocks()) == len(set(world.held().values())) == MOST_WRITES


@pytest.mark.exhaustive
def test_a_crash_at_any_step_of_a_deletion(world: World) -> None:
    world.pool("10.0.0.0/24", cooldown=3600)
    world.put_pool("pool")
    crashed = 0
    for number in range(MOST_WRITES):
        name = f"test-{number}"
        world.follow_claims(name)
        text = world.address_text(name)
        world.delete_claim(name)
        crashed += world.crash_at(number)
        if world.address(name) is not None:
            assert world.held() == {f"{BLUE}/{name}": text}, "held until the IPAddress is gone"
        world.sync()
        assert world.claim(name) is None
        assert world.address(name) is None
        assert world.held() == {}
        assert Block.objects.get(cidr=f"{text}/32").state == "cooling"
    assert crashed >= 3, "the IPAddress is deleted, loses its finalizer, then the claim does"


@pytest.mark.sample(2)
@pytest.mark.parametrize("by_cluster", [False, True], ids=["paused claim", "paused cluster"])
def test_an_address_that_was_moved_is_adopted(world: World, by_cluster: bool) -> None:
    """What clusterctl makes in the new cluster: claim and address without status, other uids."""
    world.pool("10.0.0.0/24")
    world.put_pool("pool", gateway="10.0.0.254")
    cluster = "prod" if by_cluster else ""
    world.put_cluster("prod", paused=True)
    world.put_claim(
        "test", cluster=cluster, annotations={contract.PAUSED: ""} if not cluster else {}
    )
    _put_address(world, "10.0.0.77", ownerReferences=[STRANGER])
    world.follow_claims("other")
    assert world.held() == {"blue/other": "10.0.0.1"}
    world.put_cluster("prod")
    world.follow_claims("test", cluster=cluster)
    address = world.address("test")
    assert world.held() == {"blue/other": "10.0.0.1", "blue/test": "10.0.0.77"}
    assert address["spec"]["address"] == "10.0.0.77"
    assert address["spec"]["prefix"] == 20, "machines use it as it is"
    assert address["metadata"]["finalizers"] == [contract.PROTECT_FINALIZER]
    kinds = {owner_reference["kind"] for owner_reference in address["metadata"]["ownerReferences"]}
    assert kinds == {"ConfigMap", "IPAddressClaim", "CadastrePool"}, "an unrelated owner stays"
    assert world.ready("test") == ("True", "Ready")


OWNERS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "an unrelated one": [STRANGER],
    "another controller": [STRANGER | {"controller": True}],
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", OWNERS)
def test_an_existing_address_gets_owners_and_finalizer(world: World, case: str) -> None:
    """An existing IPAddress with no, or an unrelated, ownerRef is missing finalizers and owner references."""
    owners = OWNERS[case]
    world.pool("10.0.0.0/24")
    pool = world.put_pool("pool", gateway="10.0.0.2")
    _put_address(world, "10.0.0.1", **({"ownerReferences": owners} if owners else {}))
    before = world.address("test")
    claim = world.put_claim("test")
    world.sync()
    address = world.address("test")
    assert address["spec"] == before["spec"]
    assert address["metadata"]["finalizers"] == [contract.PROTECT_FINALIZER]
    is_controller = case != "another controller"
    assert address["metadata"]["ownerReferences"] == [
        *owners,
        owner_reference(claim, controller=is_controller),
        owner_reference(pool, controller=False),
    ]
    assert world.ready("test") == ("True", "Ready")


def test_an_address_that_was_restored_belongs_to_the_claim_of_now(world: World) -> None:
    """A restored IPAddress names its claim by the uid that this had, as its controller."""
    world.pool("10.0.0.0/24")
    pool = world.put_pool("pool")
    claim = world.put_claim("test")
    earlier = owner_reference(claim, controller=True) | {"uid": "of-the-earlier-claim"}
    _put_address(world, "10.0.0.7", ownerReferences=[earlier])
    world.sync()
    world.sync()
    address = world.address("test")
    assert address["metadata"]["ownerReferences"] == [
        owner_reference(claim, controller=True),
        owner_reference(pool, controller=False),
    ]
    assert address["metadata"]["finalizers"] == [contract.PROTECT_FINALIZER]
    assert world.ready("test") == ("True", "Ready")
    assert world.held() == {"blue/test": "10.0.0.7"}


@pytest.mark.exhaustive
def test_an_address_that_another_holder_has_is_flagged(world: World) -> None:
    world.serve("first")
    _put_address(world, "10.0.0.1")
    world.follow_claims("test")
    assert world.ready("test") == ("False", "AllocationFailed")
    assert world.held() == {"blue/first": "10.0.0.1"}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no address", "not an IPv4 or IPv6 address"),
        ("192.0.2.7", "not in any CIDR"),
        ("10.0.0.9", "reserved"),
    ],
    ids=["invalid", "outside the pool", "reserved"],
)
def test_an_address_that_cannot_be_the_claims_is_flagged(
    world: World, text: str, message: str
) -> None:
    world.pool("10.0.0.0/24", reserved=["10.0.0.9-10.0.0.9"])
    world.put_pool("pool")
    _put_address(world, text)
    world.follow_claims("test")
    claim = world.claim("test")
    (condition,) = claim["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "AllocationFailed")
    assert message in condition["message"]
    assert world.held() == {}


def test_an_address_of_another_claim_is_not_touched(world: World) -> None:
    world.pool("10.0.0.0/24")
    world.put_pool("pool")
    _put_address(world, "10.0.0.9", claim="somebody")
    before = world.address("test")
    world.follow_claims("test")
    assert world.address("test") == before
    assert world.ready("test") == ("False", "AllocationFailed")


@pytest.mark.exhaustive
def test_a_claim_made_anew_keeps_the_address_of_its_ipaddress(world: World) -> None:
    """A claim is restored with another uid while its IPAddress is there."""
    world.serve("test", cooldown=3600)
    world.strip(world.claim("test"), world.claims)
    world.follow_claims("test")
    assert world.held() == {"blue/test": "10.0.0.1"}
    claim = world.claim("test")
    assert Block.objects.get(state="held").holder_uid == claim["metadata"]["uid"]
    assert world.ready("test") == ("True", "Ready")


def _put_address(world: World, text: str, *, claim: str = "test", **metadata: object) -> None:
    pool = {"apiGroup": contract.GROUP, "kind": contract.POOL_KIND, "name": "pool"}
    spec = {"claimRef": {"name": claim}, "poolRef": pool, "address": text, "prefix": 20}
    version, kind = world.addresses.api_version, contract.ADDRESS_KIND
    manifest = build(version, kind, "test", BLUE, metadata=metadata, spec=spec)
    world.client.apply(world.addresses, manifest, manager="clusterctl")
