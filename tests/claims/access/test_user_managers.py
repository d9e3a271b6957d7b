"""Whoever manages users becomes no VM owner by it: neither by a name that a cluster gives rights to, nor by a group."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from claims.access import memberships
from claims.models import ClusterGroupMember
from tests import people
from tests.claims import worlds

MANAGES = tuple(
    f"{verb}_{model}" for model in ("user", "group") for verb in ("view", "add", "change", "delete")
)


@pytest.fixture
def manager() -> Any:
    """Manages users and groups, and owns the VMs of a namespace."""
    person = people.user()
    memberships.create(worlds.cluster(), ["mine"], author=worlds.BY, user=person)
    person.user_permissions.add(*Permission.objects.filter(codename__in=MANAGES))
    return person


@pytest.fixture
def browser(manager: Any) -> Client:
    client = Client()
    client.force_login(manager)
    return client


def change(client: Client, user: User, **fields: Any) -> int:
    data = {"username": user.username, "is_active": "on", "is_staff": "on", **fields}
    data |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    return int(client.post(reverse("admin:auth_user_change", args=[user.pk]), data).status_code)


def test_no_account_gets_a_name_that_a_cluster_gives_rights_to(
    browser: Client, manager: Any
) -> None:
    row = worlds.bound(worlds.cluster(), "shop", "vera")
    worlds.bound(worlds.cluster(), "shop", "team", kind="Group")
    ClusterGroupMember.objects.create(connection=row.connection, group="team", username="tom")
    for name in ("vera", "tom"):
        assert change(browser, manager, username=name) == 200
        assert browser.post(reverse("admin:auth_user_add"), {"username": name}).status_code == 200
        assert not User.objects.filter(username=name).exists()
    mine = Group.objects.create(name="mine")
    for url in (
        reverse("admin:auth_group_add"),
        reverse("admin:auth_group_change", args=[mine.pk]),
    ):
        page = browser.post(url, {"name": "team"})
        assert "rights" in page.content.decode()
    assert not Group.objects.filter(name="team").exists()
    assert change(browser, manager, username="else") == 302


def test_no_owner_and_no_group_of_another_namespace_is_within_reach(
    browser: Client, manager: Any
) -> None:
    other, bound_user = people.user(), User.objects.create(username="vera")
    memberships.create(worlds.cluster(), ["other"], author=worlds.BY, user=other)
    memberships.create(worlds.cluster(), ["other"], author=worlds.BY, group="owners")
    worlds.bound(worlds.cluster(), "shop", "vera")
    for person in (other, bound_user):
        assert change(browser, person, first_name="X") == 403
        password = reverse("admin:auth_user_password_change", args=[person.pk])
        assert browser.post(password, {"password1": "p", "password2": "p"}).status_code == 403
    owners = Group.objects.get(name="owners")
    change(browser, manager, groups=[owners.pk])
    assert not manager.groups.filter(name="owners").exists()
    url = reverse("admin:auth_group_change", args=[owners.pk])
    assert browser.post(url, {"name": "x"}).status_code == 403


def test_an_administrator_gives_these_names(manager: Any) -> None:
    worlds.bound(worlds.cluster(), "shop", "vera")
    manager.groups.set([Group.objects.get(name="administrator")])
    client = Client()
    client.force_login(manager)
    assert change(client, manager, username="vera") == 302
