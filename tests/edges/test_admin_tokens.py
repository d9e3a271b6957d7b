"""A token is shown once; people see and revoke their own, administrators all."""

import re

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from pools.models import TokenScope
from tests import factories, people


def test_a_token_is_shown_once_and_then_never() -> None:
    client = people.browser(people.VIEWER)
    url = reverse("admin:knox_authtoken_create")
    me = client.get(url).context["user"]
    answer = client.post(url, {"user": me.pk, "days": 7})
    token = answer.context["token"]
    assert token.startswith("cad_")
    assert token in answer.content.decode()
    row = AuthToken.objects.get(user=me)
    assert round((row.expiry - row.created).total_seconds() / 86400) == 7
    for page in (
        reverse("admin:knox_authtoken_changelist"),
        reverse("admin:knox_authtoken_change", args=[row.pk]),
        reverse("admin:knox_authtoken_delete", args=[row.pk]),
    ):
        text = client.get(page).content.decode()
        assert token not in text
        assert row.token_key not in text.replace(row.pk, "")
    assert answer["Cache-Control"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("limit", ["", "cluster", "pool", "vm-owner"])
def test_the_printed_request_is_answered(limit: str) -> None:
    pool = factories.pool("10.20.0.0/24")
    names = {"cluster": pool.cluster.name, "pool": f"{pool.cluster.name}/{pool.name}"}
    client = people.browser()
    owner = people.user()
    owner.groups.add(Group.objects.get(name="vm-owner" if limit == "vm-owner" else "viewer"))
    data = {"user": owner.pk, "days": 7, "level": "read", "limited_to": names.get(limit, "")}
    page = client.post(reverse("admin:knox_authtoken_create"), data).content.decode()
    printed = re.search(r'Bearer (cad_\w+)" http://testserver(/api/v1/[\w/]+)<', page)
    assert printed is not None
    answer = Client().get(printed[2], headers={"Authorization": f"Bearer {printed[1]}"})
    assert answer.status_code == 200, answer.content


@pytest.mark.sample(5)
@pytest.mark.parametrize("days", ["0", "-1", "3651", "x", ""])
def test_a_token_ends(days: str) -> None:
    client = people.browser(people.VIEWER)
    url = reverse("admin:knox_authtoken_create")
    me = client.get(url).context["user"]
    assert client.post(url, {"user": me.pk, "days": days}).context["form"].errors
    assert not AuthToken.objects.exists()


def test_nobody_makes_or_sees_the_tokens_of_others() -> None:
    other = people.user()
    row, _ = AuthToken.objects.create(other)
    client = people.browser(people.ADMINISTRATOR)
    client.post(reverse("admin:knox_authtoken_create"), {"user": other.pk, "days": 7})
    assert AuthToken.objects.count() == 1
    listed = client.get(reverse("admin:knox_authtoken_changelist")).context["cl"]
    assert not listed.result_list
    for name in ("change", "delete"):
        url = reverse(f"admin:knox_authtoken_{name}", args=[row.pk])
        assert client.get(url).status_code == 302
    client.post(reverse("admin:knox_authtoken_delete", args=[row.pk]), {"post": "yes"})
    data = {"action": "revoke", "_selected_action": [row.pk]}
    client.post(reverse("admin:knox_authtoken_changelist"), data | {"_confirmed": "1"})
    assert AuthToken.objects.count() == 1


def test_one_revokes_ones_own_and_who_may_those_of_others() -> None:
    client = people.browser(people.VIEWER)
    me = client.get(reverse("admin:find")).context["user"]
    mine, _ = AuthToken.objects.create(me)
    client.post(reverse("admin:knox_authtoken_delete", args=[mine.pk]), {"post": "yes"})
    assert not AuthToken.objects.exists()
    row, _ = AuthToken.objects.create(people.user())
    me.user_permissions.add(
        *Permission.objects.filter(codename__in=["view_authtoken", "delete_authtoken"])
    )
    data = {"action": "revoke", "_selected_action": [row.pk]}
    answer = client.post(reverse("admin:knox_authtoken_changelist"), data)
    assert "refused at once" in answer.content.decode()
    assert AuthToken.objects.exists()
    client.post(reverse("admin:knox_authtoken_changelist"), data | {"_confirmed": "1"})
    assert not AuthToken.objects.exists()


def test_a_limited_token_is_made_and_listed() -> None:
    client = people.browser()
    url = reverse("admin:knox_authtoken_create")
    me = client.get(url).context["user"]
    pool = factories.pool("10.0.0.0/24")
    name = f"{pool.cluster.name}/{pool.name}"
    data = {"user": me.pk, "days": 7, "level": "allocate", "description": "Jenkins"}
    text = client.post(url, data | {"limited_to": name}).context["token"]
    scope = TokenScope.objects.get()
    assert (scope.level, scope.pool, scope.cluster) == ("allocate", pool, None)
    api = Client(headers={"Authorization": f"Token {text}"})
    assert api.get(f"/api/v1/pools/{pool.pk}/").status_code == 200
    page = client.get(reverse("admin:knox_authtoken_changelist")).content.decode()
    for part in (name, "Jenkins", "allocate and release"):
        assert part in page
    TokenScope.objects.update(pool=2**40)
    assert "removed" in client.get(reverse("admin:knox_authtoken_changelist")).content.decode()


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["nowhere", "a b", "/", "prod/none/x", "é"])
def test_what_a_token_cannot_be_limited_to(name: str) -> None:
    client = people.browser()
    url = reverse("admin:knox_authtoken_create")
    me = client.get(url).context["user"]
    data = {"user": me.pk, "days": 7, "limited_to": name}
    assert client.post(url, data).context["form"].errors["limited_to"]
    assert not AuthToken.objects.exists()


def test_who_sees_no_clusters_names_none() -> None:
    client = people.browser(())
    url = reverse("admin:knox_authtoken_create")
    assert "limited_to" not in client.get(url).context["form"].fields
    me = client.get(url).context["user"]
    client.post(url, {"user": me.pk, "days": 7, "level": "read", "limited_to": "nowhere"})
    assert TokenScope.objects.get().level == "read"
