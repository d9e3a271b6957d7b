"""Rule `cluster-prefix-is-divided`: node and instance pools."""

from ipaddress import IPv6Network
from typing import Any

import pytest

from pools.core import errors
from pools.models import Cluster, Pool
from pools.register import clusters, pools
from tests import factories


def _prefixes(cluster: Cluster) -> dict[str, str]:
    result = Pool.objects.filter(cluster=cluster).order_by("name")
    return {pool.category: str(factories.cidr(pool).cidr) for pool in result}


DIVIDED: list[Any] = [
    ("2001:db8:10::/48", {}, "2001:db8:10::/64", "2001:db8:10:1::/64"),
    ("2001:db8:10::/63", {}, "2001:db8:10::/64", "2001:db8:10:1::/64"),
    ("2001:db8:10::/64", {}, "2001:db8:10::/80", "2001:db8:10:0:1::/80"),
    (
        "2001:db8:10::/48",
        {"node_prefix": "2001:db8:10:f::/64", "instance_prefix": "2001:db8:10:8000::/49"},
        "2001:db8:10:f::/64",
        "2001:db8:10:8000::/49",
    ),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("prefix", "parts", "node", "instance"), DIVIDED)
def test_it_is_divided(prefix: str, parts: dict[str, str], node: str, instance: str) -> None:
    networks = {name: IPv6Network(text) for name, text in parts.items()}
    cluster = factories.cluster(cluster_prefix=IPv6Network(prefix), **networks)
    assert _prefixes(cluster) == {"node": node, "instance": instance}
    assert str(Cluster.objects.get(pk=cluster.pk).cluster_prefix) == prefix
    for pool in cluster.pools.all():
        assert (pool.mask_size_v6, pool.mask_size_v4) == (128, None)
        assert factories.take(pool)["address"] == str(factories.cidr(pool).cidr[1])
    assert dict(cluster.pools.values_list("category", "cooldown_seconds")) == {
        "node": 30 * 86400,
        "instance": 86400,
    }


REFUSED: list[Any] = [
    ("2001:db8:10::/65", {}, "cluster_prefix"),
    ("2001:db8:10::/48", {"node_prefix": "2001:db8:11::/64"}, "outside_cluster_prefix"),
    (
        "2001:db8:10::/48",
        {"node_prefix": "2001:db8:10::/64", "instance_prefix": "2001:db8:10::/56"},
        "cidr_overlap",
    ),
]


@pytest.mark.parametrize(("prefix", "parts", "code"), REFUSED)
def test_refused_as_a_whole(prefix: str, parts: dict[str, str], code: str) -> None:
    networks = {name: IPv6Network(text) for name, text in parts.items()}
    with pytest.raises(errors.InvalidInput) as caught:
        factories.cluster(cluster_prefix=IPv6Network(prefix), **networks)
    assert caught.value.code == code
    assert not Cluster.objects.exists()
    assert not Pool.objects.exists()


def test_it_grows_by_further_cidrs_without_renumbering() -> None:
    cluster = factories.cluster(cluster_prefix=IPv6Network("2001:db8:10::/48"))
    pool = cluster.pools.get(category="node")
    node = factories.holder(kind="node")
    held = factories.take(pool, node)
    factories.reserve(pool, "2001:db8:10::/64")
    pools.add_cidr(pool.pk, factories.entry("2001:db8:10:20::/64"), author=factories.BY)
    assert factories.take(pool, node)["id"] == held["id"]
    new = factories.take(pool, factories.holder(kind="node"))
    assert new["address"] == "2001:db8:10:20::1"


def test_a_prefix_that_is_in_use_is_not_divided() -> None:
    cluster = factories.pool("2001:db8:10:1::/120").cluster
    with pytest.raises(errors.CIDROverlap):
        clusters.divide_prefix(cluster, IPv6Network("2001:db8:10::/48"), author=factories.BY)
    assert Cluster.objects.get().cluster_prefix is None
    assert cluster.pools.count() == 1


def test_each_cluster_has_its_own_addresses() -> None:
    prefix = IPv6Network("2001:db8:10::/48")
    first, second = (factories.cluster(cluster_prefix=prefix) for _ in range(2))
    node = factories.holder(kind="node")
    got = [factories.take(item.pools.get(category="node"), node) for item in (first, second)]
    assert got[0]["cidr"] == got[1]["cidr"]
    assert got[0]["id"] != got[1]["id"]


def test_another_prefix_is_not_divided_beside_the_pools_of_the_first() -> None:
    """As the page of a cluster asks for it, which shows the prefix that the cluster has."""
    cluster = factories.cluster(cluster_prefix=IPv6Network("2001:db8:10::/48"))
    with pytest.raises(errors.ImmutableInUse):
        clusters.divide_prefix(cluster, IPv6Network("2001:db8:20::/48"), author=factories.BY)
    assert str(Cluster.objects.get(pk=cluster.pk).cluster_prefix) == "2001:db8:10::/48"
