"""Pool objects: the reference provider's cases of webhooks, conversions and pool arithmetic, and what they are here.

The cases of cluster-api-ipam-provider-in-cluster at bc27dd7. Its pool objects have the addresses themselves; ours name
a pool of the register, which has them, and there is no webhook: what an object cannot be is refused by its definition
(deploy/crds/ipam.cadastre.dev.yaml), and otherwise its condition Ready says it.

| case there | here |
|---|---|
| webhooks: pool deletion with existing IPAddresses | a finalizer: test_release.py, `a_pool_with_addresses_is_protected` |
| webhooks: updating pool in use addresses; prefix pools: update rejects orphaned allocations, excluded prefixes | below: the register keeps the CIDR; an object that names another pool leaves addresses where they are |
| webhooks: delete skip | nothing to skip: `clusterctl move` removes finalizers itself |
| webhooks: defaulting, prefix without a gateway, /0 | the prefix is that of the CIDR: test_claims.py, `a_pool_of_single_addresses`; test_versions.py, `the_counts_of_a_pool` |
| webhooks: addresses must be set; invalid gateway; negative, invalid prefix | below, and tests/core/test_clusters.py, `an_invalid_pool_names_its_field` |
| webhooks: an address that is invalid, ranges out of order, CIDR with an invalid prefix | the register's parser of CIDRs and ranges: tests/core/test_addresses.py |
| webhooks: addresses of separate subnets (eight cases) | a pool may have CIDRs of several networks, each with its own prefix length: below; a prefix that divides one: test_versions.py, `a_pool_that_cannot_be_used` |
| webhooks: mixed families of addresses, excluded addresses, gateway | a pool may have both: test_claims.py, `an_ipv6_claim`; the gateway: below |
| webhooks: negative grace period | the cooldown of the pool: tests/pools, constraint `pool_cooldown` |
| prefix pools (all) | none: a claim gets one address, a pool of larger blocks is not ready: test_versions.py |
| conversions v1alpha1, v1alpha2 of pools | none: one version of our objects; the contract's two: test_versions.py |
| conversions: fuzzy | tests/core/test_clusters.py, `any_object_is_read_or_refused` |
| poolutil: sets, free addresses, counts | reserved ranges and blocks of the register: tests/core/test_layout.py; counts: test_versions.py |
| controllers: pool status, finalizer | test_versions.py, `the_status_of_a_pool`, `the_counts_of_a_pool` |
| predicates: claim references pool kind | tests/core/test_clusters.py, `claims_of_others` |
"""

import pytest

from pools.core import errors
from pools.models import PoolCIDR
from pools.register import pools
from tests import factories
from tests.cluster_api.world import World

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_cidr_with_addresses_of_claims_is_not_removed(world: World) -> None:
    """Updating a pool in use: pool addresses do not contain allocated addresses."""
    pool = world.pool("10.0.0.0/29", "10.0.1.0/29")
    world.put_pool("pool")
    world.follow_claims("test")
    with pytest.raises(
        errors.CIDRInUse, match=r"ipaddressclaim blue/test \(10\.0\.0\.1/32, held\)"
    ):
        pools.remove_cidr(factories.cidr(pool, "10.0.0.0/29").pk, author=factories.BY)
    with pytest.raises(errors.PoolInUse, match="ipaddressclaim blue/test"):
        pools.delete(pool.pk, author=factories.BY)
    pools.remove_cidr(factories.cidr(pool, "10.0.1.0/29").pk, author=factories.BY)
    assert [str(row) for row in PoolCIDR.objects.filter(pool=pool)] == ["10.0.0.0/29"]


@pytest.mark.exhaustive
def test_an_object_that_names_another_pool_leaves_addresses_where_they_are(world: World) -> None:
    world.pool("10.0.0.0/29")
    world.serve("test", cidr="10.0.1.0/29", name="other")
    world.put_pool("pool", pool_name="other")
    world.follow_claims("late")
    assert (world.address_text("test"), world.address_text("late")) == ("10.0.0.1", "10.0.1.1")
    assert world.held() == {"blue/test": "10.0.0.1", "blue/late": "10.0.1.1"}
    world.delete_claim("test")
    world.sync()
    assert world.held() == {"blue/late": "10.0.1.1"}


@pytest.mark.exhaustive
def test_addresses_of_several_networks_have_the_prefix_length_of_each(world: World) -> None:
    """Specifying an address that belongs to separate subnets: no error here, where each CIDR is a network."""
    world.pool("10.0.0.0/30", "10.0.1.0/24")
    world.put_pool("pool", gateway="10.0.1.1")
    world.follow_claims("one", "two", "three")
    specs = [world.address(name)["spec"] for name in ("one", "three", "two")]  # type: ignore[index]
    assert sorted((spec["address"], spec["prefix"], spec.get("gateway", "")) for spec in specs) == [
        ("10.0.0.1", 30, ""),
        ("10.0.0.2", 30, ""),
        ("10.0.1.2", 24, "10.0.1.1"),
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("cidr", "gateway"), [("10.0.0.0/24", "fd00::1"), ("fd00::/120", "10.0.0.1")]
)
def test_a_gateway_of_the_other_family(world: World, cidr: str, gateway: str) -> None:
    """Addresses are IPv4 and Gateway is IPv6, and the reverse."""
    world.pool(cidr)
    world.put_pool("pool", gateway=gateway)
    world.follow_claims("test")
    assert world.ready("test") == ("False", "PoolNotReady")
    assert world.held() == {}
    world.put_pool("pool")
    world.sync()
    assert world.ready("test") == ("True", "Ready")
