"""Whom a cluster makes a VM owner: by which names, with which rights, for how long."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from claims.access import cluster_owners, memberships, namespaces as access_namespaces
from claims.models import ClusterGroupMember, ClusterOwner
from pools.clusters import connections
from pools.models import Cluster, Connection
from pools.register import clusters
from tests.claims import worlds

RIGHT = "claims.request_address"


@pytest.fixture
def cluster() -> Cluster:
    return worlds.cluster()


@pytest.fixture(autouse=True)
def _vera() -> None:
    User.objects.create(username="vera")


def vera() -> Any:
    """As the next request sees her."""
    return User.objects.get(username="vera")


def namespaces(owned_cluster: Cluster) -> set[str]:
    return set(access_namespaces.owner_scope(vera()).namespaces.get(owned_cluster.pk, ()))


def test_a_user_of_that_name_owns_the_namespace_until_the_binding_goes(cluster: Cluster) -> None:
    assert not vera().has_perm(RIGHT)
    row = worlds.bound(cluster, "shop", "vera")
    owned = {cluster.pk: frozenset({"shop"})}
    assert access_namespaces.scope(vera()) == access_namespaces.Scope(namespaces=owned)
    names = Group.objects.get(name="vm-owner").permissions.values_list("codename", flat=True)
    assert set(vera().get_all_permissions()) == {f"claims.{name}" for name in names}
    assert vera().has_module_perms("claims")
    access_namespaces.require_request(vera(), cluster.pk, "shop")
    # Nothing was written to her.
    assert (vera().is_staff, vera().groups.exists()) == (False, False)
    row.delete()
    assert access_namespaces.scope(vera()) == access_namespaces.Scope()
    assert not vera().get_all_permissions()


def test_whoever_is_made_later_is_one_at_once(cluster: Cluster) -> None:
    worlds.bound(cluster, "shop", "otto")
    otto = User.objects.create(username="otto")
    assert access_namespaces.owner_scope(otto).has(cluster.pk, "shop")
    assert otto.has_perm(RIGHT)


def test_groups_of_ours_and_of_the_cluster_have_that_name(cluster: Cluster) -> None:
    bound = worlds.bound(cluster, "shop", "team", kind="Group")
    worlds.bound(cluster, "bank", "crew", kind="Group")
    assert namespaces(cluster) == set()
    vera().groups.add(Group.objects.create(name="team"))
    assert namespaces(cluster) == {"shop"}
    member = ClusterGroupMember(connection=bound.connection, group="crew", username="vera")
    member.save()
    assert namespaces(cluster) == {"shop", "bank"}
    assert vera().has_perm(RIGHT)
    member.delete()
    vera().groups.clear()
    assert (namespaces(cluster), vera().has_perm(RIGHT)) == (set(), False)


def test_a_group_of_another_cluster_is_another_group(cluster: Cluster) -> None:
    worlds.bound(cluster, "bank", "crew", kind="Group")
    other = worlds.bound(worlds.cluster("other"), "shop", "otto").connection
    ClusterGroupMember.objects.create(connection=other, group="crew", username="vera")
    assert access_namespaces.owner_scope(vera()) == access_namespaces.Scope()


@pytest.mark.parametrize(
    ("subject", "kind"), [("Vera", "User"), ("vera ", "User"), ("vera", "Group"), ("TEAM", "Group"),
                          ("vm-owner", "Group")]
)  # fmt: skip
def test_names_are_compared_exactly(cluster: Cluster, subject: str, kind: str) -> None:
    worlds.bound(cluster, "shop", subject, kind=kind)
    vera().groups.add(Group.objects.create(name="team"), Group.objects.get(name="vm-owner"))
    assert namespaces(cluster) == set()


def test_memberships_and_clusters_add_up(cluster: Cluster) -> None:
    memberships.create(cluster, ["depot"], author=worlds.BY, user=vera())
    worlds.bound(cluster, "shop", "vera")
    worlds.bound(cluster, "shop", "vera", role="kubevirt.io:admin")
    scope = access_namespaces.owner_scope(vera())
    assert scope.namespaces == {cluster.pk: frozenset({"shop", "depot"})}


def test_a_membership_that_ends_leaves_what_the_cluster_says(cluster: Cluster) -> None:
    membership = memberships.create(cluster, ["depot"], author=worlds.BY, user=vera())
    worlds.bound(cluster, "shop", "vera")
    memberships.delete(membership, author=worlds.BY)
    assert (namespaces(cluster), vera().has_perm(RIGHT)) == ({"shop"}, True)


@pytest.mark.parametrize("role", ["viewer", "operator", "administrator"])
def test_other_roles_lose_nothing(cluster: Cluster, role: str) -> None:
    vera().groups.add(Group.objects.get(name=role))
    before, row = vera().get_all_permissions(), worlds.bound(cluster, "shop", "vera")
    assert vera().get_all_permissions() == before | cluster_owners.rights(vera())
    assert access_namespaces.scope(vera()).everything
    row.delete()
    assert vera().get_all_permissions() == before


def test_who_is_not_active_is_given_nothing(cluster: Cluster) -> None:
    worlds.bound(cluster, "shop", "vera")
    User.objects.update(is_active=False)
    assert access_namespaces.owner_scope(vera()) == access_namespaces.Scope()
    assert cluster_owners.rights(vera()) == frozenset()
    assert not vera().has_perm(RIGHT)


def test_a_cluster_that_is_not_connected_makes_nobody_an_owner(cluster: Cluster) -> None:
    worlds.bound(cluster, "shop", "vera")
    connections.disconnect(Connection.objects.get(), author=worlds.BY)
    assert (namespaces(cluster), vera().has_perm(RIGHT)) == (set(), False)
    worlds.bound(cluster, "shop", "vera")
    clusters.remove(cluster, author=worlds.BY)
    assert not ClusterOwner.objects.exists()
    assert access_namespaces.owner_scope(vera()) == access_namespaces.Scope()


@pytest.mark.parametrize("names", [[], ["kubevirt.io:admin"]])
def test_roles_that_are_not_configured_count_no_more(
    cluster: Cluster, settings: Any, names: list[str]
) -> None:
    worlds.bound(cluster, "shop", "vera")
    settings.IPAM_VM_OWNER_ROLES = names
    assert (namespaces(cluster), vera().has_perm(RIGHT)) == (set(), False)
