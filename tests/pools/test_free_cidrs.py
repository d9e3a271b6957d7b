"""What is free of the plan: containers, cluster prefixes, offers and overlaps."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from pools.core import errors
from pools.core.observed.uses import Role
from pools.models import AddressSpace, Cluster, Container, Event, JournalEntry, Pool, PoolCIDR
from pools.register import clusters, journal, overlaps, pools
from pools.register.overlaps import OverlapKind
from pools.register.plan import containers, free_space
from tests import factories
from tests.edges import api as apis
from tests.observed import rows

# Network containers: one per CIDR and address space, nested freely, and nothing changes
# inside


TEN = ip_network("10.0.0.0/8")


def test_one_container_of_a_cidr_in_each_space_and_in_the_fleet() -> None:
    space = AddressSpace.objects.get(cluster=factories.cluster())
    for scope in (None, space):
        containers.create(TEN, space=scope, author=factories.BY)
        with pytest.raises(errors.AlreadyExists, match=r"10\.0\.0\.0/8"):
            containers.create(TEN, space=scope, author=factories.BY)
        with pytest.raises(IntegrityError), transaction.atomic():
            Container.objects.create(cidr="10.0.0.0/8", space=scope)
    containers.create(ip_network("10.1.0.0/16"), author=factories.BY)
    assert Container.objects.count() == 3


def test_each_change_is_an_event_of_its_author() -> None:
    cluster = factories.cluster()
    space = AddressSpace.objects.get(cluster=cluster)
    row = containers.create(TEN, space=space, name="Office", author=factories.BY)
    containers.change(row.pk, {"name": "Offices"}, author=factories.BY)
    containers.delete(row.pk, author=factories.BY)
    rows = Event.objects.filter(type__startswith="container.").order_by("id")
    assert [(event.type, event.cidr, event.message) for event in rows] == [
        ("container.created", "10.0.0.0/8", "Office"),
        ("container.changed", "10.0.0.0/8", "Offices"),
        ("container.deleted", "10.0.0.0/8", "Offices"),
    ]
    assert {(event.actor, event.cluster_id) for event in rows} == {(factories.BY.actor, cluster.pk)}


def test_a_deletion_takes_only_the_container_and_its_journal() -> None:
    pool = factories.pool("10.1.0.0/24")
    outer = containers.create(TEN, author=factories.BY)
    inner = containers.create(ip_network("10.1.0.0/16"), author=factories.BY)
    journal.add(outer, "Ask Ann.", "info", user=None, author=factories.BY)
    assert JournalEntry.objects.get().cluster is None
    containers.delete(outer.pk, author=factories.BY)
    assert Container.objects.get() == inner
    assert Pool.objects.get() == pool
    assert not JournalEntry.objects.exists()


def test_rest_with_versions() -> None:
    api = apis.Api("operator")
    apis.Api().cluster("prod")
    body = {"cidr": "10.0.0.0/16", "address_space": "prod", "name": "Rack 1"}
    created = api.create("containers/", body)
    assert created["address_space"] == "prod"
    fleet = api.create("containers/", {"cidr": "10.0.0.0/8"})
    assert fleet["address_space"] is None
    path = f"containers/{created['id']}/"
    changed = api("PATCH", path, {"name": "Rack 2"}, If_Match='"1"')
    assert (changed.json()["name"], changed["ETag"]) == ("Rack 2", '"2"')
    assert api("PATCH", path, {"name": "Rack 3"}, If_Match='"1"').status_code == 412
    assert api("DELETE", path, If_Match='"1"').status_code == 412
    assert api("PATCH", path, {"address_space": None}).json()["code"] == "immutable_in_use"
    assert _ids(api, "?address_space=fleet") == [fleet["id"]]
    assert _ids(api, "?address_space=prod") == [created["id"]]
    assert _ids(api, "?within=10.0.0.0/12") == [created["id"]]
    note = {"object_type": "container", "object_id": fleet["id"], "text": "Ask Ann."}
    assert api.create("journal/", note)["cluster"] is None
    assert api("DELETE", path, If_Match='"2"').status_code == 204


def _ids(api: apis.Api, query: str) -> list[int]:
    return [row["id"] for row in api("GET", f"containers/{query}").json()["results"]]


# --- Rule `cluster-prefix-is-divided`: node and instance pools ------------------------------------
def _prefixes(cluster: Cluster) -> dict[str, str]:
    result = Pool.objects.filter(cluster=cluster).order_by("name")
    return {pool.category: str(factories.cidr(pool).cidr) for pool in result}


DIVIDED: list[Any] = [
    ("2001:db8:10::/48", {}, "2001:db8:10::/64", "2001:db8:10:1::/64"),
    ("2001:db8:10:100::/56", {}, "2001:db8:10:100::/64", "2001:db8:10:101::/64"),
    ("2001:db8:10:2::/63", {}, "2001:db8:10:2::/64", "2001:db8:10:3::/64"),
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


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"node_prefix": "2001:db8:11::/64"}, "outside_cluster_prefix"),
        (
            {"node_prefix": "2001:db8:10::/64", "instance_prefix": "2001:db8:10::/56"},
            "cidr_overlap",
        ),
    ],
)
def test_refused_as_a_whole(parts: dict[str, str], code: str) -> None:
    networks = {name: IPv6Network(text) for name, text in parts.items()}
    with pytest.raises(errors.InvalidInput) as caught:
        factories.cluster(cluster_prefix=IPv6Network("2001:db8:10::/48"), **networks)
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


# --- What forms offer: the first free CIDRs for a cluster, in which nothing is used, and a pool's
# next free block
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


# --- Overlaps across address spaces are found, not refused ----------------------------------------
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
