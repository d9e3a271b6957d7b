"""What VM owners see, by memberships and by what a cluster says."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from claims.access import memberships, namespaces as access_namespaces
from claims.models import (
    NAD,
    ClusterOwner,
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
from tests.claims import worlds
from tests.edges import api as apis

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
    names = {"kind": "vmi", "namespace": namespace, "name": "v", "uid": "u"}
    Workload.objects.create(network=network, **names, since=Now())
    IndexEntry.objects.create(network=network, entry=entry, mac=mac, namespace=namespace)
    request = {"path": "p", "operation": "CREATE", "namespace": namespace, "code": "c"}
    Decision.objects.create(cluster=cluster, at=Now(), **request)


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
    scope = access_namespaces.scope(user)
    assert access_namespaces.visible(Entry.objects.all(), scope).count() == 2
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


# --- VM owners by a cluster over REST and in the admin: what they see of it, and who sees them ----
PATH = "memberships/"


def test_both_are_one_list(api: apis.Api) -> None:
    cluster = worlds.cluster()
    vera = User.objects.create(username="vera")
    local = memberships.create(cluster, ["depot"], author=worlds.BY, user=vera)
    user = worlds.bound(cluster, "shop", "vera")
    group = worlds.bound(cluster, "bank", "team", kind="Group", role="kubevirt.io:admin")
    user.refresh_from_db()
    group.refresh_from_db()
    assert len({local.pk, user.pk, group.pk}) == 3
    rows = api("GET", PATH).json()["results"]
    assert [(row["id"], row["source"]) for row in rows] == [
        (local.pk, "local"), (user.pk, "cluster"), (group.pk, "cluster"),
    ]  # fmt: skip
    assert rows[0]["cluster_role"] is None
    assert {**rows[1], "created_at": ""} == {
        "id": user.pk, "user": "vera", "group": None, "cluster": "prod", "namespaces": ["shop"],
        "role": "vm-owner", "created_at": "", "source": "cluster",
        "cluster_role": "kubevirt.io:edit", "role_binding": "vera-binding",
    }  # fmt: skip
    assert (rows[2]["user"], rows[2]["group"]) == (None, "team")
    for query, result in {
        "user=vera": [0, 1], "group=team": [2], "namespace=shop": [1], "source=cluster": [1, 2],
        "source=local": [0], "cluster=prod": [0, 1, 2], "ordering=-id": [2, 1, 0],
    }.items():  # fmt: skip
        assert api("GET", f"{PATH}?{query}").json()["results"] == [rows[n] for n in result], query
    second = api("GET", f"{PATH}?limit=1").json()["next"].partition("?")[2]
    assert api("GET", f"{PATH}?{second}").json()["results"] == [rows[1]]
    assert api("GET", f"{PATH}{user.pk}/").json() == rows[1]


def test_what_a_cluster_says_is_changed_there(api: apis.Api) -> None:
    row = worlds.bound(worlds.cluster(), "shop", "vera")
    row = ClusterOwner.objects.get(uid=row.uid)
    for method, body in (("PATCH", {"namespaces": ["x"]}), ("DELETE", None)):
        answer = api(method, f"{PATH}{row.pk}/", body)
        problem = apis.refused(answer, 409, "cluster_decides")
        assert "shop/vera-binding" in str(problem)
    assert ClusterOwner.objects.count() == 1


@pytest.mark.parametrize("role", ["viewer", "operator", "vm-owner"])
def test_others_see_their_own_only(api: apis.Api, role: str) -> None:
    cluster = worlds.cluster()
    worlds.bound(cluster, "shop", "vera")
    other = apis.Api(role)
    worlds.bound(cluster, "bank", other.user.username)
    (row,) = other("GET", PATH).json()["results"]
    assert (row["user"], row["namespaces"]) == (other.user.username, ["bank"])


@pytest.mark.exhaustive
def test_they_sign_in_and_others_do_not() -> None:
    for name in ("vera", "otto"):
        User.objects.create_user(name, password="correct-horse")
    worlds.bound(worlds.cluster(), "shop", "vera")

    def enter(name: str) -> int:
        credentials = {"username": name, "password": "correct-horse"}
        return Client().post(reverse("admin:login"), credentials).status_code

    assert (enter("vera"), enter("otto")) == (302, 200)
    User.objects.filter(username="vera").update(is_active=False)
    assert enter("vera") == 200


def test_administrators_see_them(browser: Client) -> None:
    worlds.bound(worlds.cluster(), "shop", "vera")
    url = reverse("admin:claims_clusterowner_changelist")
    page = browser.get(url).content.decode()
    for text in ("vera", "kubevirt.io:edit", "vera-binding", "shop"):
        assert text in page
    assert url in browser.get(reverse("admin:claims_membership_changelist")).content.decode()
    assert b"vera-binding" in browser.get(reverse("admin:claims_clusterowner_export")).getvalue()
