"""Sign-on at a certified provider, from the button to the end of the session."""

import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
import requests
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from claims.access import namespaces
from claims.models import Membership, MembershipEvent
from pools.models import Cluster, DirectoryAccount, DirectoryAccountEvent, Event
from tests.signon.conftest import Browser
from tests.signon.provider_process import Provider


def person(name: str, *groups: str, **claims: Any) -> dict[str, Any]:
    return {"preferred_username": name, "email": f"{name}@example.org", "groups": groups} | claims


def roles(user: User) -> set[str]:
    return set(User.objects.get(pk=user.pk).groups.values_list("name", flat=True))


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_groups_become_roles(browser: Browser, use: Callable[..., None], algorithm: str) -> None:
    use(browser.provider.issuer, browser.provider.ca_file, algorithm)
    browser.provider.set_accounts(u1=person("ada", "/net/ops", "canteen"))
    assert "Sign in with the Staff Directory" in browser.get(reverse("admin:login")).text
    answer = browser.sign_in("u1", "/sign-on/?next=/admin/find/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/find/")
    ada = User.objects.get(username="ada")
    assert (ada.email, ada.is_staff, ada.is_superuser) == ("ada@example.org", True, False)
    assert not ada.has_usable_password()
    assert roles(ada) == {"operator", "viewer"}
    account = DirectoryAccount.objects.get(user=ada)
    assert (account.source, account.subject) == ("oidc", f"{browser.provider.issuer} u1")
    assert browser.get("/admin/pools/pool/", secure=True).status_code == 200
    event = Event.objects.filter(type="directory_account.changed").latest("id")
    assert (event.actor, event.holder_id, event.message) == ("ada", "ada", "operator, viewer")
    # A second sign-in that changes nothing writes nothing.
    count = DirectoryAccountEvent.objects.count()
    assert Browser(browser.provider).sign_in("u1").status_code == 302
    assert DirectoryAccountEvent.objects.count() == count


def test_groups_make_vm_owners_of_namespaces(browser: Browser) -> None:
    prod, test = (Cluster.objects.create(name=name) for name in ("prod", "test"))
    browser.provider.set_accounts(
        u1=person("vera", "ns-shop", "ns-bank@prod", "ns-bank@nowhere", "ns-Not_A_Name")
    )
    assert browser.sign_in("u1").status_code == 302
    vera = User.objects.get(username="vera")
    assert namespaces.scope(vera).namespaces == {
        prod.pk: frozenset({"shop", "bank"}),
        test.pk: frozenset({"shop"}),
    }
    assert roles(vera) == {"vm-owner"}
    assert browser.get(reverse("admin:claims_entry_changelist"), secure=True).status_code == 200
    browser.provider.set_accounts(u1=person("vera", "ns-bank@prod"))
    assert browser.sign_in("u1").status_code == 302
    assert namespaces.scope(User.objects.get(pk=vera.pk)).namespaces == {
        prod.pk: frozenset({"bank"})
    }
    labels = MembershipEvent.objects.order_by("pgh_id").values_list("pgh_label", flat=True)
    assert sorted(labels) == ["changed", "created", "created", "deleted"]
    assert {event.pgh_context["actor"] for event in MembershipEvent.objects.all()} == {"vera"}


def test_a_namespace_remains_when_a_role_goes(browser: Browser) -> None:
    Cluster.objects.create(name="prod")
    browser.provider.set_accounts(u1=person("vera", "ns-shop", "net-admins"))
    browser.sign_in("u1")
    vera = User.objects.get(username="vera")
    assert roles(vera) == {"vm-owner", "administrator"}
    browser.provider.set_accounts(u1=person("vera", "ns-shop"))
    assert browser.sign_in("u1").status_code == 302
    assert roles(vera) == {"vm-owner"}
    assert User.objects.get(pk=vera.pk).is_staff
    browser.provider.set_accounts(u1=person("vera", "auditors"))
    browser.sign_in("u1")
    assert roles(vera) == {"viewer"}
    assert not Membership.objects.exists()


def api(token: str) -> int:
    headers = {"Authorization": f"Token {token}"}
    return Client().get("/api/v1/pools/", headers=headers).status_code


