"""The next free prefix of a container, asked for by many at once: no two overlap."""

import itertools
from collections.abc import Callable
from functools import partial
from ipaddress import IPv6Network, ip_network

import pytest

from pools.core import errors
from pools.core.cilium.podippool import Family
from pools.models import Cluster, Container, Pool, PoolCIDR
from pools.register import clusters, pools
from pools.register.plan import containers, next_prefix
from tests import factories
from tests.concurrent import threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_deadlock")]
BY = factories.BY


def test_concurrent_calls_never_get_cidrs_that_overlap() -> None:
    outer = containers.create(ip_network("10.0.0.0/16"), author=BY)
    inner = containers.create(ip_network("10.0.0.0/18"), author=BY)
    clusters = [factories.cluster() for _ in range(4)]
    works: list[Callable[[], object]] = []
    for number in range(8):
        works += [
            partial(next_prefix.create_container, outer.pk, 20 + number % 4, author=BY),
            partial(
                next_prefix.create_pool, inner.pk, 22, cluster=clusters[number % 4],
                name=f"p{number}", category="pod", mask_size=24, author=BY,
            ),
        ]  # fmt: skip
    results = threads.together(works)
    assert threads.failures(results) == []
    cidrs = [row.cidr for row in Container.objects.exclude(pk__in=[outer.pk, inner.pk])]
    pools = [row.cidr for row in PoolCIDR.objects.all()]
    assert all(cidr.subnet_of(inner.cidr) for cidr in pools)
    assert len(cidrs) + len(pools) == 16
    for first, other in itertools.combinations([*cidrs, *pools], 2):
        assert not first.overlaps(other), (first, other)


def test_the_last_prefix_has_one_owner() -> None:
    container = containers.create(ip_network("10.0.0.0/24"), author=BY)
    work = partial(next_prefix.create_container, container.pk, 25, author=BY)
    results = threads.together([work] * 6)
    failures = threads.failures(results)
    assert len(failures) == 4
    assert all(isinstance(failure, errors.NoFreePrefix) for failure in failures)


def _create(_: Pool) -> object:
    return factories.pool("2001:db8::/56", category="instance", name="typed")


def _add(pool: Pool) -> object:
    return pools.add_cidr(pool.pk, factories.entry("2001:db8::/56"), author=BY)


def _change(pool: Pool) -> object:
    entries = tuple(map(factories.entry, ("fd00::/56", "2001:db8::/56")))
    change = pools.PoolChange(families={6: Family(entries, 128)})
    return pools.change(pool.pk, change, author=BY)


def _create_cluster(_: Pool) -> object:
    return clusters.create("new", cluster_prefix=IPv6Network("2001:db8::/56"), author=BY)


def _set_prefix(pool: Pool) -> object:
    cluster = Cluster.objects.exclude(pk=pool.cluster_id).get()
    values = {"cluster_prefix": IPv6Network("2001:db8::/56")}
    return clusters.change(cluster, values, author=BY)


@pytest.mark.parametrize("typed", [_create, _add, _change, _create_cluster, _set_prefix])
def test_what_somebody_types_at_the_same_moment_is_not_free(
    typed: Callable[[Pool], object],
) -> None:
    container = containers.create(ip_network("2001:db8::/52"), author=BY)
    pool = factories.pool("fd00::/56", category="instance")
    cluster = factories.cluster()
    work = partial(
        next_prefix.create_pool, container.pk, 56, cluster=cluster, name="next",
        category="pod", mask_size=64, author=BY,
    )  # fmt: skip
    passing = threads.in_passing(partial(typed, pool), commit=True)
    results = threads.together([passing, threads.meanwhile(work)])
    assert threads.failures(results) == []
    (handed_out,) = Pool.objects.get(name="next").cidrs.all()
    others = [row.cidr for row in PoolCIDR.objects.exclude(pk=handed_out.pk)]
    others += [row.cluster_prefix for row in Cluster.objects.exclude(cluster_prefix=None)]
    assert not any(cidr.overlaps(handed_out.cidr) for cidr in others), (handed_out, others)
