"""The page Access: administrators make, change and end memberships."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from claims.models import Membership
from pools.models import Cluster
from tests import factories


def browser(role: str) -> Client:
    user = User.objects.create(username=role, is_staff=True)
    user.groups.set([Group.objects.get(name=role)])
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def cluster() -> Cluster:
    return factories.cluster()


def post(client: Client, **fields: Any) -> Any:
    return client.post(reverse("admin:claims_membership_add"), fields)


def test_an_administrator_makes_changes_and_ends_one(cluster: Cluster) -> None:
    client = browser("administrator")
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
    client = browser("administrator")
    post(client, group="team", cluster=cluster.pk, namespaces="shop")
    if "user" in fields:
        fields = fields | {"user": User.objects.create(username="vera").pk}
    answer = post(client, **{"cluster": cluster.pk, "namespaces": "shop"} | fields)
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert Membership.objects.count() == 1
