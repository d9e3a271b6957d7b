"""What forms offer: the first free CIDRs for a cluster, in which nothing is used, and a pool's next free block."""

from ipaddress import ip_network
from typing import Any

import pytest

from pools.core.observed.uses import Role
from pools.models import AddressSpace, Cluster
from pools.register.plan import containers, free_space
from tests import factories
from tests.observed import rows

pytestmark = pytest.mark.django_db


def _space(cluster: Cluster) -> AddressSpace:
    return AddressSpace.objects.select_related("cluster").get(cluster=cluster, name="")


def _container(text: str, **options: Any) -> None:
    containers.create(ip_network(text), author=factories.BY, **options)


def _offered(length: int, cluster: Cluster | None = None, **options: Any) -> list[str]:
    space = _space(cluster) if cluster else None
    return [str(cidr) for cidr, _ in free_space.offer_prefixes(length, space, **options)]


def test_nothing_that_is_used_is_inside_of_what_is_offered() -> None:
    """Each kind of use has one /24 of the /20; the two others are free."""
    cluster = factories.cluster()
    isolated = AddressSpace.objects.create(cluster=cluster, name="blue")
    _container("10.0.0.0/20", space=_space(cluster), name="mine")
    factories.pool("10.0.0.0/24", within=cluster, category="pod", mask=28)
    factories.pool("10.0.1.128/25", within=cluster, space=isolated)
    _container("10.0.2.0/24", space=_space(cluster), name="full")
    factories.pool("10.0.2.0/24", within=cluster, category="pod", mask=28)
    for number, role in enumerate(Role):
        rows.observed(cluster, role, f"10.0.{number + 4}.7/32")
    free = ["10.0.3.0/24", *(f"10.0.{number}.0/24" for number in range(4 + len(Role), 16))]
    assert _offered(24, cluster, limit=16) == free
    for text in free:
        factories.pool(text, within=cluster, category="pod", mask=28)
    assert _offered(24, cluster) == []
    assert free_space.has_parents(24, _space(cluster))


def test_the_cluster_s_containers_come_before_its_prefix_and_the_fleet_s() -> None:
    cluster = factories.cluster(cluster_prefix=ip_network("fd00:10::/48"))
    _container("fd00:99::/56", name="fleet")
    _container("fd00:20::/56", space=_space(cluster), name="mine")
    offers = free_space.offer_prefixes(57, _space(cluster))
    names = [(str(cidr), name) for cidr, name in offers]
    assert names[:2] == [("fd00:20::/57", "mine"), ("fd00:20:0:80::/57", "mine")]
    # The pools of nodes and instances have the first two /64 of the prefix.
    assert names[2] == ("fd00:10:0:80::/57", f"{cluster}: fd00:10::/48")
    assert _offered(57, factories.cluster()) == ["fd00:99::/57", "fd00:99:0:80::/57"]
    assert _offered(57) == ["fd00:99::/57", "fd00:99:0:80::/57"]
    assert _offered(32, cluster) == []  # no container is that large


def test_what_the_fleet_planned_for_another_cluster_is_not_offered() -> None:
    other = factories.cluster(cluster_prefix=ip_network("fd00:10::/48"))
    cluster = factories.cluster()
    _container("fd00:10:0:100::/56", name="in the prefix of the other")
    _container("10.1.0.0/16", space=_space(other))
    _container("10.1.0.0/20", name="in its container")
    assert (_offered(64, cluster), _offered(24, cluster)) == ([], [])
    assert _offered(24, other)[0] == "10.1.0.0/24"
    factories.pool("10.2.0.0/15", within=other, category="pod", mask=24)
    _container("10.3.0.0/16", name="inside of its pool")
    assert _offered(24, cluster) == []


def test_without_a_container_nothing_can_be_free() -> None:
    cluster = factories.cluster()
    assert not free_space.has_parents(24, _space(cluster))
    assert _offered(24, cluster) == []


def test_the_next_free_block_is_neither_held_nor_cooling_nor_reserved() -> None:
    pool = factories.pool(
        "10.0.0.0/29", "10.1.0.0/29", reserved=["10.0.0.2-10.0.0.3"], cooldown=3600
    )
    assert _next(pool) == "10.0.0.1/32"
    block = factories.take(pool, cidr="10.0.0.1/32")
    assert _next(pool) == "10.0.0.4/32"
    factories.give_back(block)
    assert _next(pool) == "10.0.0.4/32"
    while (text := _next(pool)) is not None:
        assert factories.take(pool, cidr=text)["cidr"] == text
    assert text is None


def test_the_next_free_block_of_a_family() -> None:
    pool = factories.pool("10.0.0.0/23", "fd00:1::/119", category="pod", mask={4: 24, 6: 120})
    assert (_next(pool), _next(pool, 6)) == ("10.0.0.0/24", "fd00:1::/120")
    for _ in range(2):
        factories.take(pool, family=4)
    assert (_next(pool, 4), _next(pool)) == (None, "fd00:1::/120")


def _next(pool: Any, family: int | None = None) -> str | None:
    block = free_space.next_free_block(pool, family)
    return str(block) if block else None
