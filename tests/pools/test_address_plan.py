"""The address plan: the tree of CIDRs, what is free in it, and the next free prefix."""

from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network
from typing import Any

import psycopg
import pytest
from django.urls import reverse

from pools.core import addresses, cidr_sets, errors
from pools.models import AddressSpace, Cluster, Container, ObservedCIDR, Pool, PoolCIDR
from pools.register import usage
from pools.register.plan import containers, free_space, next_prefix, tree
from tests import factories, people
from tests.edges import api as apis


def _container(text: str, **options: Any) -> Container:
    return containers.create(ip_network(text), author=factories.BY, **options)


def _shown(level: tree.PlanLevel) -> list[str]:
    return [f"{row.cidr}{' free' if row.free else ''}" for row in level.rows]


def test_levels_by_containment_with_free_parts() -> None:
    _container("10.0.0.0/8")
    _container("10.0.0.0/22")
    factories.pool("10.0.1.0/24", name="a")
    factories.pool("10.0.3.0/25", name="b")
    factories.pool("192.168.0.0/16", name="c")
    scope = free_space.fleet_scope()
    assert _shown(tree.read_level(scope)) == ["10.0.0.0/8", "192.168.0.0/16"]
    inner = tree.read_level(scope, ip_network("10.0.0.0/22"))
    assert _shown(inner) == [
        "10.0.0.0/24 free",
        "10.0.1.0/24",
        "10.0.2.0/24 free",
        "10.0.3.0/25",
        "10.0.3.128/25 free",
    ]
    (outer, *_) = tree.read_level(scope, ip_network("10.0.0.0/8")).rows
    assert outer.share == pytest.approx(0.375)


def test_clusters_with_the_same_cidr_share_a_row_of_the_fleet() -> None:
    first, second = factories.cluster(), factories.cluster()
    for cluster in (first, second):
        factories.pool("10.0.0.0/24", within=cluster, name="p")
    (row,) = tree.read_level(free_space.fleet_scope()).rows
    assert [cidr.pool.cluster for cidr in row.pool_cidrs] == [first, second]
    scope = free_space.scope_of_space(AddressSpace.objects.get(cluster=first))
    (row,) = tree.read_level(scope).rows
    assert [cidr.pool.cluster for cidr in row.pool_cidrs] == [first]


def test_a_cluster_is_shown_with_the_containers_around_it() -> None:
    _container("10.0.0.0/16")
    _container("10.1.0.0/16")
    first, second = factories.cluster(), factories.cluster()
    factories.pool("10.0.0.0/24", within=first, name="p")
    factories.pool("10.1.0.0/24", within=second, name="p")
    chosen = tree.LevelFilter(cluster=first)
    level = tree.read_level(free_space.fleet_scope(), level_filter=chosen)
    assert _shown(level) == ["10.0.0.0/16"]
    level = tree.read_level(
        free_space.fleet_scope(), ip_network("10.0.0.0/16"), level_filter=chosen
    )
    assert _shown(level) == ["10.0.0.0/24"]


def test_the_usage_of_each_cidr_adds_up_to_that_of_the_pool() -> None:
    pool = factories.pool(
        "10.0.0.0/29", "10.0.1.0/29", "fd00::/125", reserved=["10.0.1.2-10.0.1.3"], cooldown=600
    )
    for _ in range(8):
        block = factories.take(pool, family=4)
    factories.give_back(block)
    by_cidr = usage.usage_by_cidr(PoolCIDR.objects.select_related("pool"))
    whole = usage.pool_usage(pool)
    for family in (4, 6):
        parts = [by_cidr[row.pk] for row in pool.cidrs.all() if row.cidr.version == family]
        for name in ("capacity", "held", "cooling", "reserved", "free"):
            total = sum(getattr(part, name) for part in parts)
            assert total == getattr(whole[family], name), (family, name)


def test_first_fit_and_best_fit() -> None:
    container = _container("10.0.0.0/16")
    factories.pool("10.0.128.0/18", name="a")
    factories.pool("10.0.192.0/20", name="b")

    def find(order: free_space.Order, limit: int) -> list[str]:
        scope = free_space.scope_of(container)
        prefixes = free_space.find_prefixes(container.cidr, 20, scope, order=order, limit=limit)
        return [str(prefix) for prefix in prefixes]

    assert find(free_space.Order.FIRST_FIT, 2) == ["10.0.0.0/20", "10.0.16.0/20"]
    assert find(free_space.Order.BEST_FIT, 2) == ["10.0.208.0/20", "10.0.224.0/20"]


