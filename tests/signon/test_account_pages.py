"""Directory accounts in the list of users, and what an administrator may do with them."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from claims.access import directory
from claims.access.directory import Person
from pools.models import DirectoryAccount, DirectorySource
from tests import people


@pytest.fixture
def ada() -> User:
    return directory.sign_in(Person(DirectorySource.LDAP, "ada", "ada", groups=["auditors"]))


def test_the_list_shows_and_filters_the_source(ada: User) -> None:
    client = people.browser()
    page = client.get(reverse("admin:auth_user_changelist"))
    assert ("LDAP" in page.text, "this site" in page.text) == (True, True)
    page = client.get(reverse("admin:auth_user_changelist"), {"directory_account__source": "ldap"})
    assert [user.username for user in page.context["cl"].result_list] == ["ada"]


def test_a_directory_account_gets_no_password(ada: User) -> None:
    client = people.browser()
    url = reverse("admin:auth_user_password_change", args=[ada.pk])
    answer = client.post(url, {"password1": "a long one 4711", "password2": "a long one 4711"})
    assert answer.headers["Location"] == reverse("admin:auth_user_change", args=[ada.pk])
    assert not User.objects.get(pk=ada.pk).has_usable_password()
    page = client.get(answer.headers["Location"])
    assert "signs in at the directory of the organization, without a password here" in page.text
    assert "each sign-in sets groups" in page.text
    stranger = people.browser([])
    assert stranger.get(url).status_code == 403
    absent = client.get(reverse("admin:auth_user_password_change", args=[10**9]))
    assert absent.status_code in {302, 404}


def test_a_deleted_account_can_sign_in_anew(ada: User) -> None:
    ada.delete()
    assert not DirectoryAccount.objects.exists()
    new = directory.sign_in(Person(DirectorySource.LDAP, "ada", "ada", groups=["auditors"]))
    assert new.pk != ada.pk
    assert Client().get(reverse("admin:login")).status_code == 200


def test_the_same_name_in_two_directories_is_two_persons(ada: User) -> None:
    with pytest.raises(directory.SignInRefused) as refusal:
        directory.sign_in(Person(DirectorySource.OIDC, "x ada", "ada", groups=["net-admins"]))
    assert refusal.value.code == "account_exists"
