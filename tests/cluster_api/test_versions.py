"""The versions of the contract: v1beta2, v1beta1 beside it, v1beta1 alone; kinds that are absent."""

from typing import Any

import pytest

from pools.core.cluster_api import contract
from pools.models import ManagedResource, ObservedObject
from tests.cluster_api.conftest import ADDRESSES, CLAIMS, CLUSTERS, OLD, POOLS
from tests.cluster_api.world import HANDLERS, World
from tests.kube import gateways
from tests.kube.manifests import build
from tests.reconcile import small

pytestmark = pytest.mark.django_db(transaction=True)


def _status(world: World, name: str) -> dict[str, Any]:
    claim = world.claim(name)
    status: dict[str, Any] = claim["status"]
    return status


def _served(world: World) -> None:
    world.serve("test", cidr="10.0.0.1/32")
    assert world.address_text("test") == "10.0.0.1"
    world.follow_claims("late")


@pytest.mark.exhaustive
def test_both_forms_of_v1beta2(world: World) -> None:
    assert world.version == "v1beta2"
    _served(world)
    ready, exhausted = _status(world, "test"), _status(world, "late")
    (condition,) = ready["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Ready",
        "True",
        "Ready",
    )
    assert condition["observedGeneration"] == 1
    (old,) = ready["deprecated"]["v1beta1"]["conditions"]
    assert {"type": "Ready", "status": "True"}.items() <= old.items()
    assert "severity" not in old
    (old,) = exhausted["deprecated"]["v1beta1"]["conditions"]
    assert (old["status"], old["severity"], old["reason"]) == ("False", "Warning", "PoolExhausted")
    assert exhausted["conditions"][0]["reason"] == "PoolExhausted"
    assert "addressRef" not in exhausted


@pytest.mark.exhaustive
@pytest.mark.parametrize("definitions", [OLD], ids=["v1beta1"])
def test_v1beta1_alone(world: World, definitions: object) -> None:
    assert world.version == "v1beta1"
    _served(world)
    address = world.address("test")
    assert address["apiVersion"] == "ipam.cluster.x-k8s.io/v1beta1"
    assert address["metadata"]["ownerReferences"][0]["apiVersion"] == address["apiVersion"]
    ready, exhausted = _status(world, "test"), _status(world, "late")
    assert ready["addressRef"] == {"name": "test"}
    assert set(ready) == {"addressRef", "conditions"}, "this release has no other conditions"
    assert ready["conditions"][0]["status"] == "True"
    (condition,) = exhausted["conditions"]
    assert (condition["severity"], condition["reason"]) == ("Warning", "PoolExhausted")
    run = world.sync()
    assert sum(item["written"] for item in run.kinds.values()) == 0
    world.delete_claim("test")
    world.sync()
    assert world.claim("test") is None


@pytest.mark.exhaustive
def test_a_claim_made_in_v1beta1_is_answered_in_v1beta2(world: World) -> None:
    """As an infrastructure provider of an older release makes it, while both versions are served."""
    world.pool("10.0.0.0/24")
    world.put_pool("pool")
    old_claims, old_addresses = contract.CLAIMS[1], contract.ADDRESSES[1]
    reference = {"apiGroup": contract.GROUP, "kind": contract.POOL_KIND, "name": "pool"}
    version, kind = old_claims.api_version, contract.CLAIM_KIND
    manifest = build(version, kind, "test", "blue", spec={"poolRef": reference})
    world.client.apply(old_claims, manifest, manager="capv")
    world.sync()
    assert world.client.get(old_addresses, "test", "blue")["spec"] == {
        "address": "10.0.0.1",
        "claimRef": {"name": "test"},
        "poolRef": reference,
        "prefix": 24,
    }
    assert world.client.get(old_claims, "test", "blue")["status"]["addressRef"] == {"name": "test"}
    old_claim = world.client.get(old_claims, "test", "blue")
    world.client.delete(old_claims, "test", "blue", uid=old_claim["metadata"]["uid"])
    world.sync()
    assert world.claim("test") is None
    assert world.held() == {}


@pytest.mark.parametrize("definitions", [()], ids=["nothing"])
def test_without_cluster_api_nothing_of_it_is_done(
    server: Any, db: None, definitions: object
) -> None:
    connection = small.connect(server, managed_resources=[ManagedResource.POOLS])
    run = small.reconcile(connection, *HANDLERS, open_client=lambda _: gateways.to(server))
    assert not run.error_code
    assert not any(item.get("code") for item in run.kinds.values())
    assert not ObservedObject.objects.exists()


