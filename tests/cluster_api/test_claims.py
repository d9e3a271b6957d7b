"""Claims get an address: the cases of the contract's reference provider, against this product.

The cases of cluster-api-ipam-provider-in-cluster (internal/controllers/ipaddressclaim_test.go, bc27dd7) by
their names, "When …/should …"; its pools of single addresses, ranges and exclusions are CIDRs with
reserved ranges here.
"""

from typing import Any

import pytest

from pools.core.cluster_api import contract
from pools.core.cluster_api.conditions import Reason
from tests.cluster_api.world import BLUE, GREEN, World, owner_reference
from tests.kube.fake import FakeCluster

pytestmark = pytest.mark.django_db(transaction=True)
NET = "10.0.0.0/24"
GLOBAL = contract.GLOBAL_POOL_KIND


def test_a_claim_of_an_unrecognized_kind_is_ignored(world: World) -> None:
    """The referenced pool is an unrecognized kind: should ignore the claim."""
    world.pool(NET)
    world.put_pool("pool")
    world.put_claim("other-kind", kind="UnknownIPPool")
    world.put_claim("other-group", group="ipam.cluster.x-k8s.io", kind="InClusterIPPool")
    world.sync()
    for name in ("other-kind", "other-group"):
        claim = world.claim(name)
        assert "finalizers" not in claim["metadata"]
        assert "status" not in claim
        assert world.address(name) is None
    assert world.held() == {}


def test_a_claim_gets_an_address_with_owners_finalizer_and_label(world: World) -> None:
    """The referenced namespaced pool exists: should allocate an Address from the Pool."""
    world.pool(NET)
    world.put_cluster("test-cluster")
    pool = world.put_pool("pool", gateway="10.0.0.2")
    claim = world.put_claim("test", labels={contract.CLUSTER_NAME: "test-cluster"})
    world.sync()
    address = world.address("test")
    metadata = address["metadata"]
    assert address["spec"] == {
        "claimRef": {"name": "test"},
        "poolRef": {"apiGroup": contract.GROUP, "kind": "CadastrePool", "name": "pool"},
        "address": "10.0.0.1",
        "prefix": 24,
        "gateway": "10.0.0.2",
    }
    assert metadata["finalizers"] == [contract.PROTECT_FINALIZER]
    assert metadata["labels"] == {contract.CLUSTER_NAME: "test-cluster"}
    assert metadata["ownerReferences"] == [
        owner_reference(claim, controller=True),
        owner_reference(pool, controller=False),
    ]
    stored = world.claim("test")
    assert stored["metadata"]["finalizers"] == [contract.RELEASE_FINALIZER]
    assert stored["status"]["addressRef"] == {"name": "test"}
    assert world.ready("test") == ("True", "Ready")
    assert world.held() == {"blue/test": "10.0.0.1"}


@pytest.mark.exhaustive
def test_a_further_sync_writes_nothing(world: World) -> None:
    world.serve("test")
    before = world.claim("test"), world.address("test"), world.pool_object()
    world.sync()
    run = world.sync()
    assert (world.claim("test"), world.address("test"), world.pool_object()) == before
    assert sum(item["written"] for item in run.kinds.values()) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", contract.POOL_KINDS)
def test_a_pool_that_does_not_exist(world: World, kind: str) -> None:
    """The referenced namespaced / global pool does not exist: should not allocate an Address."""
    world.pool(NET)
    world.put_pool("pool")
    world.put_global_pool("pool")
    world.follow_claims("test", pool="wrong-pool", kind=kind)
    assert world.address("test") is None
    assert world.ready("test") == ("False", "PoolNotReady")
    world.put_pool("wrong-pool")
    world.put_global_pool("wrong-pool")
    world.sync()
    assert world.address_text("test") == "10.0.0.1"
    assert world.ready("test") == ("True", "Ready")


def test_reserved_addresses_are_not_allocated(world: World) -> None:
    """The pool has addresses that overlap with reserved addresses: does not allocate the reserved ones."""
    world.pool("10.0.1.0/30")  # network, gateway, one address, broadcast
    world.put_pool("pool", gateway="10.0.1.1")
    world.follow_claims("test", "test2")
    assert world.address_text("test") == "10.0.1.2"
    assert world.address("test2") is None
    assert world.ready("test2") == ("False", "PoolExhausted")


@pytest.mark.exhaustive
def test_excluded_addresses_are_not_allocated(world: World) -> None:
    """The pool has excluded ip addresses: should not allocate excluded ip addresses."""
    world.pool("10.1.1.0/24", reserved=["10.1.1.2-10.1.1.5", "10.1.1.7-10.1.1.7"])
    world.put_pool("pool", gateway="10.1.1.1")
    for name in ("first", "second", "third"):
        world.follow_claims(name)
    texts = [world.address_text(name) for name in ("first", "second", "third")]
    assert texts == ["10.1.1.6", "10.1.1.8", "10.1.1.9"]


def test_a_pool_without_a_gateway(world: World) -> None:
    """The referenced namespaced pool does not contain a gateway."""
    world.serve("test")
    address = world.address("test")
    assert (address["spec"]["address"], address["spec"]["prefix"]) == ("10.0.0.1", 24)
    assert "gateway" not in address["spec"]


@pytest.mark.exhaustive
def test_a_global_pool_serves_all_namespaces(world: World) -> None:
    """The referenced global pool exists: no matter the claim's namespace; two claims of one name."""
    world.pool(NET)
    pool = world.put_global_pool("pool", gateway="10.0.0.1")
    world.put_claim("test", kind=GLOBAL)
    world.put_claim("test", namespace=GREEN, kind=GLOBAL)
    world.sync()
    assert world.address_text("test") == "10.0.0.2"
    assert world.address_text("test", GREEN) == "10.0.0.3"
    address = world.address("test", GREEN)
    assert address["metadata"]["ownerReferences"][1] == owner_reference(pool, controller=False)


