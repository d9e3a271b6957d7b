"""Rule `cidrs-never-overlap`; another space may have the same ones."""

import pytest

from pools.core import errors
from pools.models import AddressSpace, PoolCIDR
from pools.register import pools
from tests import factories

OVERLAPS = [
    ("10.0.0.0/16", "10.0.0.0/16"),
    ("10.0.0.0/16", "10.0.4.0/24"),
    ("10.0.4.0/24", "10.0.0.0/16"),
    ("10.0.255.0/24", "10.0.254.0/23"),
    ("fd00::/64", "fd00::ff00/120"),
]


@pytest.mark.parametrize(("first", "other"), OVERLAPS)
def test_the_service_names_the_pool_in_the_way(first: str, other: str) -> None:
    pool = factories.pool(first, name="first")
    with pytest.raises(errors.CIDROverlap, match=f"{other} overlaps {first} of the pool .*first"):
        factories.pool(other, within=pool.cluster)
    assert pool.cluster.pools.count() == 1


@pytest.mark.sample(3)
@pytest.mark.parametrize(("first", "other"), OVERLAPS)
def test_the_database_holds_it(first, other, breaks) -> None:
    pool = factories.pool(first)
    second = factories.pool("192.168.0.0/16", "fd01::/64", within=pool.cluster)
    with breaks("cidrs_of_a_space_never_overlap"):
        PoolCIDR.objects.bulk_create([PoolCIDR(pool=second, space=pool.space, cidr=other)])


def test_within_one_pool() -> None:
    pool = factories.pool("10.0.0.0/24")
    with pytest.raises(errors.CIDROverlap):
        pools.add_cidr(pool.pk, factories.entry("10.0.0.128/25"), author=factories.BY)


def test_neighbours_do_not_overlap() -> None:
    pool = factories.pool("10.0.0.0/24", "10.0.1.0/24", "fd00::/64", "fd00:0:0:1::/64")
    assert pool.cidrs.count() == 4


def test_another_cluster_has_the_same_cidr_and_the_same_addresses() -> None:
    first, other = factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")
    assert factories.take(first)["cidr"] == factories.take(other)["cidr"] == "10.0.0.1/32"


def test_another_space_of_the_same_cluster_too() -> None:
    first = factories.pool("10.0.0.0/24")
    isolated = AddressSpace.objects.create(cluster=first.cluster, name="red")
    other = factories.pool("10.0.0.0/24", within=first.cluster, space=isolated)
    assert factories.take(first)["cidr"] == factories.take(other)["cidr"]


def test_a_cidr_lies_in_the_space_of_its_pool(breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    isolated = AddressSpace.objects.create(cluster=pool.cluster, name="red")
    with breaks("cidr_in_pools_space"):
        PoolCIDR.objects.bulk_create([PoolCIDR(pool=pool, space=isolated, cidr="10.1.0.0/24")])


def test_a_removed_cidr_may_belong_to_another_pool() -> None:
    first = factories.pool("10.0.0.0/24", "10.0.1.0/24")
    pools.remove_cidr(factories.cidr(first, "10.0.1.0/24").pk, author=factories.BY)
    other = factories.pool("10.0.1.0/24", within=first.cluster)
    assert factories.take(other)["cidr"] == "10.0.1.1/32"
