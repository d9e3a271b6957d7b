"""Whoever manages users gives nobody more than they may give, themselves least of all."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from pools.models import DirectoryAccount
from pools.platform.admin import display
from tests import people

MANAGES = ("view_user", "add_user", "change_user", "delete_user", "add_authtoken")


@pytest.fixture
def me() -> Any:
    person = people.user(people.ADMINISTRATOR)
    person.user_permissions.add(*Permission.objects.filter(codename__in=MANAGES))
    return person


@pytest.fixture
def client(me: Any) -> Client:
    browser = Client()
    browser.force_login(me)
    return browser


def change(client: Client, user: User, **fields: Any) -> Any:
    url = reverse("admin:auth_user_change", args=[user.pk])
    data = {"username": user.username, "is_active": "on", "is_staff": "on", **fields}
    data |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    return client.post(url, data)


def test_nobody_makes_themselves_a_superuser(client: Client, me: Any) -> None:
    rights = [
        str(permission.pk) for permission in Permission.objects.filter(codename="delete_group")
    ]
    answer = change(client, me, is_superuser="on", user_permissions=rights, first_name="X")
    assert answer.status_code == 302
    me = User.objects.get(pk=me.pk)
    assert (me.first_name, me.is_superuser) == ("X", False)
    assert not me.has_perm("auth.delete_group")


def test_a_superuser_is_out_of_reach(client: Client) -> None:
    root = people.user(is_superuser=True)
    assert change(client, root, first_name="X").status_code == 403
    password = reverse("admin:auth_user_password_change", args=[root.pk])
    assert client.post(password, {"password1": "p", "password2": "p"}).status_code == 403
    delete = reverse("admin:auth_user_delete", args=[root.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    data = {"action": "delete_selected", "_selected_action": [root.pk], "post": "yes"}
    client.post(reverse("admin:auth_user_changelist"), data)
    assert User.objects.filter(pk=root.pk, first_name="").exists()
    client.post(reverse("admin:knox_authtoken_create"), {"user": root.pk, "days": 7})
    assert not AuthToken.objects.exists()


@pytest.fixture
def manager() -> Any:
    """Manages users and groups, and nothing else."""
    rights = Permission.objects.filter(
        codename__in=(*MANAGES, "view_group", "change_group", "add_group", "delete_group")
    )
    person = people.user()
    person.user_permissions.add(*rights)
    return person


@pytest.mark.exhaustive
def test_nobody_grants_what_they_have_not(manager: Any) -> None:
    """Not to themselves, to others, by a group or by a token; not to an account that is switched off."""
    browser = Client()
    browser.force_login(manager)
    administrators = Group.objects.get(name="administrator")
    other, switched_off = people.user(), people.user(people.ADMINISTRATOR)
    for person in (manager, other):
        change(browser, person, groups=[administrators.pk], first_name="X")
        assert not person.groups.exists()
    switched_off.is_active = False
    switched_off.save()
    assert change(browser, switched_off, first_name="X").status_code == 403
    password = reverse("admin:auth_user_password_change", args=[switched_off.pk])
    assert browser.post(password, {"password1": "p", "password2": "p"}).status_code == 403
    assert (
        browser.post(reverse("admin:auth_user_delete", args=[switched_off.pk])).status_code == 403
    )
    browser.post(reverse("admin:knox_authtoken_create"), {"user": switched_off.pk, "days": 7})
    assert not AuthToken.objects.exists()
    assert change(browser, other, first_name="Ada").status_code == 302
    assert User.objects.get(pk=other.pk).first_name == "Ada"


def test_no_group_gets_what_its_author_has_not(manager: Any) -> None:
    browser = Client()
    browser.force_login(manager)
    manager.groups.add(team := Group.objects.create(name="team"))
    permission = Permission.objects.get(codename="force_release")
    mine = Permission.objects.get(codename="view_user")
    url = reverse("admin:auth_group_change", args=[team.pk])
    browser.post(url, {"name": "team", "permissions": [permission.pk]})
    assert not team.permissions.exists()
    browser.post(url, {"name": "team", "permissions": [mine.pk]})
    assert list(team.permissions.all()) == [mine]
    administrators = Group.objects.get(name="administrator")
    for name in ("change", "delete"):
        place = reverse(f"admin:auth_group_{name}", args=[administrators.pk])
        assert browser.post(place, {"name": "x", "post": "yes"}).status_code == 403
    data = {"action": "delete_selected", "_selected_action": [administrators.pk], "post": "yes"}
    browser.post(reverse("admin:auth_group_changelist"), data)
    browser.post(reverse("admin:auth_group_add"), {"name": "new", "permissions": [permission.pk]})
    assert Group.objects.filter(name="administrator").exists()
    assert not Group.objects.filter(name="new", permissions=permission).exists()


def test_many_groups_are_a_menu_of_names() -> None:
    groups = [Group.objects.create(name=f"team-{number}") for number in range(3)]
    member = people.user()
    member.groups.add(groups[1])
    browser = people.browser()
    url = reverse("admin:auth_user_changelist")
    page = browser.get(url)
    assert f'<option value="{groups[2].pk}">team-2</option>' in page.content.decode()
    assert f"groups__id__exact={groups[2].pk}" not in page.content.decode()  # no link for each
    page = browser.get(url, {"groups__id__exact": groups[1].pk})
    assert [user.pk for user in page.context["cl"].result_list] == [member.pk]


def test_nobody_locks_themselves_out() -> None:
    """Neither by a deletion nor by the form; no page offers it."""
    root = people.user(is_superuser=True)
    people.user(is_superuser=True)
    browser = people.signed_in(root)
    delete = reverse("admin:auth_user_delete", args=[root.pk])
    assert delete not in browser.get(display.url_of(root)).content.decode()
    for answer in (browser.get(delete), browser.post(delete, {"post": "yes"})):
        assert "You cannot delete your own account." in answer.content.decode()
        assert "cad-button-danger" not in answer.content.decode()
    for field in ("is_active", "is_staff"):
        answer = change(browser, root, role="superuser", **{field: ""})
        assert "You cannot lock yourself out." in answer.content.decode()
    root.refresh_from_db()
    assert root.is_active
    assert root.is_staff


def test_a_superuser_stays() -> None:
    root = people.user(is_superuser=True)
    browser = people.signed_in(root)
    answer = change(browser, root, role="administrator")
    assert "This is the only superuser." in answer.content.decode()
    other = people.user(is_superuser=True)
    account = DirectoryAccount.objects.create(user=other, source="oidc", subject="other")
    answer = change(
        browser, root, role="administrator"
    )  # the next sign-in makes the other one none
    assert "This is the only superuser." in answer.content.decode()
    account.delete()
    assert change(browser, root, role="administrator").status_code == 302
    assert list(User.objects.filter(is_superuser=True)) == [other]


def test_the_groups_of_roles_stay() -> None:
    browser = people.browser()
    for name in ("viewer", "vm-owner"):
        group = Group.objects.get(name=name)
        delete = reverse("admin:auth_group_delete", args=[group.pk])
        assert delete not in browser.get(display.url_of(group)).content.decode()
        for answer in (browser.get(delete), browser.post(delete, {"post": "yes"})):
            assert "so it stays" in answer.content.decode()
        answer = browser.post(display.url_of(group), {"name": "watchers"})
        assert "so its name stays" in answer.content.decode()
        assert Group.objects.filter(name=name).exists()
    team = Group.objects.create(name="team")
    browser.post(reverse("admin:auth_group_delete", args=[team.pk]), {"post": "yes"})
    assert not Group.objects.filter(name="team").exists()