def test_two_pools_of_one_name_in_two_namespaces(world: World) -> None:
    """Two pools with the same name in different namespaces: allocate from each Pool independently."""
    world.pool("10.0.0.50/32", name="one")
    world.pool("10.0.1.50/32", name="two")
    world.put_pool("common", pool_name="one")
    world.put_pool("common", namespace=GREEN, pool_name="two")
    world.put_claim("test-1", pool="common")
    world.put_claim("test-2", namespace=GREEN, pool="common")
    world.sync()
    assert world.address_text("test-1") == "10.0.0.50"
    assert world.address_text("test-2", GREEN) == "10.0.1.50"


def test_a_claim_with_a_uid_that_is_too_long_is_refused_alone(world: World) -> None:
    if not isinstance(world.server, FakeCluster):
        pytest.skip("an API server makes uids of 36 characters")
    world.pool(NET)
    world.put_pool("pool")
    for name in ("a", "long", "z"):
        world.put_claim(name)
    claims = world.server.find_kind("ipaddressclaims.ipam.cluster.x-k8s.io")
    claim = world.claim("long")
    claim["metadata"]["uid"] = "u" * 65
    world.server.store.write(claims, claim)
    world.sync()
    assert world.ready("long") == ("False", Reason.ALLOCATION_FAILED.value)
    assert world.address("long") is None
    assert world.ready("a") == world.ready("z") == ("True", "Ready")
    assert set(world.held()) == {f"{BLUE}/a", f"{BLUE}/z"}


@pytest.mark.exhaustive
def test_a_namespaced_and_a_global_pool_of_one_name(world: World) -> None:
    """Two pools with the same name, one in a namespace and one cluster-scoped, exist."""
    world.pool("10.0.0.50/32", name="one")
    world.pool("10.0.1.50/32", name="two")
    world.put_pool("common", pool_name="one")
    world.put_global_pool("common", pool_name="two")
    world.put_claim("test-1", pool="common")
    world.put_claim("test-2", pool="common", kind=GLOBAL)
    world.sync()
    assert world.address_text("test-1") == "10.0.0.50"
    assert world.address_text("test-2") == "10.0.1.50"


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_global", [False, True], ids=["namespaced", "global"])
def test_an_exhausted_pool_serves_again_when_an_address_is_released(
    world: World, is_global: bool
) -> None:
    """The pool is out of available addresses: new claims progress once capacity becomes available."""
    world.pool("10.0.0.7/32")
    (world.put_global_pool if is_global else world.put_pool)("pool")
    kind = contract.POOL_KINDS[is_global]
    world.follow_claims("first", kind=kind)
    world.follow_claims("second", kind=kind)
    assert world.address("second") is None
    assert world.ready("second") == ("False", "PoolExhausted")
    world.delete_claim("first")
    world.sync()
    assert world.claim("first") is None
    assert world.address_text("second") == "10.0.0.7"
    assert world.ready("second") == ("True", "Ready")
    assert world.held() == {f"{BLUE}/second": "10.0.0.7"}


def test_an_ipv6_claim(world: World) -> None:
    """IPv6, with a link-local gateway, from a pool of both families."""
    world.pool(NET, "fd00:1::/64")
    world.put_pool("pool", family=6, gateway="fe80::1")
    world.put_pool("four", family=4, prefix=20)
    world.put_claim("six")
    world.put_claim("four", pool="four")
    world.sync()
    six, four = world.address("six"), world.address("four")
    assert six["spec"]["prefix"] == 64
    assert six["spec"]["gateway"] == "fe80::1"
    assert six["spec"]["address"].startswith("fd00:1::")
    assert (four["spec"]["address"], four["spec"]["prefix"]) == ("10.0.0.1", 20)


def test_a_pool_of_single_addresses(world: World) -> None:
    """The referenced pool uses single ip addresses; prefix and gateway are those of their network."""
    world.pool("10.0.1.2/32", "10.0.1.3/32")
    world.put_pool("pool", prefix=24, gateway="10.0.1.1")
    world.follow_claims("test")
    address = world.address("test")
    spec = address["spec"]
    assert (spec["address"], spec["prefix"], spec["gateway"]) == ("10.0.1.2", 24, "10.0.1.1")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"gateway": "10.0.0.1"}, [(29, "10.0.0.1"), (29, None)]),
        ({"gateway": "10.0.0.1", "prefix": 16}, [(16, "10.0.0.1"), (16, "10.0.0.1")]),
        ({"gateway": "192.168.0.1"}, [(29, None), (29, None)]),
        ({"gateway": "10.0.0.1", "prefix": 32}, [(32, None), (32, None)]),
    ],
    ids=["of one network", "of both networks", "of none", "of single addresses"],
)
def test_a_gateway_belongs_to_the_addresses_of_its_network(
    world: World, spec: dict[str, Any], expected: list[Any]
) -> None:
    world.pool("10.0.0.0/29", "10.0.1.0/29", reserved=["10.0.0.3-10.0.0.7"])
    world.put_pool("pool", **spec)
    world.follow_claims("one", "two", "three")
    by_network: dict[str, Any] = {}
    for name in ("one", "two", "three"):
        address = world.address(name)
        text = address["spec"]["address"]
        by_network[text[:6]] = (address["spec"]["prefix"], address["spec"].get("gateway"))
    assert [by_network[network] for network in ("10.0.0", "10.0.1")] == expected
