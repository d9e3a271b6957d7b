"""VM owners by a cluster over REST and in the admin: what they see of it, and who sees them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from claims.access import memberships
from claims.models import ClusterOwner
from tests import people
from tests.claims import worlds
from tests.edges import api as apis

PATH = "memberships/"


@pytest.fixture
def api() -> apis.Api:
    return apis.Api()


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
        other = apis.Api("vm-owner")
        apis.refused(other(method, f"{PATH}{row.pk}/", body), 403, "permission_denied")
    assert ClusterOwner.objects.count() == 1


@pytest.mark.parametrize("role", ["viewer", "operator", "vm-owner"])
def test_others_see_their_own_only(api: apis.Api, role: str) -> None:
    cluster = worlds.cluster()
    worlds.bound(cluster, "shop", "vera")
    other = apis.Api(role)
    mine = worlds.bound(cluster, "bank", other.user.username)
    (row,) = other("GET", PATH).json()["results"]
    assert (row["user"], row["namespaces"]) == (other.user.username, ["bank"])
    mine = ClusterOwner.objects.get(uid=mine.uid)
    foreign = ClusterOwner.objects.exclude(pk=mine.pk).get()
    apis.refused(other("GET", f"{PATH}{foreign.pk}/"), 404, "not_found")


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


def test_administrators_see_them_read_only(api: apis.Api) -> None:
    row = worlds.bound(worlds.cluster(), "shop", "vera")
    row = ClusterOwner.objects.get(uid=row.uid)
    client = people.signed_in(
        User.objects.create(username="root", is_staff=True, is_superuser=True)
    )
    url = reverse("admin:claims_clusterowner_changelist")
    page = client.get(url).content.decode()
    for text in ("vera", "kubevirt.io:edit", "vera-binding", "shop"):
        assert text in page
    assert url in client.get(reverse("admin:claims_membership_changelist")).content.decode()
    assert b"vera-binding" in _content(client.get(reverse("admin:claims_clusterowner_export")))
    for name in ("change", "delete", "history"):
        path = reverse(f"admin:claims_clusterowner_{name}", args=[row.pk])
        assert {client.get(path).status_code, client.post(path).status_code} == {403}
    assert client.get(reverse("admin:claims_clusterowner_add")).status_code == 403
    other = people.signed_in(apis.Api("operator").user)
    User.objects.exclude(username="root").update(is_staff=True)
    assert other.get(url).status_code == 403


def _content(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content