@pytest.mark.parametrize("definitions", [(CLAIMS, ADDRESSES, CLUSTERS)], ids=["no-pools"])
def test_without_the_definition_of_pools(world: World, definitions: object) -> None:
    """No CRD of ours: a condition, never an exception; the missing CRD is named."""
    world.put_claim("test")
    run = world.reconcile()
    assert run.kinds["CadastrePool"]["code"] == "crd_missing"
    assert world.ready("test") == ("False", "PoolNotReady")
    world.delete_claim("test")
    world.reconcile()
    assert world.claim("test") is None


def test_a_cluster_without_the_managed_resource_is_only_read(server: Any, db: None) -> None:
    world = World(server, ManagedResource.POOLS)
    world.pool("10.0.0.0/24")
    world.put_pool("pool")
    claim = world.put_claim("test")
    world.follow_claims("foreign", group="ipam.cluster.x-k8s.io", kind="InClusterIPPool")
    assert world.claim("test") == claim
    assert world.held() == {}
    assert world.findings() == {"cluster_api_off"}
    assert POOLS.is_file()


CASES = {
    "no such pool": ({}, {"pool_name": "elsewhere"}, "has no pool elsewhere"),
    "pods": ({"category": "pod", "mask": 32}, {}, "category pod"),
    "instances": ({"category": "instance", "cooldown": 3600}, {}, "category instance"),
    "mask size": ({"mask": 28}, {}, "needs the mask size 32"),
    "other family": ({}, {"family": 6}, "no IPv6 addresses"),
    "gateway": ({}, {"gateway": "fd00::1"}, "no IPv4 address"),
    "no address": ({}, {"gateway": "10.0.0.999"}, "spec.gateway"),
    "prefix": ({}, {"prefix": 64}, "longer than an IPv4 address"),
    "several networks": ({}, {"prefix": 26}, "divides 10.0.0.0/24 of"),
}


@pytest.mark.sample(9)
@pytest.mark.parametrize("case", CASES)
def test_a_pool_that_cannot_be_used_is_said_so(world: World, case: str) -> None:
    settings, spec, message = CASES[case]
    world.pool("10.0.0.0/24", **settings)  # type: ignore[arg-type]
    world.put_pool("pool", **spec)  # type: ignore[arg-type]
    world.put_claim("test")
    world.reconcile()
    assert world.ready("test") == ("False", "PoolNotReady")
    claim = world.claim("test")
    assert message in claim["status"]["conditions"][0]["message"]
    pool = world.pool_object()
    assert pool["status"]["conditions"][0]["status"] == "False"


@pytest.mark.exhaustive
def test_the_status_of_a_pool(world: World) -> None:
    """It shows the total, used, free ip addresses in the pool."""
    world.serve("one", "two", gateway="10.0.0.1", reserved=["10.0.0.128-10.0.0.191"], cooldown=3600)
    world.delete_claim("two")
    world.sync()
    pool = world.pool_object()
    assert pool["status"]["addresses"] == {
        "capacity": "254",
        "held": "1",
        "cooling": "1",
        "reserved": "65",
        "free": "187",
    }
    assert pool["status"]["conditions"][0]["status"] == "True"
    assert pool["metadata"]["finalizers"] == [contract.POOL_FINALIZER]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("cidr", "gateway", "claims", "free"),
    [
        ("10.0.0.0/28", "", 1, 13),
        ("10.0.0.0/28", "", 2, 12),
        ("10.0.0.0/28", "10.0.0.10", 1, 12),
        ("10.0.0.0/28", "10.0.0.10", 2, 11),
        ("10.0.0.0/28", "10.0.9.1", 1, 13),
        ("10.0.0.0/30", "10.0.0.1", 1, 0),  # network and broadcast address
        ("fd00::ff00/120", "fe80::a", 1, 254),  # the last one of IPv6 is an address like any other
        ("fd00::ffff/128", "fe80::a", 1, 0),
    ],
)
@pytest.mark.parametrize("is_global", [False, True], ids=["namespaced", "global"])
def test_the_counts_of_a_pool(
    world: World, cidr: str, gateway: str, claims: int, free: int, is_global: bool
) -> None:
    """When there are claims, and no gateway, one in the range, one outside of it."""
    world.pool(cidr)
    put_pool = world.put_global_pool if is_global else world.put_pool
    put_pool("pool", **({"gateway": gateway} if gateway else {}))
    for number in range(claims):
        world.put_claim(f"test-{number}", kind=contract.POOL_KINDS[is_global])
    world.sync()
    pool = world.pool_object(namespace="" if is_global else "blue")
    counts = pool["status"]["addresses"]
    assert (counts["held"], counts["free"]) == (str(claims), str(free))