def _gaps(parent: addresses.Network, inner: Iterable[addresses.Network]) -> Iterator[cidr_sets.Gap]:
    position = int(parent.network_address)
    for network in inner:
        yield position, int(network.network_address) - 1
        position = int(network.broadcast_address) + 1
    yield position, int(parent.broadcast_address)


@pytest.mark.parametrize("parent", ["10.0.0.0/24", "2001:db8::/120"])
def test_arithmetic_against_every_address(parent: str) -> None:
    network = ip_network(parent)
    inner = [
        list(network.subnets(new_prefix=network.prefixlen + 4))[3],
        list(network.subnets(new_prefix=network.prefixlen + 7))[60],
    ]
    gaps = list(_gaps(network, sorted(inner)))
    parts = [part for gap in gaps for part in cidr_sets.split(gap, network.version)]
    free = [address for part in parts for address in part]
    assert free == [a for a in network if not any(a in item for item in inner)]
    length = network.prefixlen + 4
    expected = [
        prefix
        for prefix in network.subnets(new_prefix=length)
        if not any(prefix.overlaps(item) for item in inner)
    ]
    assert cidr_sets.first_fit(gaps, network.version, length, 100) == expected
    best = cidr_sets.best_fit(gaps, network.version, length, 100)
    assert sorted(best) == expected


def test_the_next_prefix_becomes_a_container_a_pool_or_a_cluster_prefix() -> None:
    api = apis.Api()
    api.cluster("prod")
    four = api.create("containers/", {"cidr": "10.0.0.0/16"})["id"]
    six = api.create("containers/", {"cidr": "2001:db8::/40"})["id"]
    path = f"containers/{four}/next-prefix/"
    created = api.create(path, {"prefix_length": 20, "purpose": "container", "name": "Rack"})
    assert created["cidr"] == "10.0.0.0/20"
    pool = {"cluster": "prod", "name": "green", "category": "pod", "mask_size": 24}
    body = {"prefix_length": 20, "purpose": "pool", **pool}
    first = api("POST", path, body, Idempotency_Key="k")
    assert first.json()["cidr"] == "10.0.16.0/20"
    assert api("POST", path, body, Idempotency_Key="k").json() == first.json()
    assert str(PoolCIDR.objects.get(pool=first.json()["id"]).cidr) == "10.0.16.0/20"
    body = {"prefix_length": 48, "purpose": "cluster_prefix", "cluster": "prod"}
    assert api.create(f"containers/{six}/next-prefix/", body)["cidr"] == "2001:db8::/48"
    answer = api("GET", f"containers/{four}/available-prefixes/?prefix_length=20&limit=1")
    assert answer.json() == {"results": ["10.0.32.0/20"]}
    level = api("GET", "address-plan/?parent=10.0.0.0/16&limit=2").json()
    assert [row["cidr"] for row in level["results"]] == ["10.0.0.0/20", "10.0.16.0/20"]
    assert level["next"] == "10.0.31.255"


def test_a_container_of_a_space_serves_its_own_cluster_only() -> None:
    first, second = factories.cluster(), factories.cluster()
    container = _container("10.0.0.0/24", space=AddressSpace.objects.get(cluster=first))
    with pytest.raises(errors.InvalidInput) as refused:
        next_prefix.create_pool(
            container.pk, 25, cluster=second, name="n", category="pod", mask_size=26,
            author=factories.BY,
        )  # fmt: skip
    assert refused.value.code == "other_address_space"


def _addresses(cluster: Cluster, *texts: str, role: str = "node-address") -> None:
    space = AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    for text in texts:
        ObservedCIDR.objects.create(
            space=space, kind="Node", name=text, uid=text, role=role, cidr=ip_network(text)
        )


def _grouped(parent: str = "", **options: Any) -> list[str]:
    network = ip_network(parent) if parent else None
    level = tree.read_level(free_space.fleet_scope(), network, group_addresses=True, **options)
    return [f"{row.cidr} grouped" if row.grouped else str(row.cidr) for row in level.rows]


def test_single_addresses_are_grouped_where_nothing_else_is() -> None:
    cluster = factories.cluster()
    _addresses(cluster, *(f"10.0.1.{number}" for number in range(7, 11)))
    _addresses(cluster, *(f"10.0.2.{number}" for number in range(7, 10)))
    _addresses(cluster, *(f"10.0.3.{number}" for number in range(7, 12)))
    _addresses(cluster, *(f"2001:db8::{number}" for number in range(1, 6)))
    factories.pool("10.0.3.128/25", name="p")
    three = ["10.0.2.7/32", "10.0.2.8/32", "10.0.2.9/32"]
    beside = [*(f"10.0.3.{number}/32" for number in range(7, 12)), "10.0.3.128/25"]
    outermost = ["10.0.1.0/24 grouped", *three, *beside, "2001:db8::/64 grouped"]
    assert _grouped() == outermost
    assert _grouped("10.0.1.0/24") == [f"10.0.1.{number}/32" for number in range(7, 11)]
    assert _shown(tree.read_level(free_space.fleet_scope()))[:2] == ["10.0.1.7/32", "10.0.1.8/32"]
    pages = [_grouped(limit=1), _grouped(limit=1, behind=ip_address("10.0.1.255"))]
    assert pages == [outermost[:1], outermost[1:2]]