def test_who_left_the_group_loses_rights_and_tokens(browser: Browser) -> None:
    browser.provider.set_accounts(u1=person("ada", "net-admins"))
    browser.sign_in("u1")
    ada = User.objects.get(username="ada")
    token: str = AuthToken.objects.create(ada)[1]
    ada.is_superuser = True
    ada.save()
    assert api(token) == 200
    browser.provider.set_accounts(u1=person("ada", "auditors"))
    browser.sign_in("u1")
    assert roles(ada) == {"viewer"}
    assert not User.objects.get(pk=ada.pk).is_superuser
    assert api(token) == 200  # with the rights that are left
    create = Client().post("/api/v1/clusters/", {}, headers={"Authorization": f"Token {token}"})
    assert create.status_code == 403
    browser.provider.set_accounts(u1=person("ada"))
    other = Browser(browser.provider)
    answer = other.sign_in("u1")
    assert answer.status_code == 403
    assert "belongs to no group of the directory" in answer.text
    assert api(token) == 401
    assert not AuthToken.objects.exists()
    assert roles(ada) == set()
    # The older session has no rights any more, either.
    assert browser.get("/admin/pools/pool/", secure=True).status_code in {302, 403}
    event = Event.objects.filter(type="directory_account.sign_in_refused").latest("id")
    assert (event.holder_id, event.reason, event.message) == ("ada", "no_group", "")
    # Back in the group, the rights come back, the tokens do not.
    browser.provider.set_accounts(u1=person("ada", "auditors"))
    assert Browser(browser.provider).sign_in("u1").status_code == 302
    assert (roles(ada), api(token)) == ({"viewer"}, 401)


@pytest.mark.parametrize("claims", [{"groups": []}, {"groups": ["canteen"]}, {"groups": None}])
def test_without_a_mapped_group_nobody_gets_in(browser: Browser, claims: dict[str, Any]) -> None:
    account = {key: value for key, value in (person("eve") | claims).items() if value is not None}
    browser.provider.set_accounts(u1=account)
    answer = browser.sign_in("u1")
    assert answer.status_code == 403
    assert "belongs to no group" in answer.text
    assert "/sign-on/?prompt=select_account" in answer.text  # the way to another account
    again = browser.get("/sign-on/?prompt=select_account", secure=True).headers["Location"]
    assert "prompt=select_account" in again
    assert not User.objects.filter(username="eve").exists()
    assert Event.objects.get(type="directory_account.sign_in_refused").holder_id == "eve"
    assert browser.get("/admin/", secure=True).status_code == 302


@pytest.mark.parametrize("name", ["root", "ROOT"])
def test_a_local_account_is_not_taken_over(browser: Browser, name: str) -> None:
    root = User.objects.create_superuser("root", password="of this site")
    browser.provider.set_accounts(u1=person(name, "net-admins"))
    answer = browser.sign_in("u1")
    assert answer.status_code == 403
    assert f"An account {name} exists here" in answer.text
    assert browser.get("/admin/", secure=True).status_code == 302
    assert not DirectoryAccount.objects.filter(user=root).exists()
    assert User.objects.get(pk=root.pk).is_superuser
    assert Event.objects.get(type="directory_account.sign_in_refused").reason == "account_exists"
    assert Client().login(username="root", password="of this site")  # for emergencies


def test_a_second_person_does_not_get_the_account_of_the_first(browser: Browser) -> None:
    browser.provider.set_accounts(u1=person("ada", "net-admins"), u2=person("ada", "auditors"))
    assert browser.sign_in("u1").status_code == 302
    assert Browser(browser.provider).sign_in("u2").status_code == 403
    # The same person by another name keeps the account, which gets the name unless somebody has it.
    ada = User.objects.get(username="ada")
    User.objects.create(username="Byron")
    for name, username in (("byron", "ada"), ("lovelace", "lovelace")):
        browser.provider.set_accounts(u1=person(name, "auditors"))
        assert Browser(browser.provider).sign_in("u1").status_code == 302
        ada.refresh_from_db()
        assert (ada.username, roles(ada)) == (username, {"viewer"})


@pytest.mark.parametrize("name", ["CORP\\ada", "", "a" * 151, "a\nb"])
def test_a_name_that_no_account_can_have(browser: Browser, name: str) -> None:
    browser.provider.set_accounts(u1=person(name, "net-admins"))
    answer = browser.sign_in("u1")
    assert answer.status_code == 403
    assert "cannot be used here" in answer.text
    assert not DirectoryAccount.objects.exists()


