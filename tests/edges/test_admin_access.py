"""Roles in words, namespaces and invitations on the pages of users; the profile of a user."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from claims.access import memberships
from claims.models import Membership
from pools.models import DirectoryAccount, Preferences
from tests import people
from tests.claims import worlds

PASSWORD = "a password of the tests"
ADD = "/admin/auth/user/add/"


def role(name: str, **settings: Any) -> User:
    person = people.user(**settings)
    person.groups.add(Group.objects.get(name=name))
    return person


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def administrator() -> Client:
    return signed_in(role("administrator"))


def change(client: Client, user: User, **values: Any) -> Any:
    url = reverse("admin:auth_user_change", args=[user.pk])
    return client.post(
        url, {"username": user.username, "is_active": "on", "is_staff": "on", **values}
    )


def options(page: Any) -> list[str]:
    select = re.search(r'<select name="role".*?</select>', page.text, re.DOTALL)
    assert select
    return re.findall(r'<option value="(\w*)"', select[0])


# --- roles ----------------------------------------------------------------------------------------


def test_a_role_is_chosen_in_words_and_is_its_group(administrator: Client) -> None:
    other = role("viewer")
    team = Group.objects.create(name="team")
    page = administrator.get(reverse("admin:auth_user_change", args=[other.pk]))
    assert options(page) == ["", "viewer", "operator", "administrator"]
    assert "user_permissions" not in page.text
    assert change(administrator, other, role="operator", groups=[team.pk]).status_code == 302
    assert {group.name for group in other.groups.all()} == {"operator", "team"}
    assert "operator, team" in administrator.get(reverse("admin:auth_user_changelist")).text
    assert change(administrator, other, role="").status_code == 302
    assert not other.groups.exists()


def test_only_superusers_make_superusers(administrator: Client) -> None:
    other = role("viewer")
    assert change(administrator, other, role="superuser").status_code == 200
    assert not User.objects.get(pk=other.pk).is_superuser
    root = people.browser()
    assert change(root, other, role="superuser").status_code == 302
    assert User.objects.get(pk=other.pk).is_superuser
    assert not other.groups.exists()
    assert change(root, other, role="viewer").status_code == 302
    assert not User.objects.get(pk=other.pk).is_superuser


def test_nobody_gives_a_role_that_they_have_not() -> None:
    manager = people.user()
    rights = Permission.objects.filter(codename__in=("view_user", "add_user", "change_user"))
    manager.user_permissions.add(*rights)
    client, other = signed_in(manager), people.user()
    for person in (manager, other):
        for wanted in ("viewer", "administrator", "superuser"):
            assert change(client, person, role=wanted).status_code == 200
        assert not person.groups.exists()
    assert options(client.get(ADD)) == [""]
    assert "namespaces" not in client.get(ADD).context["adminform"].form.fields
    worlds.cluster()
    added = {"username": "new", "role": "administrator", "add_namespace": "shop"}
    assert client.post(ADD, added).status_code == 200
    assert not User.objects.filter(username="new").exists()
    client.post(ADD, {"username": "new", "add_namespace": "shop"})
    assert User.objects.filter(username="new").exists()
    assert not Membership.objects.exists()


def test_who_only_looks_changes_nothing() -> None:
    viewer = people.user()
    viewer.user_permissions.add(Permission.objects.get(codename="view_user"))
    other = role("operator")
    client = signed_in(viewer)
    page = client.get(reverse("admin:auth_user_change", args=[other.pk]))
    assert page.status_code == 200
    assert "<select" not in page.text[page.text.index('id="content"') :]
    assert change(client, other, role="").status_code == 403


# --- namespaces -----------------------------------------------------------------------------------


def test_namespaces_are_given_and_taken_on_the_page_of_the_user(administrator: Client) -> None:
    cluster, other = worlds.cluster(), people.user()
    name = f"{cluster}/shop"
    assert change(administrator, other, add_namespace=name).status_code == 302
    assert Membership.objects.get(user=other).namespaces == ["shop"]
    page = administrator.get(reverse("admin:auth_user_change", args=[other.pk]))
    assert page.context["adminform"].form["namespaces"].value() == name
    assert "VM owner" in page.text
    both = f"{name}\n{cluster}/web"
    assert change(administrator, other, namespaces=both, role="viewer").status_code == 302
    assert Membership.objects.get(user=other).namespaces == ["shop", "web"]
    assert {group.name for group in other.groups.all()} == {"viewer", memberships.OWNERS}
    assert change(administrator, other, namespaces="").status_code == 302
    assert not Membership.objects.exists()
    assert not other.groups.exists()


@pytest.mark.parametrize("text", ["nowhere/shop", "prod/Shop!", "a/b/c", "shop"])
def test_a_namespace_that_is_none_is_refused_at_its_field(administrator: Client, text: str) -> None:
    for name in ("prod", "other"):
        worlds.cluster(name)
    page = change(administrator, people.user(), add_namespace=text)
    assert page.status_code == 200
    assert list(page.context["adminform"].form.errors) == ["add_namespace"]
    assert f'value="{text}"' in page.text
    assert not Membership.objects.exists()


# --- invitations ----------------------------------------------------------------------------------


def link_of(page: Any) -> str:
    match = re.search(r"http://testserver(/admin/set-password/[^<\s]+)", page.text)
    assert match
    return match[1]


def set_password(link: str, password: str = PASSWORD) -> Any:
    client = Client()
    form = client.get(link, follow=True)
    if "/set-password/" not in form.redirect_chain[-1][0]:
        return form
    return client.post(form.redirect_chain[-1][0], dict.fromkeys(("new_password1", "new_password2"), password))  # fmt: skip


def test_a_user_is_invited_by_a_link_that_works_once(administrator: Client) -> None:
    cluster = worlds.cluster()
    invited = {"username": "ada", "is_staff": "on", "add_namespace": f"{cluster}/shop"}
    page = administrator.post(ADD, invited)
    ada = User.objects.get(username="ada")
    assert not ada.has_usable_password()
    assert Membership.objects.get(user=ada).namespaces == ["shop"]
    link = link_of(page)
    assert page.context["user"] != ada  # the page is the administrator's
    for url in (reverse("admin:auth_user_change", args=[ada.pk]), reverse("admin:auth_user_history", args=[ada.pk])):  # fmt: skip
        assert link not in administrator.get(url).text
    assert set_password(link).headers["Location"] == "/admin/login/"
    assert User.objects.get(pk=ada.pk).check_password(PASSWORD)
    again = set_password(link, "another password of the tests")
    assert "not valid any more" in again.text
    assert User.objects.get(pk=ada.pk).check_password(PASSWORD)


def test_a_link_ends(administrator: Client, settings: Any) -> None:
    link = link_of(administrator.post(ADD, {"username": "ada", "is_staff": "on"}))
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert "not valid any more" in set_password(link).text


def test_no_link_sets_a_password_of_a_directory_account(administrator: Client) -> None:
    person = role("viewer")
    url = reverse("admin:user_link", args=[person.pk])
    link = link_of(administrator.post(url))
    DirectoryAccount.objects.create(user=person, source="oidc", subject="s", username="s")
    assert "not valid any more" in set_password(link).text
    assert "set-password" not in administrator.post(url).text
    off = role("viewer", is_active=False)
    assert "set-password" not in administrator.post(reverse("admin:user_link", args=[off.pk])).text


def test_nobody_makes_a_link_for_whom_they_may_not_change(administrator: Client) -> None:
    root = people.user(is_superuser=True)
    url = reverse("admin:user_link", args=[root.pk])
    assert administrator.post(url).status_code == 403
    assert signed_in(role("operator")).post(url).status_code == 403
    assert administrator.get(reverse("admin:user_link", args=[10**9])).status_code == 404


def test_a_service_account_has_no_link(administrator: Client) -> None:
    answer = administrator.post(ADD, {"username": "robot", "role": "operator"})
    robot = User.objects.get(username="robot")
    assert answer.status_code == 302
    assert (robot.is_staff, robot.has_usable_password()) == (False, False)
    assert robot.has_perm("pools.allocate")
    namespace = f"{worlds.cluster()}/shop"
    administrator.post(ADD, {"username": "importer", "add_namespace": namespace})
    importer = User.objects.get(username="importer")
    assert Membership.objects.get(user=importer).namespaces == ["shop"]
    assert (importer.is_staff, importer.has_usable_password()) == (False, False)


def test_a_name_is_there_once_whatever_its_capitals(administrator: Client) -> None:
    people.user()
    User.objects.create(username="Ada")
    assert administrator.post(ADD, {"username": "ada"}).status_code == 200


# --- the profile ----------------------------------------------------------------------------------


def test_the_profile_says_what_one_may_see() -> None:
    owner, cluster = people.user(), worlds.cluster()
    memberships.create(cluster, ["shop"], author=worlds.BY, user=owner)
    page = signed_in(User.objects.get(pk=owner.pk)).get("/admin/profile/").text
    shown = page[page.index("What may I see?") :]
    assert f"{cluster}/shop" in shown
    assert "VM owner" in shown
    assert "every namespace" in signed_in(role("viewer")).get("/admin/profile/").text
    assert signed_in(people.user()).get("/admin/profile/").status_code == 200


def test_the_profile_is_ones_own() -> None:
    mine, other = role("viewer"), role("viewer")
    AuthToken.objects.create(other)
    client = signed_in(mine)
    values = {"first_name": "Ada", "email": "ada@example.org", "time_zone": "Asia/Tokyo"}
    answer = client.post("/admin/profile/", values | {"is_superuser": "on", "username": "root"})
    assert answer.status_code == 302
    saved = User.objects.get(pk=mine.pk)
    assert (saved.first_name, saved.username, saved.is_superuser) == ("Ada", mine.username, False)
    assert Preferences.objects.get().time_zone == "Asia/Tokyo"
    page = client.get("/admin/profile/")
    assert "(Asia/Tokyo)" in page.text
    assert not page.context["tokens"]
    AuthToken.objects.create(mine)
    assert "<td>never</td>" in client.get("/admin/profile/").text
    refused = client.post("/admin/profile/", values | {"time_zone": "Nowhere/Land"})
    assert "time_zone" in refused.context["form"].errors