def test_a_group_says_what_uses_its_addresses_and_is_not_free() -> None:
    _container("10.0.0.0/22")
    first, second = factories.cluster(), factories.cluster()
    _addresses(first, *(f"10.0.1.{number}" for number in range(1, 4)))
    _addresses(second, "10.0.1.3", role="egress")
    _addresses(second, "10.0.1.9", role="egress")
    level = tree.read_level(
        free_space.fleet_scope(), ip_network("10.0.0.0/22"), group_addresses=True
    )
    assert _shown(level) == ["10.0.0.0/24 free", "10.0.1.0/24", "10.0.2.0/23 free"]
    row = level.rows[1]
    counts = [(count.role, count.cluster, count.count) for count in row.address_counts]
    assert counts == [("egress", second.name, 2), ("node-address", first.name, 3)]
    assert row.share == pytest.approx(4 / 256)
    assert row.expandable


def test_a_group_of_a_cluster_has_its_addresses_only() -> None:
    first, second = factories.cluster(), factories.cluster()
    _addresses(first, *(f"10.0.1.{number}" for number in range(1, 6)))
    _addresses(second, *(f"10.0.1.{number}" for number in range(6, 8)))
    chosen = tree.LevelFilter(cluster=first)
    assert _grouped(level_filter=chosen) == ["10.0.1.0/24 grouped"]
    assert _grouped(level_filter=tree.LevelFilter(cluster=second)) == ["10.0.1.6/32", "10.0.1.7/32"]


@pytest.mark.exhaustive
def test_the_page_reads_the_first_pools_and_objects_of_a_cidr() -> None:
    created = [factories.pool("10.0.0.0/24", name=f"p-{number}") for number in range(7)]
    ObservedCIDR.objects.bulk_create(
        ObservedCIDR(
            space=pool.space, kind="Service", namespace="shop", name=f"s-{pool.pk}", uid=f"{pool.pk}",
            role="services", cidr="10.0.0.0/24",
        )
        for pool in created
    )  # fmt: skip
    page = people.browser().get(reverse("admin:plan"))
    (row,) = page.context["level"].rows
    assert [cidr.pool_id for cidr in row.pool_cidrs] == [pool.pk for pool in created[:5]]
    assert (len(row.usages), len(row.observed_cidrs)) == (5, 5)
    assert (row.more_pool_cidrs, row.more_observed_cidrs) == (2, 2)
    text = page.content.decode()
    assert "2 more pools" in text
    assert "2 more objects" in text
    (row,) = tree.read_level(free_space.fleet_scope()).rows  # as REST reads it
    assert (len(row.pool_cidrs), row.more_pool_cidrs) == (7, 0)
    last = {"cluster": created[-1].cluster_id}
    (row,) = people.browser().get(reverse("admin:plan"), last).context["level"].rows
    assert [cidr.pool_id for cidr in row.pool_cidrs] == [created[-1].pk]
    assert (len(row.observed_cidrs), row.more_pool_cidrs, row.more_observed_cidrs) == (1, 0, 0)


def test_the_only_cidr_of_a_family_is_counted_by_its_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    first = factories.pool("10.0.0.0/29", "fd00::/125", cooldown=600)
    second = factories.pool("10.1.0.0/29", "10.2.0.0/29")
    factories.give_back(factories.take(first, family=4))
    factories.take(first, family=6)
    factories.take(second, family=4)
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def recorded(self: Any, query: Any, *values: Any, **options: Any) -> Any:
        sent.append(str(query))
        return execute(self, query, *values, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", recorded)

    def counts(pool: Pool) -> dict[str, tuple[int, int]]:
        sent.clear()
        rows = list(pool.cidrs.select_related("pool"))
        usages = usage.usage_by_cidr(rows)
        return {str(row.cidr): (usages[row.pk].held, usages[row.pk].cooling) for row in rows}

    assert counts(first) == {"10.0.0.0/29": (0, 1), "fd00::/125": (1, 0)}
    assert not [query for query in sent if "BETWEEN place.low" in query]  # not by its addresses
    assert counts(second) == {"10.1.0.0/29": (1, 0), "10.2.0.0/29": (0, 0)}
    assert [query for query in sent if "BETWEEN place.low" in query]
