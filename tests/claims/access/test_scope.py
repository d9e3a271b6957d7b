"""What a membership lets see, of each table, and for whom it lets act."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from claims.access import memberships, namespaces as access_namespaces
from claims.models import (
    NAD,
    Decision,
    Entry,
    IndexEntry,
    IPAMClaim,
    IPPool,
    Membership,
    Network,
    Workload,
)
from pools.core import errors
from pools.models import Cluster, Now, Pool
from tests import factories

SEEN, FOREIGN = "shop", "bank"


def fill(cluster: Cluster, namespace: str) -> None:
    """One row of each table for a namespace."""
    name = f"{namespace}-net"
    network = Network.objects.create(cluster=cluster, name=name, namespace=namespace)
    NAD.objects.create(network=network, namespace=namespace, name="n")
    ippool = IPPool.objects.create(cluster=cluster, network=network, name=name)
    mac, ips = "02:00:00:00:00:01", ["10.0.0.1/24"]
    entry = Entry.objects.create(ippool=ippool, mac=mac, ips=ips, namespace=namespace)
    IPAMClaim.objects.create(cluster=cluster, network=network, namespace=namespace, name="c")
    Workload.objects.create(
        network=network, kind="vmi", namespace=namespace, name="v", uid="u", since=Now()
    )
    IndexEntry.objects.create(network=network, entry=entry, mac=mac, namespace=namespace)
    Decision.objects.create(
        cluster=cluster, at=Now(), path="p", operation="CREATE", namespace=namespace, code="c"
    )


@pytest.fixture
def cluster() -> Cluster:
    result = factories.cluster()
    for namespace in (SEEN, FOREIGN):
        fill(result, namespace)
    fill(factories.cluster(), SEEN)
    return result


def owner(cluster: Cluster, *namespaces: str) -> Any:
    user = User.objects.create(username="vera")
    memberships.create(cluster, namespaces, author=factories.BY, user=user)
    return User.objects.get(pk=user.pk)


TABLES = (Network, NAD, IPPool, Entry, IPAMClaim, Workload, IndexEntry, Decision)


@pytest.mark.sample(4)
@pytest.mark.parametrize("table", TABLES)
def test_a_table_shows_the_namespaces_of_a_membership(cluster: Cluster, table: Any) -> None:
    scope = access_namespaces.scope(owner(cluster, SEEN))
    assert table.objects.count() == 3
    rows = list(access_namespaces.visible(table.objects.all(), scope))
    assert len(rows) == 1
    assert getattr(rows[0], "namespace", SEEN) == SEEN
    assert access_namespaces.visible(table.objects.all(), access_namespaces.EVERYTHING).count() == 3
    assert access_namespaces.visible(table.objects.all(), access_namespaces.Scope()).count() == 0


def test_a_network_is_seen_by_each_namespace_that_uses_it(cluster: Cluster) -> None:
    shared = Network.objects.create(cluster=cluster, name="shared")
    NAD.objects.create(network=shared, namespace=SEEN, name="a")
    NAD.objects.create(network=shared, namespace=SEEN, name="b")
    NAD.objects.create(network=shared, namespace=FOREIGN, name="a")
    scope = access_namespaces.scope(owner(cluster, SEEN))
    names = [network.name for network in access_namespaces.networks(Network.objects.all(), scope)]
    assert sorted(names) == ["shared", "shop-net"]
    assert access_namespaces.visible(NAD.objects.filter(network=shared), scope).count() == 2


def test_of_other_tables_a_vm_owner_sees_nothing(cluster: Cluster) -> None:
    scope = access_namespaces.scope(owner(cluster, SEEN))
    assert list(access_namespaces.visible(Cluster.objects.all(), scope)) == [cluster]
    for table in (Pool, Membership, User):
        assert not access_namespaces.visible(table.objects.all(), scope).exists()
        assert access_namespaces.visible(table.objects.all(), access_namespaces.EVERYTHING).query


def test_many_namespaces_cost_one_statement(
    cluster: Cluster, django_assert_num_queries: Any
) -> None:
    scope = access_namespaces.scope(owner(cluster, *(f"ns-{n}" for n in range(999)), SEEN))
    with django_assert_num_queries(1):
        assert len(access_namespaces.visible(Entry.objects.all(), scope)) == 1


def test_memberships_add_up(cluster: Cluster) -> None:
    user = owner(cluster, SEEN)
    memberships.create(cluster, [FOREIGN], author=factories.BY, group="team")
    user.groups.add(Group.objects.get(name="team"))
    assert (
        access_namespaces.visible(Entry.objects.all(), access_namespaces.scope(user)).count() == 2
    )
    user.is_active = False
    assert access_namespaces.scope(user) == access_namespaces.Scope()


def test_vm_owners_act_in_namespaces_of_their_own_only(cluster: Cluster) -> None:
    user = owner(cluster, SEEN)
    access_namespaces.require_request(user, cluster.pk, SEEN)
    for other in (FOREIGN, "absent", ""):
        with pytest.raises(errors.NotAllowed, match="namespaces that you own"):
            access_namespaces.require_request(user, cluster.pk, other)
    user.groups.add(Group.objects.get(name="viewer"))
    user = User.objects.get(pk=user.pk)
    assert access_namespaces.scope(user).everything
    with pytest.raises(errors.NotAllowed):
        access_namespaces.require_request(user, cluster.pk, FOREIGN)


@pytest.mark.parametrize(("role", "allowed"), [("viewer", False), ("operator", True)])
def test_other_roles_act_everywhere_or_nowhere(cluster: Cluster, role: str, allowed: bool) -> None:
    user = User.objects.create(username="otto")
    user.groups.set([Group.objects.get(name=role)])
    if allowed:
        access_namespaces.require_request(user, cluster.pk, FOREIGN)
        return
    with pytest.raises(errors.NotAllowed):
        access_namespaces.require_request(user, cluster.pk, FOREIGN)
