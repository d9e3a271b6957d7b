"""Memberships over REST and in the admin."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from claims.access import namespaces
from claims.models import Membership, MembershipEvent
from pools.models import Cluster
from tests import factories, people
from tests.edges import api as apis

PATH = "memberships/"


@pytest.fixture
def api() -> apis.Api:
    api = apis.Api()
    api.cluster("prod")
    api.cluster("test")
    User.objects.create(username="vera")
    return api


def body(**more: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {"user": "vera", "cluster": "prod", "role": "vm-owner"}
    defaults["namespaces"] = ["shop", "bank"]
    return {key: value for key, value in (defaults | more).items() if value is not None}


def vera() -> Any:
    """As the next request sees her: permissions are kept on an object."""
    return get_user_model().objects.get(username="vera")


def test_a_membership_makes_a_vm_owner(api: apis.Api) -> None:
    document = api.create(PATH, body())
    assert {**document, "id": 0, "created_at": ""} == {
        "id": 0, "user": "vera", "group": None, "cluster": "prod", "namespaces": ["bank", "shop"],
        "role": "vm-owner", "created_at": "", "source": "local", "cluster_role": None,
        "role_binding": None,
    }  # fmt: skip
    prod = Cluster.objects.get(name="prod").pk
    owned = {prod: frozenset({"shop", "bank"})}
    assert namespaces.scope(vera()) == namespaces.Scope(namespaces=owned)
    assert vera().has_perm("claims.view_entry")
    assert vera().is_staff
    assert not any(name.startswith("pools.") for name in vera().get_all_permissions())
    assert api("GET", f"{PATH}{document['id']}/").json() == document
    listed = api("GET", f"{PATH}?user=vera&cluster=prod&namespace=shop").json()
    assert listed["results"] == [document]
    assert api("GET", f"{PATH}?namespace=other").json()["results"] == []


def test_what_it_gave_goes_with_the_last_one(api: apis.Api) -> None:
    first, second = api.create(PATH, body()), api.create(PATH, body(cluster="test"))
    assert api("DELETE", f"{PATH}{first['id']}/").status_code == 204
    assert (vera().has_perm("claims.view_entry"), vera().is_staff) == (True, True)
    assert api("DELETE", f"{PATH}{second['id']}/").status_code == 204
    assert (vera().groups.count(), vera().is_staff) == (0, False)
    apis.refused(api("DELETE", f"{PATH}{second['id']}/"), 404, "not_found")
    labels = list(MembershipEvent.objects.order_by("pgh_id").values_list("pgh_label", flat=True))
    assert labels == ["created", "created", "deleted", "deleted"]


def test_who_is_more_than_a_vm_owner_stays_that(api: apis.Api) -> None:
    User.objects.filter(username="vera").update(is_staff=True)
    vera().groups.add(Group.objects.get(name="viewer"))
    document = api.create(PATH, body())
    assert namespaces.scope(vera()).everything
    api("DELETE", f"{PATH}{document['id']}/")
    assert [group.name for group in vera().groups.all()] == ["viewer"]
    assert vera().is_staff


def test_users_of_a_group_count_without_being_listed(api: apis.Api) -> None:
    document = api.create(PATH, body(user=None, group="team-shop"))
    assert (document["user"], document["group"]) == (None, "team-shop")
    assert namespaces.scope(vera()) == namespaces.Scope()
    vera().groups.add(Group.objects.get(name="team-shop"))
    prod = Cluster.objects.get(name="prod").pk
    assert namespaces.scope(vera()).has(prod, "shop")
    assert vera().has_perm("claims.request_address")
    api("DELETE", f"{PATH}{document['id']}/")
    assert namespaces.scope(vera()) == namespaces.Scope()
    assert not vera().has_perm("claims.request_address")


@pytest.mark.parametrize("group", ["viewer", "vm-owner"])
def test_groups_of_the_site_keep_their_rights(api: apis.Api, group: str) -> None:
    before = Group.objects.get(name=group).permissions.count()
    document = api.create(PATH, body(user=None, group=group))
    api("DELETE", f"{PATH}{document['id']}/")
    assert Group.objects.get(name=group).permissions.count() == before


def test_namespaces_change(api: apis.Api) -> None:
    document = api.create(PATH, body())
    answer = api("PATCH", f"{PATH}{document['id']}/", {"namespaces": ["depot"]})
    assert answer.json() == document | {"namespaces": ["depot"]}
    assert Membership.objects.get().namespaces == ["depot"]
    answer = api("PATCH", f"{PATH}{document['id']}/", {"user": "x"})
    problem = apis.refused(answer, 400, "unknown_field")
    assert apis.fields(problem) == {"user": "unknown_field"}


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"namespaces": []}, "namespaces", "required"),
        ({"namespaces": None}, "namespaces", "required"),
        ({"namespaces": "shop"}, "namespaces", "wrong_type"),
        ({"namespaces": ["shop", "shop"]}, "namespaces.1", "duplicate_key"),
        ({"namespaces": ["Shop"]}, "namespaces.0", "k8s_name"),
        ({"namespaces": ["a.b"]}, "namespaces.0", "k8s_name"),
        ({"namespaces": ["a" * 64]}, "namespaces.0", "k8s_name"),
        ({"namespaces": [7]}, "namespaces.0", "wrong_type"),
        ({"user": None}, "user", "required"),
        ({"group": "team"}, "user", "required"),
        ({"user": "nobody"}, "user", "unknown_user"),
        ({"user": 7}, "user", "wrong_type"),
        ({"user": None, "group": "a\u202eb"}, "group", "invisible_character"),
        ({"user": None, "group": "g" * 151}, "group", "too_long"),
        ({"cluster": "nowhere"}, "cluster", "unknown_cluster"),
        ({"cluster": 7}, "cluster", "unknown_cluster"),
        ({"role": "admin"}, "role", "invalid_choice"),
        ({"id": 1}, "id", "read_only_field"),
    ],
)
def test_bad_memberships_are_refused(api: apis.Api, changes: Any, field: str, code: str) -> None:
    answer = api("POST", PATH, body(**changes))
    assert answer.status_code == 400, answer.content
    assert apis.fields(answer.json()) == {field: code}
    assert not Membership.objects.exists()


def test_a_second_one_in_a_cluster_is_refused(api: apis.Api) -> None:
    api.create(PATH, body())
    apis.refused(api("POST", PATH, body(namespaces=["depot"])), 409, "already_exists")
    api.create(PATH, body(user=None, group="team"))
    apis.refused(api("POST", PATH, body(user=None, group="team")), 409, "already_exists")


def test_a_repeated_request_makes_one(api: apis.Api) -> None:
    first = api("POST", PATH, body(), Idempotency_Key="k")
    assert api("POST", PATH, body(), Idempotency_Key="k").json() == first.json()
    assert Membership.objects.count() == 1


def test_everybody_sees_their_own(api: apis.Api) -> None:
    mine = apis.Api("vm-owner")
    api.create(PATH, body())
    document = api.create(PATH, body(user=mine.user.username))
    assert mine("GET", PATH).json()["results"] == [document]
    # A cluster in which one has no namespace is not told from one that there is not.
    for name in ("test", "nowhere"):
        apis.refused(mine("GET", f"{PATH}?cluster={name}"), 400, "unknown_cluster")


# --- The page Access: administrators make, change and end memberships -----------------------------
@pytest.fixture
def cluster() -> Cluster:
    return factories.cluster()


def post(client: Client, **fields: Any) -> Any:
    return client.post(reverse("admin:claims_membership_add"), fields)


def test_an_administrator_makes_changes_and_ends_one(cluster: Cluster) -> None:
    client = people.signed_in(apis.user("administrator", is_staff=True))
    vera = User.objects.create(username="vera")
    assert client.get(reverse("admin:claims_membership_add")).status_code == 200
    answer = post(client, user=vera.pk, cluster=cluster.pk, namespaces="shop\n bank, depot")
    assert answer.status_code == 302
    row = Membership.objects.get()
    assert (row.user, row.namespaces) == (vera, ["bank", "depot", "shop"])
    page = client.get(reverse("admin:claims_membership_changelist"))
    assert "bank, depot, shop" in page.content.decode()
    assert client.get(reverse("admin:claims_membership_changelist", query={"q": "shop"})).context["cl"].result_count == 1  # fmt: skip
    url = reverse("admin:claims_membership_change", args=[row.pk])
    assert "depot" in client.get(url).content.decode()
    client.post(url, {"namespaces": "shop"})
    row.refresh_from_db()
    assert row.namespaces == ["shop"]
    url = reverse("admin:claims_membership_delete", args=[row.pk])
    assert client.get(url).status_code == 200
    client.post(url)
    assert not Membership.objects.exists()
    assert not User.objects.get(username="vera").groups.exists()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Choose either a user or a group"),
        ({"group": "a", "user": "vera"}, "Choose either a user or a group"),
        ({"group": "a", "namespaces": ""}, "This field is required"),
        ({"group": "a", "namespaces": "shop shop"}, "Occurs twice"),
        ({"group": "a", "namespaces": "Shop"}, "A name is made of lower-case letters"),
        ({"group": "team"}, "is already a VM owner in this cluster"),
    ],
)
def test_a_bad_form_says_what_would_be_right(cluster: Cluster, fields: Any, message: str) -> None:
    client = people.signed_in(apis.user("administrator", is_staff=True))
    post(client, group="team", cluster=cluster.pk, namespaces="shop")
    if "user" in fields:
        fields = fields | {"user": User.objects.create(username="vera").pk}
    answer = post(client, **{"cluster": cluster.pk, "namespaces": "shop"} | fields)
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert Membership.objects.count() == 1
