"""Overlaps across address spaces are found, not refused."""

from ipaddress import IPv4Network, ip_network
from typing import Any

import pytest
from django.db import connection

from pools.models import AddressSpace, Cluster, Pool, PoolCIDR
from pools.register import overlaps
from pools.register.overlaps import OverlapKind
from tests import factories


def _told(**filters: Any) -> list[list[str]]:
    return [
        [f"{network} {owner.pool or owner.category}" for network, owner in overlap.members]
        for overlap in overlaps.find_overlaps(**filters)
    ]


def test_with_a_vm_network_of_the_same_cluster() -> None:
    cluster = factories.cluster()
    isolated = AddressSpace.objects.create(cluster=cluster, name="blue")
    factories.pool("10.0.0.0/24", within=cluster, space=isolated, name="vms")
    factories.pool("10.0.0.0/16", within=cluster, category="pod", mask=24, name="pods")
    (overlap,) = overlaps.find_overlaps()
    assert overlap.kinds == {OverlapKind.VM_NETWORK}
    assert [owner.space for _, owner in overlap.members] == ["", "blue"]


def test_with_an_overlay_prefix() -> None:
    factories.cluster(cluster_prefix=ip_network("fd00:10::/48"))
    factories.pool("fd00:10:0:1::/120", name="v6", category="pod", mask=124)
    assert _told() == [
        ["fd00:10::/48 prefix", "fd00:10:0:1::/64 instances", "fd00:10:0:1::/120 v6"]
    ]
    assert overlaps.find_overlaps()[0].kinds == {OverlapKind.CLUSTERS, OverlapKind.OVERLAY}


def test_a_cluster_s_own_prefix_and_pools_are_none() -> None:
    factories.cluster(cluster_prefix=ip_network("fd00:10::/48"))
    assert overlaps.find_overlaps() == []


def _fleet(*, apart: int) -> None:
    """1,000 clusters with 20 CIDRs each, all alike or so many CIDRs apart."""
    clusters = Cluster.objects.bulk_create(Cluster(name=f"c{n}") for n in range(1000))
    spaces = AddressSpace.objects.bulk_create(AddressSpace(cluster=cluster) for cluster in clusters)
    pools = Pool.objects.bulk_create(
        Pool(cluster=space.cluster, space=space, name="p", category="pod", mask_size_v4=24)
        for space in spaces
    )
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pools_poolcidr DISABLE TRIGGER USER")
    PoolCIDR.objects.bulk_create(
        PoolCIDR(
            pool=pool,
            space=pool.space,
            cidr=IPv4Network(((10 << 24) + 256 * (n + number * apart), 24)),
            position=n,
        )
        for number, pool in enumerate(pools)
        for n in range(20)
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(("apart", "groups"), [(0, 20), (32, 0)], ids=["all alike", "different"])
def test_a_thousand_clusters_are_one_query_and_as_many_groups_as_there_are(
    apart: int, groups: int, django_assert_num_queries: Any
) -> None:
    _fleet(apart=apart)
    with django_assert_num_queries(1):
        result = overlaps.find_overlaps()
    assert len(result) == groups


def test_the_first_overlapping_networks_without_those_of_a_pool() -> None:
    own_pool = factories.pool("10.9.0.0/24", "10.0.0.0/24", name="own")
    for name, cidr in (("c", "10.0.3.0/24"), ("a", "10.0.2.0/24"), ("b", "10.0.1.0/24")):
        factories.pool(cidr, name=name)
    factories.cluster(cluster_prefix=ip_network("fd00:10::/48"))

    def overlapping_pools(**options: Any) -> list[str]:
        rows = overlaps.find_overlapping_networks(ip_network("10.0.0.0/16"), **options)
        return sorted(owner.pool for _network, owner in rows)

    assert overlapping_pools() == ["a", "b", "c", "own"]
    assert overlapping_pools(most=2) == ["b", "own"]  # by their addresses
    assert overlapping_pools(most=2, other_than=own_pool.pk) == ["a", "b"]