def test_an_account_that_was_switched_off_stays_so(browser: Browser) -> None:
    browser.provider.set_accounts(u1=person("ada", "net-admins"))
    browser.sign_in("u1")
    User.objects.filter(username="ada").update(is_active=False)
    answer = Browser(browser.provider).sign_in("u1")
    assert (answer.status_code, "is not active" in answer.text) == (403, True)


def test_a_directory_account_has_no_password_here(browser: Browser) -> None:
    browser.provider.set_accounts(u1=person("ada", "net-admins"))
    browser.sign_in("u1")
    ada = User.objects.get(username="ada")
    ada.set_password("by whoever may write to the table")
    ada.save()
    assert not Client().login(username="ada", password="by whoever may write to the table")


def test_an_answer_is_good_once_and_in_its_browser_only(browser: Browser) -> None:
    browser.provider.set_accounts(u1=person("ada", "net-admins"))
    url = browser.way_back("u1")
    stranger = Browser(browser.provider)
    assert stranger.get(url, secure=True).status_code == 400
    assert browser.get(url, secure=True).status_code == 302
    answer = browser.get(url, secure=True)
    assert answer.status_code == 400
    assert "finished before" in answer.text


def test_a_code_without_its_verifier_is_refused_by_the_provider(browser: Browser) -> None:
    browser.provider.set_accounts(u1=person("ada", "net-admins"))
    url = browser.way_back("u1")
    session = browser.session
    ((state, *_),) = session["socialaccount_states"].values()
    state["pkce_code_verifier"] = "x" * 48
    session.save()
    assert browser.get(url, secure=True).status_code == 403
    assert not User.objects.filter(username="ada").exists()


def test_a_sign_in_that_the_person_gave_up(browser: Browser) -> None:
    begun = browser.get("/sign-on/", secure=True).headers["Location"]
    state = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun).query))["state"]
    answer = browser.get(
        f"/sign-on/callback/?error=access_denied&error_description=%0Ax&state={state}", secure=True
    )
    assert answer.status_code == 403
    assert "/sign-on/?prompt=select_account" in answer.text


@pytest.mark.parametrize("next_url", ["https://evil.example/", "//evil.example/", "javascript:x"])
def test_no_redirect_to_another_site(browser: Browser, next_url: str) -> None:
    browser.provider.set_accounts(u1=person("ada", "auditors"))
    query = urllib.parse.urlencode({"next": next_url})
    assert browser.sign_in("u1", f"/sign-on/?{query}").headers["Location"] == "/admin/"


def test_logout(browser: Browser) -> None:
    browser.provider.set_accounts(u1=person("ada", "auditors"))
    browser.sign_in("u1")
    page = browser.post(reverse("admin:logout"), secure=True)
    assert "Sign out of the Staff Directory too" in page.text
    url = page.context["sign_on_logout_url"]
    assert url.startswith(f"{browser.provider.issuer}/session/end?")
    answer = requests.get(url, verify=browser.provider.ca_file, timeout=30)
    # The provider knows the client and the address that it leads back to.
    assert (answer.status_code, "/session/end/confirm" in answer.text) == (200, True)
    assert browser.get("/admin/", secure=True).status_code == 302


def test_a_local_session_ends_without_the_directory(browser: Browser) -> None:
    browser.force_login(User.objects.create_superuser("root"))
    assert "Staff Directory" not in browser.post(reverse("admin:logout"), secure=True).text


def test_a_provider_that_is_down(
    provider: Provider, use: Callable[..., None], client: Client
) -> None:
    use("https://localhost:1", provider.ca_file)
    answer = client.get("/sign-on/", secure=True)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")
    assert "does not answer" in answer.text
    # An account of this site signs in as before.
    User.objects.create_superuser("root", password="of this site")
    form = {"username": "root", "password": "of this site"}
    assert client.post(reverse("admin:login"), form).status_code == 302


def test_a_provider_with_another_certificate(
    provider: Provider, use: Callable[..., None], client: Client
) -> None:
    use(provider.issuer, "")
    assert client.get("/sign-on/", secure=True).status_code == 503


def test_without_settings_there_is_no_sign_on(client: Client) -> None:
    assert "Sign in with" not in client.get(reverse("admin:login")).text
    for path in ("/sign-on/", "/sign-on/callback/?code=x&state=y"):
        assert client.get(path).headers["Location"] == "/admin/login/"
