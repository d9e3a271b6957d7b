"""Sign-in with passwords of a real LDAP directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from claims.access import namespaces
from ipam_site import checks as site_checks
from ipam_site.sign_on import ldap_settings
from pools.models import Cluster, DirectoryAccount, Event
from tests.signon import slapd
from tests.signon.slapd import ADMIN, BASE, PASSWORD, Directory

pytestmark = pytest.mark.django_db
RIGHT = "right"
needs_package = pytest.mark.skipif(
    not ldap_settings.is_installed(), reason="LDAP needs the packages of requirements-ldap.txt"
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with slapd.running(tmp_path_factory.mktemp("slapd")) as directory:
        yield directory


def configure(settings: Any, **values: str) -> None:
    right = {
        "URL": "ldaps://directory.example.org",
        "BIND_DN": ADMIN,
        "BIND_PASSWORD": PASSWORD,
        "USER_BASE": f"ou=people,{BASE}",
        "GROUP_BASE": f"ou=groups,{BASE}",
    }
    for name, value in (right | values).items():
        setattr(settings, f"IPAM_LDAP_{name}", value)
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        ldap_settings.BACKEND,
    ]


@pytest.fixture
def directory(running: Directory, settings: Any) -> Directory:
    configure(settings, URL=running.url, CA_FILE=running.ca_file)
    return running


def sign_in(name: str, password: str = RIGHT) -> Any:
    client = Client()
    form = {"username": name, "password": password}
    answer = client.post(reverse("admin:login"), form)
    answer.browser = client
    return answer


def roles(name: str) -> set[str]:
    return set(User.objects.get(username=name).groups.values_list("name", flat=True))


@needs_package
def test_groups_become_roles_and_namespaces(directory: Directory) -> None:
    prod = Cluster.objects.create(name="prod")
    directory.set_groups({"net-admins": ["inner"], "inner": ["ada"], "ns-shop": ["ada", "vera"]})
    assert sign_in("ada").status_code == 302
    assert roles("ada") == {"administrator", "vm-owner"}  # by a group in a group
    # Directories compare names without case: it is the same person.
    answer = sign_in("ADA")
    assert answer.status_code == 302
    assert answer.browser.get("/admin/pools/pool/").status_code == 200
    account = DirectoryAccount.objects.get()
    assert (account.source, account.subject, account.user) == (
        "ldap",
        "ada",
        User.objects.get(username="ada"),
    )
    assert User.objects.get().email == "ada@example.org"
    assert sign_in("vera").status_code == 302
    vera = User.objects.get(username="vera")
    assert namespaces.scope(vera).namespaces == {prod.pk: frozenset({"shop"})}
    assert not vera.has_usable_password()


@needs_package
@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", "wrong"), ("ada", ""), ("nobody", "right"), ("*", "right"), ("a)(uid=*", "right")],
)
def test_what_the_directory_refuses(directory: Directory, name: str, password: str) -> None:
    directory.set_groups({"net-admins": ["ada", "vera"]})
    answer = sign_in(name, password)
    assert answer.status_code == 200
    assert not User.objects.exists()
    assert not DirectoryAccount.objects.exists()


@needs_package
def test_who_left_the_group_loses_rights_and_tokens(directory: Directory) -> None:
    directory.set_groups({"net-admins": ["ada", "vera"]})
    sign_in("ada")
    AuthToken.objects.create(User.objects.get(username="ada"))
    directory.set_groups({"net-admins": ["vera"], "canteen": ["ada"]})
    answer = sign_in("ada")
    assert answer.status_code == 200
    assert "belongs to no group of the directory" in answer.text
    assert roles("ada") == set()
    assert not AuthToken.objects.exists()
    event = Event.objects.get(type="directory_account.sign_in_refused")
    assert (event.holder_id, event.reason) == ("ada", "no_group")


@needs_package
def test_a_local_account_is_not_taken_over(directory: Directory) -> None:
    User.objects.create_superuser("root", password="of this site")
    directory.set_groups({"net-admins": ["root"]})
    assert "An account root exists here" in sign_in("root").text
    assert sign_in("root", "of this site").status_code == 302


@needs_package
def test_start_tls(running: Directory, settings: Any) -> None:
    configure(settings, URL=running.plain_url, CA_FILE=running.ca_file)
    running.set_groups({"net-admins": ["ada"]})
    assert sign_in("ada").status_code == 302


@needs_package
@pytest.mark.parametrize(
    "values",
    [{"URL": "ldaps://localhost:1"}, {"CA_FILE": ""}, {"BIND_PASSWORD": "wrong"}],
    ids=str,
)
def test_a_directory_that_does_not_answer(
    running: Directory, settings: Any, values: dict[str, str]
) -> None:
    configure(settings, **({"URL": running.url, "CA_FILE": running.ca_file} | values))
    assert "does not answer" in sign_in("ada").text
    User.objects.create_superuser("root", password="of this site")
    assert sign_in("root", "of this site").status_code == 302


def messages(settings: Any, **values: str) -> list[str]:
    configure(settings, **values)
    return [message.msg for message in site_checks.sign_on()]


def test_the_package_is_needed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldap_settings, "is_installed", lambda: False)
    assert messages(settings) == ["IPAM_LDAP_URL: LDAP needs the packages of requirements-ldap.txt"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("URL", "http://x"),
        ("URL", "ldap://"),
        ("USER_BASE", ""),
        ("GROUP_BASE", ""),
        ("USERNAME_ATTRIBUTE", "uid)(x"),
        ("GROUP_FILTER", "x"),
        ("GROUP_TYPE", "x"),
        ("CA_FILE", "/nowhere"),
    ],
)
def test_wrong_settings(
    settings: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setattr(ldap_settings, "is_installed", lambda: True)
    assert messages(settings) == []
    (message,) = messages(settings, **{name: value})
    assert message.startswith(f"IPAM_LDAP_{name}: ")
