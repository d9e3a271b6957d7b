"""A cluster gets its prefix at the moment at which somebody makes a pool outside of it."""

from collections.abc import Callable
from functools import partial
from ipaddress import IPv6Network

import pytest

from pools.core import errors
from pools.models import Cluster, PoolCIDR
from pools.register import clusters, pools
from tests import factories
from tests.concurrent import threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_deadlock")]
PREFIX = IPv6Network("2001:db8:10::/48")


def _set_prefix(cluster: Cluster) -> object:
    return clusters.change(cluster, {"cluster_prefix": PREFIX}, author=factories.BY)


def _divide(cluster: Cluster) -> object:
    return clusters.divide_prefix(cluster, PREFIX, author=factories.BY)


@pytest.mark.parametrize("give", [_set_prefix, _divide])
@pytest.mark.parametrize("name", ["more", clusters.INSTANCE_POOL])
@pytest.mark.parametrize("prefix_first", [True, False])
def test_one_of_both_is_refused(
    give: Callable[[Cluster], object], name: str, prefix_first: bool
) -> None:
    cluster = factories.cluster()
    add = partial(
        factories.pool, "2001:db8:20::/64", category="instance", within=cluster, name=name
    )
    works: list[Callable[[], object]] = [partial(give, cluster), add]
    first, second = works if prefix_first else works[::-1]
    passing = threads.in_passing(first, commit=True)
    results = threads.together([passing, threads.meanwhile(second)])
    (failure,) = threads.failures(results)
    assert isinstance(failure, errors.IpamError), failure
    prefix = Cluster.objects.get(pk=cluster.pk).cluster_prefix
    for row in PoolCIDR.objects.filter(pool__cluster=cluster):
        assert prefix is None or row.cidr.subnet_of(prefix)


def test_a_cidr_that_is_added_meanwhile() -> None:
    cluster = factories.cluster()
    pool = factories.pool("2001:db8:10:5::/64", category="instance", within=cluster)
    entry = factories.entry("2001:db8:20::/64")
    add = partial(pools.add_cidr, pool.pk, entry, author=factories.BY)
    passing = threads.in_passing(partial(_set_prefix, cluster), commit=True)
    results = threads.together([passing, threads.meanwhile(add)])
    (failure,) = threads.failures(results)
    assert isinstance(failure, errors.InvalidInput), failure
